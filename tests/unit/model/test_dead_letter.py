"""Where a dead letter comes from, by its headers."""

import pytest

from sskafka.model.dead_letter import Origin, origin_of, original_headers

HEADERS = (("trace", b"1"), ("dlq.topic", b"orders"), ("dlq.partition", b"2"), ("dlq.offset", b"7"))


def test_the_origin_and_the_headers_of_the_original() -> None:
    assert origin_of(HEADERS) == Origin("orders", 2, 7, "", "")
    assert original_headers(HEADERS) == (("trace", b"1"),)
    assert origin_of(()) == Origin("", 0, 0, "", "")


@pytest.mark.parametrize("odd", [None, b"", b"-1", b"x", b"\xff", b"9" * 5000, "²".encode()])
def test_numbers_that_no_pipeline_writes(odd: bytes | None) -> None:
    assert origin_of([("dlq.topic", b"orders"), ("dlq.partition", odd)]).partition == 0
