"""Decode record batches into Arrow, thousands of records at a time.

    bytes of a fetch ─ headers ─> joined payloads ─ lengths ─> starts of all records ─ numpy ─> columns ─> Arrow

Only the walk from record to record runs in Python, because the length of each record gives the position of the next
one; consecutive records of the same length are one step. numpy reads the other fields of all records at once, and Arrow
gathers keys and values from the joined payloads. No Python object is created for a record.

Control batches, records of aborted transactions and records outside the requested offsets are left out.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sskafka.client.fetched import AbortedTransactions
from sskafka.model.buffers import Buffer
from sskafka.pipelines.connector.columns import HEADERS_TYPE, TIMESTAMP_TYPE, arrow_schema
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    read_header,
    read_offset_and_size,
)
from sskafka.records.compression import Compression, codec_of, decompress
from sskafka.records.varint import read_varint

Numbers: TypeAlias = npt.NDArray[np.int64]

_VARINT_BYTES_MAX = 10
_PADDING = bytes(_VARINT_BYTES_MAX)
_RUN_WINDOW = 32


class DataBatch(NamedTuple):
    """The records of one batch, not decoded yet."""

    header: BatchHeader
    payload: Buffer


class Fetched(NamedTuple):
    """The result of one fetch for a range: its batches, and the next offset to fetch."""

    batches: list[DataBatch]
    next_offset: int


def read_batches(
    buffer: Buffer,
    wanted: OffsetRange,
    *,
    aborted: Iterable[tuple[int, int]] = (),
    check_crcs: bool = True,
    include_markers: bool = False,
) -> Fetched:
    """Split a fetch response into batches. This is cheap, so the next fetch is sent before records are decoded.

    Control batches are left out unless `include_markers` is set."""
    hidden = AbortedTransactions(aborted)
    batches: list[DataBatch] = []
    next_offset = wanted.start
    for position, header in _whole_batches(buffer):
        if header.base_offset >= wanted.end:
            return Fetched(batches, wanted.end)
        if header.last_offset < wanted.start:
            continue
        if check_crcs and not crc_matches(buffer, header, position):
            raise CorruptBatchError(
                f"{wanted.partition}: the batch at offset {header.base_offset} has a wrong checksum"
            )
        is_hidden = hidden.is_aborted(buffer, position, header) or (header.is_control and not include_markers)
        if not is_hidden:
            payload = memoryview(buffer)[position + HEADER_BYTES : position + header.size_bytes]
            batches.append(DataBatch(header, payload))
        next_offset = header.next_offset
    return Fetched(batches, next_offset)


def _whole_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield complete batches. A broker may truncate the last one, which is then fetched again."""
    position, end = 0, len(buffer)
    while end - position >= HEADER_BYTES and position + read_offset_and_size(buffer, position)[1] <= end:
        header = read_header(buffer, position)
        check_structure(header, end - position)
        yield position, header
        position += header.size_bytes


def to_arrow(batches: list[DataBatch], wanted: OffsetRange, *, include_headers: bool = False) -> pa.RecordBatch:
    """Return the records of `batches` that are in the requested range."""
    data, starts = joined_records(batches)
    fields = _read_fields(data, starts)
    counts = [batch.header.record_count for batch in batches]
    offsets = fields.offset_deltas + _of_each(batches, counts, "base_offset")
    chosen = _chosen(offsets, wanted)
    columns = [
        _gathered(data, fields.key_starts, fields.key_lengths, chosen),
        _gathered(data, fields.value_starts, fields.value_lengths, chosen),
        *_topic_and_partition(wanted, len(offsets) if chosen is None else len(chosen)),
        pa.array(_at(offsets, chosen)),
        _timestamps(batches, counts, fields.timestamp_deltas, chosen),
        pa.array(_at(_append_time_flags(batches, counts), chosen), type=pa.int32()),
    ]
    if include_headers:
        columns.append(_headers(data, _at(fields.header_starts, chosen)))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(include_headers=include_headers))


# Positions of records


