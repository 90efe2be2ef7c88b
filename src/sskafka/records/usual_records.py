"""Pass over records that are valid for certain: shortcuts of the inspection.

Nearly all records that producers send are alike: lengths of one or two bytes, no headers, timestamps that do not go
back. A flat loop without calls checks them (compiled: 8 ns a record, interpreted: 330 to 500 ns). All other records,
including invalid ones, are left to `inspect_records`, which reports what is wrong with them.

The interpreter has one more shortcut, because it pays for every byte that it looks at. A run of records whose fields
all have the same sizes is checked by columns: a slice with the record size as its stride has one byte of each record,
and one comparison checks all of them (60 ns a record).

    length   attributes  timestamp  offset     key len   key  value len  value  header count
    const    any         varies     known      const     any  const      any    0
"""

from itertools import starmap
from typing import Final, NamedTuple, TypeAlias

from sskafka.compiled import IS_COMPILED
from sskafka.model.native import i64
from sskafka.records.varint import INT64_BYTES_MAX, read_varint

_RUN_MIN: Final = 8  # shorter runs cost more than walking the records
_RUN_FIRST_TRY: Final = 128
_RUN_MAX: Final = 1024  # bounds what is wasted on a run that ends in a record of another shape
_PROBE_PAUSE: Final = 64  # records to walk after a run that was too short
_NUMBER_END: Final = 1 << 20  # offset deltas below this have at most three bytes
_NO_KEY: Final = 1  # the varint -1
_UNUSUAL: Final = -1
_FOLDED_MAX: Final = (1 << 14) - 1  # in two bytes; more means that there is a third

