import pytest

from sskafka.partition.watermarks import Watermarks


def test_advances_and_never_goes_back() -> None:
    marks = Watermarks(5)
    assert marks.advance(8, log_end_offset=10)
    assert not marks.advance(7, log_end_offset=10)
    assert marks.high_watermark == 8


def test_never_above_the_log_end() -> None:
    with pytest.raises(AssertionError):
        Watermarks(0).advance(11, log_end_offset=10)


@pytest.mark.parametrize(("first_unstable", "expected"), [(None, 8), (3, 3), (8, 8), (9, 8)])
def test_last_stable_offset_stops_at_the_first_open_transaction(first_unstable: int | None, expected: int) -> None:
    assert Watermarks(8).last_stable_offset(first_unstable) == expected


def test_truncation_and_a_later_start_move_it_with_the_log() -> None:
    marks = Watermarks(8)
    marks.truncate_to(6)
    assert marks.high_watermark == 6
    marks.start_at(9)
    assert marks.high_watermark == 9
