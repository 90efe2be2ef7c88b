"""The records of a batch as spans of its payload: enough to select records and to copy those that are kept.

Only the fields that the selection needs are decoded; headers and values stay bytes. records/record.py has the layout.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError
from sskafka.records.varint import INT64_BYTES_MAX, encode_varint, read_varint


class RecordSpan(NamedTuple):
    start: int
    end: int
    behind_timestamp: int
    """Position of the fields that follow the timestamp."""
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def record_spans(payload: bytes, count: int) -> Iterator[RecordSpan]:
    """Yield the span of every record. Flat code with inlined one-byte varints, because every record of a log passes
    here."""
    at, size = 0, len(payload)
    new_span = tuple.__new__
    try:
        for _ in range(count):
            start = at
            length, at = read_varint(payload, at)
            end = at + length
            byte = payload[at + 1]  # after the attributes
            if byte < 0x80:
                timestamp_delta, at = (byte >> 1) ^ -(byte & 1), at + 2
            else:
                timestamp_delta, at = read_varint(payload, at + 1, INT64_BYTES_MAX)
            behind_timestamp = at
            byte = payload[at]
            if byte < 0x80:
                offset_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                offset_delta, at = read_varint(payload, at)
            byte = payload[at]
            if byte < 0x80:
                key_length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                key_length, at = read_varint(payload, at)
            key = None
            if key_length >= 0:
                key = payload[at : at + key_length]
                at += key_length
            if not start < at < end <= size:
                raise CorruptBatchError(f"the record at byte {start} does not fit into its batch")
            has_value = not payload[at] & 1  # negative lengths are odd in zigzag encoding
            yield new_span(RecordSpan, (start, end, behind_timestamp, timestamp_delta, offset_delta, key, has_value))
            at = end
    except IndexError:
        raise CorruptBatchError("the records end early") from None
    if at != size:
        raise CorruptBatchError(f"{size - at} bytes follow the last of {count} records")


def with_timestamp_delta(payload: bytes, span: RecordSpan, timestamp_delta: int) -> bytes:
    """Return the record with another delta from the batch's base timestamp."""
    rest = payload[span.behind_timestamp : span.end]
    delta = encode_varint(timestamp_delta)
    return b"".join((encode_varint(1 + len(delta) + len(rest)), b"\x00", delta, rest))
