"""Filters of records: what they accept, and what their errors say."""

import json
import time
from random import Random
from typing import Any

import pytest

from sskafka.client.fetched import ConsumedRecord
from sskafka.servers.http.browsing.filter import JSON_BYTES_MAX, FilteredRecord, compile_filter
from sskafka.servers.http.browsing.filter_syntax import CHARACTERS_MAX, FilterError

NOW_MS = 1_700_000_000_000
ORDER = {"user": {"id": 7, "name": "Zoë"}, "items": [{"sku": "a"}, {"sku": "b"}], "tags": ["new", 3], "paid": False}


def record(value: Any = ORDER, key: bytes | None = b"order-7", **changed: Any) -> ConsumedRecord:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    headers = (("trace", b"old"), ("trace", b"abc-123"), ("retries", b"2"), ("none", None))
    return ConsumedRecord("orders", 3, 41, NOW_MS, key, data, headers, 0, False)._replace(**changed)


@pytest.mark.parametrize(
    "text",
    [
        'key == "order-7"',
        "key == 'order-7'",
        'key contains "der" and not key contains "x"',
        "value.user.id > 5",
        "value.user.id >= 7 and value.user.id <= 7.0",
        'value.user.name == "Zo\\u00eb"',
        'value["user"]["id"] == 7',
        'value.items[1].sku == "b"',
        'value.tags contains "new"',
        "value.tags contains 3",
        'value contains "Zo"',
        'value matches "\\"id\\": [0-9]+"',
        'value.user.name matches "^Z"',
        'headers.trace contains "123"',
        'headers["trace"] == "abc-123"',
        "headers.retries == 2",
        "headers.none == null",
        "partition == 3 and offset < 42",
        'timestamp >= "2023-11-14" and timestamp > "-1h"',
        f"timestamp == {NOW_MS}",
        "size > 10",
        "value.user.id != 8",
        'value.user.id != "7"',
        "value.missing == null",
        "value.missing != 1",
        "not value.missing",
        "value.user",
        "not value.paid",
        "value.paid == false",
        'key == "x" or (value.paid == false and partition == 3)',
        'key == "x" and key == "y" or partition == 3',
        "value.user.id > headers.retries",
        "not not value.user",
    ],
)
def test_accepted(text: str) -> None:
    assert compile_filter(text, NOW_MS)(FilteredRecord(record()))


@pytest.mark.parametrize(
    "text",
    [
        'key == "order"',
        'value.user.id > "5"',
        "value.user.name > 5",
        "value.user.id == true",
        "value.items[2].sku == 'c'",
        "value.items.sku == 'a'",
        "value.missing < 1",
        'value.missing contains "x"',
        'value.user.id matches "7"',
        'headers.other == "x"',
        "value.paid",
        "headers.none",
    ],
)
def test_refused(text: str) -> None:
    assert not compile_filter(text, NOW_MS)(FilteredRecord(record()))


@pytest.mark.parametrize("value", [None, b"", b"\xff\xfe", b"[" * 100_000, b"{", b"NaN", b"1" * 5_000, b'"\\ud800"'])
def test_other_bytes_are_harmless(value: bytes | None) -> None:
    for text in ("value.user.id > 5", 'value matches "x"', 'value.a[0] == "x"', 'value contains "x"', "value > 1e400"):
        assert not compile_filter(text, NOW_MS)(FilteredRecord(record(value)))


def test_a_tombstone_is_null_and_the_number_zero_is_not() -> None:
    assert compile_filter("value == null", NOW_MS)(FilteredRecord(record(None)))
    assert compile_filter("value.count", NOW_MS)(FilteredRecord(record({"count": 0})))


def test_fields_of_a_decoder() -> None:
    accepts = compile_filter("value.id == 5", NOW_MS)
    assert accepts(FilteredRecord(record(b"\x0a"), decode_value=lambda data: {"id": data[0] // 2}))


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 1, "expected a field"),
        ("user.id > 5", 1, "expected a field (key, value,"),
        ("value.id >", 11, "after > instead of the end"),
        ("value.id = 5", 10, "write =="),
        ("value.id == 5 && key", 15, "write and"),
        ("value.id == 5 key", 15, "expected and, or or the end instead of 'key'"),
        ("(value.id == 5", 15, "expected )"),
        ("value. == 5", 8, "expected the name of a field after ."),
        ("value[x] == 5", 7, "expected a position"),
        ("value[-1] == 5", 7, "expected a position"),
        ("value[1 == 5", 9, "expected ]"),
        ('key == "abc', 8, "quote is never closed"),
        ('key == "a\\q"', 10, "unknown escape"),
        ('key matches "("', 13, "not a regular expression"),
        ('key matches "x{400}" or value matches "y{400}" or key matches "z{400}"', 63, "too large together"),
        ("key matches 5", 13, "regular expression in quotes"),
        ("offset.x > 5", 1, "has no fields"),
        ("headers == 5", 1, "headers needs the name"),
        ('offset == "5"', 11, "without quotes"),
        ('timestamp > "yesterday"', 13, "is not a time"),
        ('key == "\\ud800"', 8, "surrogate"),
        ("(" * 60 + "key", 52, "inside each other"),
        ("not " * 60 + "key", 205, "inside each other"),
        ("k" * (CHARACTERS_MAX + 1), CHARACTERS_MAX, "at most"),
    ],
)
def test_errors_name_the_column(text: str, column: int, part: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, NOW_MS)
    assert (caught.value.column, part in str(caught.value)) == (column, True), caught.value


def test_large_values_are_text() -> None:
    """A compressed batch of some kilobytes may hold a value of 32 MB, whose objects would take 0.8 GB."""
    small = b'{"a": 1' + b" " * (JSON_BYTES_MAX - 8) + b"}"
    large = b'{"a": 1' + b" " * (JSON_BYTES_MAX - 7) + b"}"
    accepts = compile_filter("value.a == 1", NOW_MS)
    assert accepts(FilteredRecord(record(small)))
    assert not accepts(FilteredRecord(record(large)))
    assert compile_filter('value contains "a"', NOW_MS)(FilteredRecord(record(large)))


def test_the_time_of_regular_expressions_is_bounded() -> None:
    """An expression of 456 instructions took two seconds for such a value, and a filter may have a hundred."""
    long = record("".join(Random(7).choices("ab", k=1_000_000)))
    accepts = compile_filter(" or ".join(f'value matches "a[ab]{{{size}}}c"' for size in (430, 200, 100, 50)), NOW_MS)
    took_ns = []
    for _ in range(3):
        filtered, began_ns = FilteredRecord(long), time.thread_time_ns()
        assert not accepts(filtered)
        took_ns.append(time.thread_time_ns() - began_ns)
        assert filtered.is_cut
    assert min(took_ns) < 100_000_000, took_ns


@pytest.mark.parametrize("letter", ["x", "\u00eb"])
def test_an_expression_sees_the_beginning_of_a_long_text(letter: str) -> None:
    accepts = compile_filter('value matches "end"', NOW_MS)
    for size, is_cut in ((100_000, False), (10_000_000, True)):
        filtered = FilteredRecord(record((letter * (size // len(letter.encode())) + "end").encode()))
        assert (accepts(filtered), filtered.is_cut) == (not is_cut, is_cut)
    early = FilteredRecord(record(b"end" + b"x" * 10_000_000))
    assert accepts(early)