def joined_records(batches: list[DataBatch]) -> tuple[bytes, Numbers]:
    """Return all payloads joined, and the position of every record in them."""
    payloads = [_plain(batch) for batch in batches]
    data = b"".join((*payloads, _PADDING))
    starts: list[int] = []
    position = 0
    for batch, payload in zip(batches, payloads, strict=True):
        end = position + len(payload)
        _walk(data, position, end, batch.header, starts)
        position = end
    starts.append(position)
    return data, np.array(starts, dtype=np.int64)


def _plain(batch: DataBatch) -> Buffer:
    codec = codec_of(batch.header.compression)
    return batch.payload if codec is Compression.NONE else decompress(codec, batch.payload)


def _walk(data: bytes, position: int, end: int, header: BatchHeader, starts: list[int]) -> None:
    """Append the start of each record of one batch."""
    left, window, last_size = header.record_count, _RUN_WINDOW, -1
    append = starts.append
    while left > 0 and position < end:
        append(position)
        left -= 1
        first = data[position]
        if first < 0x80:
            size = 1 + (first >> 1)
        elif (second := data[position + 1]) < 0x80:
            size = 2 + ((second << 7 | first & 0x7F) >> 1)
        else:
            length, after = read_varint(data, position)
            size = after - position + length
        if size <= 1:
            raise CorruptBatchError(f"a record of {size} bytes in the batch at offset {header.base_offset}")
        position += size
        if size == last_size:
            run = _run_length(data, position, end, size, min(window, left))
            starts.extend(range(position, position + run * size, size))
            window = 2 * window if run == window else _RUN_WINDOW
            position += run * size
            left -= run
        last_size = size
    if left or position != end:
        raise CorruptBatchError(f"the records of the batch at offset {header.base_offset} are shorter than the batch")


def _run_length(data: bytes, position: int, end: int, size: int, limit: int) -> int:
    """Return how many of the next records have the same length prefix as the record before `position`, at most `limit`.

    If each of them is `size` bytes long, the prefix of the next one is where it is expected, so the count is exact.
    """
    stop = min(end, position + limit * size)
    run = limit
    for byte in range(_prefix_bytes(size)):
        same = data[position - size + byte : position - size + byte + 1]
        column = data[position + byte : stop : size]
        run = min(run, len(column) - len(column.lstrip(same)))
    return run


def _prefix_bytes(size: int) -> int:
    """Return the size of the length prefix of a record that has `size` bytes including its prefix."""
    prefix = 1
    while (size - prefix) >= 1 << (7 * prefix - 1):
        prefix += 1
    return prefix


# Fields of all records


class _Fields(NamedTuple):
    timestamp_deltas: Numbers
    offset_deltas: Numbers
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers
    header_starts: Numbers


def _read_fields(data: bytes, starts: Numbers) -> _Fields:
    source = np.frombuffer(data, dtype=np.uint8)
    try:
        lengths, at = _read_varints(source, starts[:-1])
        ends = at + lengths
        timestamp_deltas, at = _read_varints(source, at + 1)
        offset_deltas, at = _read_varints(source, at)
        key_lengths, key_starts = _read_varints(source, at)
        value_lengths, value_starts = _read_varints(source, key_starts + np.maximum(key_lengths, 0))
        header_starts = value_starts + np.maximum(value_lengths, 0)
    except IndexError:
        raise CorruptBatchError("a record's fields extend past the end of its batch") from None
    if (ends != starts[1:]).any() or (header_starts >= ends).any():
        raise CorruptBatchError("a record's fields extend past the end of the record")
    return _Fields(timestamp_deltas, offset_deltas, key_starts, key_lengths, value_starts, value_lengths, header_starts)


