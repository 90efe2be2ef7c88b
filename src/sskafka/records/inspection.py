"""Check the records of a batch without decoding them: what a broker must know before it stores a batch.

Every record has to fit exactly into its length, all of its fields into the record, the records into the batch, and the
offset deltas have to count from 0. A batch for which that is not true stops consumers, so the leader rejects it. The
same walk finds the smallest and the largest timestamp and whether each record has a key.

The walk is in Python, so its cost counts (about half a microsecond per record). Producers often send many records of
the same shape: all fields have the same sizes, and keys and values the same lengths. Such a run is checked by columns:
a slice with the record size as its stride has one byte of each record, and one comparison checks all of them.

    length   attributes  timestamp  offset     key len   key  value len  value  header count
    const    any         varies     known      const     any  const      any    0
"""

from collections.abc import Callable
from itertools import starmap
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError
from sskafka.records.varint import INT64_BYTES_MAX, read_varint

SLICE_RECORDS = 256
"""Records or record headers between two calls of `pause`."""

_RUN_MIN = 8  # shorter runs cost more than walking the records
_RUN_FIRST_TRY = 128
_RUN_MAX = 1024  # bounds what is wasted on a run that ends in a record of another shape
_PROBE_PAUSE = 64  # records to walk after a run that was too short

