"""Groups and transactional ids map to partitions by Java's String.hashCode."""

import pytest

from sskafka.coordination.internal_topics import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello", 99162322),
        ("my-group", -1906497762),
        ("polygenelubricants", -(2**31)),
        ("grüße", 98768023),
        ("😀", 1772899),
    ],
)
def test_java_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_goes_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_negative_hashes_count_by_their_absolute_value() -> None:
    assert partition_of("my-group", 50) == 1906497762 % 50