# The offset delta i is written as zigzag varint of 2i: one byte below 64, two below 8192, three below 1048576.
_ONE_BYTE_END: Final = 64
_TWO_BYTES_END: Final = 8192
_TABLE_END: Final = 65536
_LOW: Final = bytes(0x80 | (2 * i & 0x7F) for i in range(64)) * (_TABLE_END // 64)
_MIDDLE: Final = b"".join(bytes([0x80 | i]) * 64 for i in range(128)) * (_TABLE_END // 8192)
_ONE: Final = bytes(range(0, 128, 2))
_TWO: Final = b"".join(bytes([i]) * 64 for i in range(128))
_THREE: Final = b"".join(bytes([i]) * 8192 for i in range(_TABLE_END // 8192))

_EVEN: Final = bytes(range(0, 256, 2))
_HIGH: Final = bytes(range(128, 256))


Progress: TypeAlias = tuple[i64, i64, int, int, bool]
"""Position, number of the next record, smallest and largest timestamp delta, whether a record had no key."""


def pass_usual_records(payload: bytes, until: i64, count: i64, progress: Progress) -> Progress:
    """Return the progress of the inspection at the first record that is not usual, or at `until`, or behind a run."""
    columns_from: i64 = _NUMBER_END if IS_COMPILED else 0
    while True:
        progress, is_alike = _walk_usual(payload, min(until, _NUMBER_END), columns_from, progress)
        if not is_alike:
            return progress
        at, number, smallest, largest, has_keyless = progress
        run = _run(payload, at, number, count)
        if run is None:
            columns_from = number + _PROBE_PAUSE
        else:
            smallest, largest = min(smallest, run.smallest), max(largest, run.largest)
            progress = at + run.size, number + run.records, smallest, largest, has_keyless or run.is_keyless


def _walk_usual(  # noqa: PLR0912, PLR0915 - flat, because every record passes here
    payload: bytes, until: i64, columns_from: i64, progress: Progress
) -> tuple[Progress, bool]:
    """Return the progress at the first record that is not usual, and False; or at a record that is as long as the one
    before it, and True, if its number is not below `columns_from`."""
    at, number, smallest, largest, has_keyless = progress
    earliest: i64 = _FOLDED_MAX
    latest: i64 = -1
    timestamp: i64 = -1
    previous_size: i64 = -1
    size: i64 = len(payload)
    is_alike = False
    try:
        while number < until and at + 1 < size:
            low: i64 = payload[at]
            body = at + 1
            if low >= 0x80:
                second: i64 = payload[body]
                low, body = low & 0x7F | second << 7, at + 2
            end = body + (low >> 1)
            if end > size:
                break  # the record goes on in the next window
            if end - at == previous_size and number >= columns_from:
                is_alike = True
                break
            delta: i64 = payload[body + 1]
            field = body + 2
            if delta >= 0x80:
                second = payload[field]
                delta, field = delta & 0x7F | second << 7, body + 3
            if (low | delta) & 1 or low > _FOLDED_MAX or delta > _FOLDED_MAX:
                break  # a negative number, or one of more than two bytes
            if delta != timestamp:
                timestamp = delta
                latest = max(latest, delta >> 1)
                earliest = min(earliest, delta >> 1)
            byte: i64 = payload[field]
            if number < _ONE_BYTE_END:
                field += 1
            elif number < _TWO_BYTES_END:
                second = payload[field + 1]
                byte, field = byte - 0x80 | second << 7, field + 2
            else:
                second = payload[field + 1]
                third: i64 = payload[field + 2]
                byte, field = byte - 0x80 | (second - 0x80 | third << 7) << 7, field + 3
            key_byte = _key_byte(payload, field, end) if byte == number << 1 else _UNUSUAL
            if key_byte == _UNUSUAL:
                break
            has_keyless = has_keyless or key_byte == _NO_KEY
            previous_size, at, number = end - at, end, number + 1
    except IndexError:
        pass  # a field ends behind the payload
    if latest >= 0:
        smallest, largest = min(smallest, int(earliest)), max(largest, int(latest))
    return (at, number, smallest, largest, has_keyless), is_alike


def _key_byte(payload: bytes, at: i64, end: i64) -> i64:
    """Return the byte at `at`, the length of the key, or _UNUSUAL if key and value do not fill the record exactly."""
    key: i64 = payload[at]
    if key & 0x81 and key != _NO_KEY:
        return _UNUSUAL
    at += 1 + (key >> 1)
    value: i64 = payload[at]
    if value < 0x80:
        at += 2 + (value >> 1)
    else:
        second: i64 = payload[at + 1]
        value = value & 0x7F | second << 7
        at += 3 + (value >> 1)
    return _UNUSUAL if at != end or value & 1 or value > _FOLDED_MAX or payload[end - 1] else key


# ---- runs of records of the same shape


class _Run(NamedTuple):
    records: int
    size: int
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


def _run(payload: bytes, start: int, number: int, count: int) -> _Run | None:
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
    return None if deltas is None else _Run(run, run * size, *deltas, is_keyless)


def _shape(payload: bytes, start: int, number: int) -> _Shape | None:
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


def _records_alike(payload: bytes, start: int, size: int, constants: list[int], run: int) -> int:
    """Return the number of records, at most `run`, that have the bytes of the first at the positions `constants`."""
    for position in constants:
        first = start + position
        column = payload[first : first + run * size : size]
        run = len(column) - len(column.lstrip(column[:1]))
    return run


def _counts_offsets(payload: bytes, at: int, size: int, run: int, number: int, offset_bytes: int) -> bool:
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


def _timestamp_deltas(payload: bytes, at: int, size: int, run: int, timestamp_bytes: int) -> tuple[int, int] | None:
    """Return the smallest and largest delta; None if they have different sizes or one is negative (odd in zigzag)."""
    low = payload[at : at + run * size : size]
    if low.translate(None, _EVEN):
        return None
    if timestamp_bytes == 1:
        values = _distinct(low)
        return (min(values) >> 1, max(values) >> 1) if values.isascii() else None
    high = payload[at + 1 : at + 1 + run * size : size]
    if low.translate(None, _HIGH) or not high.isascii():
        return None
    if high.count(high[0]) == run:
        values = _distinct(low)
        return (min(values) & 0x7F | high[0] << 7) >> 1, (max(values) & 0x7F | high[0] << 7) >> 1
    folded = list(starmap(_fold, zip(low, high, strict=True)))
    return min(folded) >> 1, max(folded) >> 1


def _distinct(column: bytes) -> bytes:
    """Return each byte once: a batch has few different timestamps, and `min` of all bytes would take 40 us."""
    values = b""
    while column:
        first = column[:1]
        values += first
        column = column.translate(None, first)
    return values


def _fold(low: int, high: int) -> int:
    return low & 0x7F | high << 7