# The offset delta i is written as zigzag varint of 2i: one byte below 64, two below 8192, three below 1048576.
_ONE_BYTE_END, _TWO_BYTES_END, _TABLE_END = 64, 8192, 65536
_LOW = bytes(0x80 | (2 * i & 0x7F) for i in range(64)) * (_TABLE_END // 64)
_MIDDLE = b"".join(bytes([0x80 | i]) * 64 for i in range(128)) * (_TABLE_END // 8192)
_ONE = bytes(range(0, 128, 2))
_TWO = b"".join(bytes([i]) * 64 for i in range(128))
_THREE = b"".join(bytes([i]) * 8192 for i in range(_TABLE_END // 8192))

_EVEN = bytes(range(0, 256, 2))
_HIGH = bytes(range(128, 256))


class RecordsSummary(NamedTuple):
    timestamp_delta_min: int
    timestamp_delta_max: int
    """Relative to the base timestamp of the batch."""
    all_have_keys: bool


_DELTA_MIN, _DELTA_MAX = -1 << 63, 1 << 63
_new_tuple = tuple.__new__  # a third of the cost of calling a NamedTuple


def inspect_records(payload: bytes | bytearray, count: int, pause: Callable[[], None] | None = None) -> RecordsSummary:
    """Check the encoded records of a batch; raise CorruptBatchError for the first that is not as described above.

    `pause` is called every few records: a thread sleeps there to leave the interpreter to others."""
    if count > len(payload):  # before anything is done per record
        raise CorruptBatchError(f"{count} records cannot be in {len(payload)} bytes")
    at = number = 0
    smallest, largest, has_keyless = _DELTA_MAX, _DELTA_MIN, False
    try:
        while True:
            until = count if pause is None else min(number + SLICE_RECORDS, count)
            at, number, smallest, largest, has_keyless = _walk(
                payload, count, until, pause, at, number, smallest, largest, has_keyless
            )
            if number >= count:
                break
            if pause is not None:
                pause()
    except IndexError:
        raise CorruptBatchError(f"the records end before the last of {count}") from None
    if at != len(payload):
        raise CorruptBatchError(f"{len(payload) - at} bytes follow the last of {count} records")
    return _new_tuple(RecordsSummary, (smallest, largest, not has_keyless))


def _walk(  # noqa: C901, PLR0912, PLR0915
    payload: bytes | bytearray,
    count: int,
    until: int,
    pause: Callable[[], None] | None,
    at: int,
    number: int,
    smallest: int,
    largest: int,
    has_keyless: bool,
) -> tuple[int, int, int, int, bool]:
    """Check records up to number `until`. Flat code with inlined short varints, because it runs per record."""
    size = len(payload)
    probe_from, previous_length = 0, -1
    while number < until:
        start = at
        byte = payload[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        elif (high := payload[at + 1]) < 0x80:
            length, at = ((byte & 0x7F | high << 7) >> 1) ^ -(byte & 1), at + 2
        else:
            length, at = read_varint(payload, at)
        end = at + length
        if length < 0 or end > size:
            raise CorruptBatchError(f"record {number} has {length} bytes, but only {size - at} are left")
        if length == previous_length and number >= probe_from:
            run = _run(payload, start, number, count)
            if run is not None:
                number += run.records
                at = start + run.records * (end - start)
                smallest, largest = min(smallest, run.smallest), max(largest, run.largest)
                has_keyless = has_keyless or run.is_keyless
                previous_length = -1
                continue
            probe_from = number + _PROBE_PAUSE
        previous_length = length
        byte = payload[at + 1]  # after the attributes, which nobody uses
        if byte < 0x80:
            delta, at = (byte >> 1) ^ -(byte & 1), at + 2
        elif (high := payload[at + 2]) < 0x80:
            delta, at = ((byte & 0x7F | high << 7) >> 1) ^ -(byte & 1), at + 3
        else:
            delta, at = read_varint(payload, at + 1, INT64_BYTES_MAX)
        if delta > largest:  # noqa: PLR1730 - a call takes three times as long
            largest = delta
        if delta < smallest:  # noqa: PLR1730
            smallest = delta
        byte = payload[at]
        if byte < 0x80:
            delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        elif (high := payload[at + 1]) < 0x80:
            delta, at = ((byte & 0x7F | high << 7) >> 1) ^ -(byte & 1), at + 2
        else:
            delta, at = read_varint(payload, at)
        if delta != number:
            raise CorruptBatchError(f"record {number} has the offset delta {delta}")
        byte = payload[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(payload, at)
        if length < 0:
            if length != -1:
                raise CorruptBatchError(f"the key of record {number} has {length} bytes")
            has_keyless = True
        else:
            at += length
            if at > end:
                raise CorruptBatchError(f"the key of record {number} is longer than the record")
        byte = payload[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        elif (high := payload[at + 1]) < 0x80:
            length, at = ((byte & 0x7F | high << 7) >> 1) ^ -(byte & 1), at + 2
        else:
            length, at = read_varint(payload, at)
        if length > 0:
            at += length
            if at > end:
                raise CorruptBatchError(f"the value of record {number} is longer than the record")
        elif length < -1:
            raise CorruptBatchError(f"the value of record {number} has {length} bytes")
        at = _skip_headers(payload, at, end, number, pause) if payload[at] else at + 1
        if at != end:
            raise CorruptBatchError(f"the fields of record {number} end at byte {at}, but its length says {end}")
        number += 1
    return at, number, smallest, largest, has_keyless


def _skip_headers(payload: bytes | bytearray, at: int, end: int, number: int, pause: Callable[[], None] | None) -> int:
    count, at = read_varint(payload, at)
    if count < 0 or count > end - at:
        raise CorruptBatchError(f"record {number} has {count} headers in {end - at} bytes")
    for done in range(1, count + 1):
        length, at = read_varint(payload, at)
        if length < 0 or at + length > end:
            raise CorruptBatchError(f"a header of record {number} has a key of {length} bytes")
        length, at = read_varint(payload, at + length)
        if length > 0:
            at += length
        if at > end or length < -1:
            raise CorruptBatchError(f"a header of record {number} has a value of {length} bytes")
        if pause is not None and not done % SLICE_RECORDS:
            pause()
    return at


# ---- runs of records of the same shape


class _Run(NamedTuple):
    records: int
    smallest: int
    largest: int
    """Timestamp deltas."""
    is_keyless: bool


class _Shape(NamedTuple):
    size: int
    constants: list[int]
    """Positions of the bytes that are the same in all records of a run."""
    timestamp_at: int
    timestamp_bytes: int
    offset_at: int
    offset_bytes: int
    is_keyless: bool


def _run(payload: bytes | bytearray, start: int, number: int, count: int) -> _Run | None:
    """Return the run of records that have the shape of the first and are valid.

    None if it is too short or the first record cannot begin one: such records are walked, which finds what is wrong."""
    shape = _shape(payload, start, number)
    if shape is None:
        return None
    size, constants, timestamp_at, timestamp_bytes, offset_at, offset_bytes, is_keyless = shape
    offset_end = (_ONE_BYTE_END, _TWO_BYTES_END, _TABLE_END)[offset_bytes - 1]
    longest = min(count - number, (len(payload) - start) // size, offset_end - number, _RUN_MAX)
    run = _records_alike(payload, start, size, constants, min(longest, _RUN_FIRST_TRY))
    if run == _RUN_FIRST_TRY < longest:
        run = _records_alike(payload, start, size, constants, longest)
    if run < _RUN_MIN or not _counts_offsets(payload, start + offset_at, size, run, number, offset_bytes):
        return None
    deltas = _timestamp_deltas(payload, start + timestamp_at, size, run, timestamp_bytes)
    return None if deltas is None else _Run(run, *deltas, is_keyless)


def _shape(payload: bytes | bytearray, start: int, number: int) -> _Shape | None:
    length, at = read_varint(payload, start)
    constants = list(range(at - start))
    end = at + length
    timestamp_at = at + 1
    _, offset_at = read_varint(payload, timestamp_at, INT64_BYTES_MAX)
    offset, key_at = read_varint(payload, offset_at)
    key_length, at = read_varint(payload, key_at)
    constants += range(key_at - start, at - start)
    value_at = at + key_length if key_length >= 0 else at
    if value_at >= end or offset != number:
        return None
    value_length, at = read_varint(payload, value_at)
    constants += range(value_at - start, at - start)
    if value_length > 0:
        at += value_length
    if min(key_length, value_length) < -1:
        return None
    timestamp_bytes, offset_bytes = offset_at - timestamp_at, key_at - offset_at
    expected_bytes = 1 if number < _ONE_BYTE_END else 2 if number < _TWO_BYTES_END else 3
    is_plain = at + 1 == end <= len(payload) and payload[at] == 0
    if not is_plain or timestamp_bytes > 2 or offset_bytes != expected_bytes or number >= _TABLE_END:
        return None
    constants.append(end - 1 - start)
    return _Shape(
        end - start, constants, timestamp_at - start, timestamp_bytes, offset_at - start, offset_bytes, key_length < 0
    )


def _records_alike(payload: bytes | bytearray, start: int, size: int, constants: list[int], run: int) -> int:
    """Return the number of records, at most `run`, that have the bytes of the first at the positions `constants`."""
    for position in constants:
        first = start + position
        column = payload[first : first + run * size : size]
        run = len(column) - len(column.lstrip(column[:1]))
    return run


def _counts_offsets(payload: bytes | bytearray, at: int, size: int, run: int, number: int, offset_bytes: int) -> bool:
    stop, end = run * size, number + run
    if offset_bytes == 1:
        return payload[at : at + stop : size] == _ONE[number:end]
    if payload[at : at + stop : size] != _LOW[number:end]:
        return False
    if offset_bytes == 2:
        return payload[at + 1 : at + 1 + stop : size] == _TWO[number:end]
    return (
        payload[at + 1 : at + 1 + stop : size] == _MIDDLE[number:end]
        and payload[at + 2 : at + 2 + stop : size] == _THREE[number:end]
    )


def _timestamp_deltas(
    payload: bytes | bytearray, at: int, size: int, run: int, timestamp_bytes: int
) -> tuple[int, int] | None:
    """Return the smallest and largest delta; None if they have different sizes or one is negative (odd in zigzag)."""
    low = payload[at : at + run * size : size]
    if low.translate(None, _EVEN):
        return None
    if timestamp_bytes == 1:
        return (min(low) >> 1, max(low) >> 1) if low.isascii() else None
    high = payload[at + 1 : at + 1 + run * size : size]
    if low.translate(None, _HIGH) or not high.isascii():
        return None
    if high.count(high[0]) == run:
        return (min(low) & 0x7F | high[0] << 7) >> 1, (max(low) & 0x7F | high[0] << 7) >> 1
    folded = list(starmap(_fold, zip(low, high, strict=True)))
    return min(folded) >> 1, max(folded) >> 1


def _fold(low: int, high: int) -> int:
    return low & 0x7F | high << 7
