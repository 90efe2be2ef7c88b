"""Check the records of a batch without decoding them: what a broker must know before it stores a batch.

Every record has to fit exactly into its length, all of its fields into the record, the records into the batch, and the
offset deltas have to count from 0. Consumers cannot read a batch that violates these rules, so the leader rejects it.
The same walk finds the smallest and the largest timestamp and whether each record has a key.

`_check_record` has the rules. The shortcuts of usual_records.py come first: they pass over records that are valid for
certain, in a third of the time, and leave all others to this check.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from sskafka.compiled import IS_COMPILED
from sskafka.model.native import i64
from sskafka.records.batch import CorruptBatchError
from sskafka.records.usual_records import Progress, pass_usual_records
from sskafka.records.varint import INT32_BYTES_MAX, INT64_BYTES_MAX, read_varint

SLICE_RECORDS: Final = 256
"""Records or record headers between two calls of `pause`."""

WINDOW_BYTES: Final = 1 << 16 if IS_COMPILED else 1 << 20
"""The part of the records that is copied and checked at a time. Compiled, it fits into a processor's caches beside
the batch; interpreted, the shortcuts need many records at once."""

_WINDOW_END: Final = -1  # in place of a position: the record continues behind the part of the data that is checked
_SHORTCUT_PAUSE: Final = 32  # records to check after a shortcut that passed over none


class RecordsSummary(NamedTuple):
    timestamp_delta_min: int
    timestamp_delta_max: int
    """Relative to the base timestamp of the batch."""
    all_have_keys: bool


_START: Progress = (0, 0, 1 << 63, -1 << 63, False)
_new_tuple: Final = tuple.__new__  # a third of the cost of calling a NamedTuple


def inspect_records(
    payload: bytes | bytearray | memoryview,
    count: int,
    pause: Callable[[], None] | None = None,
    window_bytes: int = WINDOW_BYTES,
    shortcuts: bool = True,
) -> RecordsSummary:
    """Check the encoded records of a batch; raise CorruptBatchError for the first record that violates the rules above.

    `pause` is called every few records: a thread sleeps there to leave the interpreter to others. Records in a buffer
    other than `bytes` are copied and checked `window_bytes` at a time. Without `shortcuts` the result is the same."""
    if count > len(payload):  # before anything is done per record
        raise CorruptBatchError(f"{count} records cannot be in {len(payload)} bytes")
    if not isinstance(payload, bytes):
        progress = _walk_windows(payload, count, pause, window_bytes, shortcuts)
    elif pause is None:
        progress = pass_usual_records(payload, count, count, _START) if shortcuts else _START
        if progress[1] < count:
            progress = _walk(payload, 0, count, count, None, progress, shortcuts)
    else:
        progress = _walk_slices(payload, 0, count, pause, _START, shortcuts)
    if progress[0] != len(payload):
        raise CorruptBatchError(f"{len(payload) - progress[0]} bytes follow the last of {count} records")
    return _new_tuple(RecordsSummary, (progress[2], progress[3], not progress[4]))


def _walk_slices(
    payload: bytes, more: int, count: int, pause: Callable[[], None], progress: Progress, shortcuts: bool
) -> Progress:
    """Check records, with a pause after each slice."""
    while True:
        before = progress[1]
        until = min(before + SLICE_RECORDS, count)
        progress = _walk(payload, more, until, count, pause, progress, shortcuts)
        if progress[1] >= count or progress[1] < until:
            return progress
        pause()


def _walk_windows(
    payload: bytearray | memoryview,
    count: int,
    pause: Callable[[], None] | None,
    window_bytes: int,
    shortcuts: bool,
) -> Progress:
    """Check records in copies of parts of `payload`. Copying all of it at once would stop all other threads, and would
    evict from the processor's caches the batch that is written next."""
    start, size, progress = 0, window_bytes, _START
    while True:
        window = memoryview(payload)[start : start + size].tobytes()
        more = len(payload) - start - len(window)
        if pause is None:
            progress = _walk(window, more, count, count, None, progress, shortcuts)
        else:
            progress = _walk_slices(window, more, count, pause, progress, shortcuts)
        at, number, smallest, largest, has_keyless = progress
        if number >= count:
            return start + at, number, smallest, largest, has_keyless
        size = window_bytes if at else size * 2  # a record that does not fit needs a larger window
        start += at
        progress = 0, number, smallest, largest, has_keyless
        if pause is not None:
            pause()


def _walk(
    payload: bytes,
    more: i64,
    until: i64,
    count: i64,
    pause: Callable[[], None] | None,
    progress: Progress,
    shortcuts: bool,
) -> Progress:
    """Check the records up to number `until`, or to the first that goes on in the `more` bytes behind `payload`."""
    at, number, smallest, largest, has_keyless = progress
    careful_until: i64 = 0 if shortcuts else count
    while number < until:
        if number >= careful_until:
            before = number
            at, number, smallest, largest, has_keyless = pass_usual_records(
                payload, until, count, (at, number, smallest, largest, has_keyless)
            )
            if number >= until:
                break
            careful_until = number + (1 if number > before else _SHORTCUT_PAUSE)
        end, delta, has_key = _check_record(payload, at, number, more, pause)
        if end == _WINDOW_END:
            break
        at = end
        if delta > largest:  # noqa: PLR1730 - a call takes three times as long
            largest = delta
        if delta < smallest:  # noqa: PLR1730
            smallest = delta
        if not has_key:
            has_keyless = True
        number += 1
    return at, number, smallest, largest, has_keyless


def _check_record(
    payload: bytes, at: i64, number: i64, more: i64, pause: Callable[[], None] | None
) -> tuple[i64, int, bool]:
    """Return the position after the record or _WINDOW_END, its timestamp delta, and whether it has a key."""
    size: i64 = len(payload)
    if more and size - at < INT32_BYTES_MAX:
        return _WINDOW_END, 0, False
    value, at = read_varint(payload, at)
    length: i64 = value
    end = at + length
    if length < 0 or end > size + more:
        raise CorruptBatchError(f"record {number} has {length} bytes, but only {size + more - at} are left")
    if end > size:
        return _WINDOW_END, 0, False
    timestamp_delta, at = read_varint(payload, at + 1, INT64_BYTES_MAX)  # after the attributes, which are unused
    value, at = read_varint(payload, at)
    if value != number:
        raise CorruptBatchError(f"record {number} has the offset delta {value}")
    value, at = read_varint(payload, at)
    length = value
    if length < -1:
        raise CorruptBatchError(f"the key of record {number} has {length} bytes")
    has_key = length >= 0
    if has_key:
        at += length
    if at > end:
        raise CorruptBatchError(f"the key of record {number} is longer than the record")
    value, at = read_varint(payload, at)
    length = value
    if length < -1:
        raise CorruptBatchError(f"the value of record {number} has {length} bytes")
    if length > 0:
        at += length
    if at > end:
        raise CorruptBatchError(f"the value of record {number} is longer than the record")
    value, at = read_varint(payload, at)
    if value != 0:
        at = _skip_headers(payload, at, end, number, value, pause)
    if at != end:
        raise CorruptBatchError(f"the fields of record {number} end at byte {at}, but its length says {end}")
    return at, timestamp_delta, has_key


def _skip_headers(payload: bytes, at: i64, end: i64, number: i64, count: int, pause: Callable[[], None] | None) -> i64:
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