def _read_varints(source: npt.NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """Return the zigzag number at each position, and the position after each of them."""
    byte = source[at]
    values = (byte & 0x7F).astype(np.int64)
    behind = at + 1
    pending = np.flatnonzero(byte & 0x80)
    shift = 7
    while pending.size:
        if shift > 63:
            raise CorruptBatchError(f"a number has more than {_VARINT_BYTES_MAX} bytes")
        byte = source[behind[pending]]
        values[pending] |= (byte & 0x7F).astype(np.int64) << shift
        behind[pending] += 1
        pending = pending[(byte & 0x80) != 0]
        shift += 7
    unfolded = (values.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return unfolded ^ -(values & 1), behind


# Columns


def _chosen(offsets: Numbers, wanted: OffsetRange) -> Numbers | None:
    """Return the indexes of the records in the requested range; None if all of them are."""
    if not len(offsets) or (offsets[0] >= wanted.start and offsets[-1] < wanted.end):
        return None
    return np.flatnonzero((offsets >= wanted.start) & (offsets < wanted.end))


def _at(values: npt.NDArray[Any], chosen: Numbers | None) -> npt.NDArray[Any]:
    return values if chosen is None else values[chosen]


def _of_each(batches: list[DataBatch], counts: list[int], name: str) -> Numbers:
    return np.repeat(np.array([getattr(batch.header, name) for batch in batches], dtype=np.int64), counts)


def _gathered(data: bytes, starts: Numbers, lengths: Numbers, chosen: Numbers | None) -> pa.Array:
    """Return a binary column whose values are scattered in `data`; a negative length is a null.

    Arrow sees `data` as an array of value, gap, value, gap, ... and takes every second item of it.
    """
    count = len(starts)
    missing = lengths < 0
    if missing.all():
        return pa.nulls(count if chosen is None else len(chosen), pa.binary())
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = starts + np.maximum(lengths, 0)
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    wanted = np.arange(0, 2 * count, 2) if chosen is None else 2 * chosen
    return pieces.take(pa.array(wanted, mask=_at(missing, chosen)) if missing.any() else pa.array(wanted))


def _topic_and_partition(wanted: OffsetRange, count: int) -> tuple[pa.Array, pa.Array]:
    topic, partition = wanted.partition
    return pa.repeat(pa.scalar(topic), count), pa.repeat(pa.scalar(partition, pa.int32()), count)


def _timestamps(batches: list[DataBatch], counts: list[int], deltas: Numbers, chosen: Numbers | None) -> pa.Array:
    """Return timestamps in Arrow's microseconds; with LogAppendTime, all records of a batch have the same one."""
    created = deltas + _of_each(batches, counts, "base_timestamp")
    if any(batch.header.attributes & LOG_APPEND_TIME for batch in batches):
        appended = _of_each(batches, counts, "max_timestamp")
        created = np.where(_append_time_flags(batches, counts) == 1, appended, created)
    return pa.array(_at(created, chosen) * 1000).view(TIMESTAMP_TYPE)


def _append_time_flags(batches: list[DataBatch], counts: list[int]) -> npt.NDArray[np.int32]:
    flags = [1 if batch.header.attributes & LOG_APPEND_TIME else 0 for batch in batches]
    return np.repeat(np.array(flags, dtype=np.int32), counts)


def _headers(data: bytes, starts: Numbers) -> pa.Array:
    """Return headers, null for a record without any, as in Spark's own source. They are decoded one by one."""
    source = np.frombuffer(data, dtype=np.uint8)
    counts, behind = _read_varints(source, starts)
    if not (counts > 0).any():
        return pa.nulls(len(starts), HEADERS_TYPE)
    rows = [
        _headers_of_one(data, at, count) if count > 0 else None
        for count, at in zip(counts.tolist(), behind.tolist(), strict=True)
    ]
    return pa.array(rows, type=HEADERS_TYPE)


def _headers_of_one(data: bytes, at: int, count: int) -> list[dict[str, Any]]:
    headers = []
    for _ in range(count):
        length, at = read_varint(data, at)
        key = data[at : at + length].decode(errors="replace")
        length, at = read_varint(data, at + length)
        headers.append({"key": key, "value": None if length < 0 else data[at : at + length]})
        at += max(length, 0)
    return headers
