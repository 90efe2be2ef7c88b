"""Encode columns into record batches, thousands of records at a time; the reverse of decode.py.

    lengths of keys and values ─ numpy ─> varints ─┐
    keys, values ──────────────────────────────────┴─ Arrow joins row by row ─> the records, one after the other

No Python object is created for a record, unless it has headers.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sskafka.model.buffers import Buffer
from sskafka.pipelines.connector.binary_columns import Numbers, binary_column, bounds_and_bytes
from sskafka.records.batch import MAGIC, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from sskafka.records.builder import NO_PRODUCER_EPOCH, encode_headers, frame
from sskafka.records.compression import Compression, compress
from sskafka.records.record import Headers

BATCH_BYTES_MAX = 900_000  # below the default of max.message.bytes

_OVERHEAD_BYTES_MAX = 32
_FIXED_BYTES = 2  # attributes and a timestamp delta of 0
_NO_HEADERS = b"\x00"


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Columns(NamedTuple):
    """Records that are not assigned to a partition yet."""

    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: pa.BinaryArray
    """The encoded headers, as they are at the end of a record."""

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> "Columns":
        keys, values, headers = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), headers_column(headers))

    @classmethod
    def joined(cls, parts: "Sequence[Columns]") -> "Columns":
        return cls(*(pa.concat_arrays(column) for column in zip(*parts, strict=True)))

    def take(self, places: Numbers) -> "Columns":
        chosen = pa.array(places)
        return Columns(*(column.take(chosen) for column in self))

    def slice(self, start: int, end: int) -> "Columns":
        return Columns(*(column.slice(start, end - start) for column in self))


def headers_column(headers: Sequence[Headers]) -> pa.BinaryArray:
    return pa.array([encode_headers(some) if some else _NO_HEADERS for some in headers], pa.binary())


def no_headers(count: int) -> pa.BinaryArray:
    return pa.repeat(pa.scalar(_NO_HEADERS, pa.binary()), count)


class Payload(NamedTuple):
    """Encoded records of one batch, without its header."""

    records: Buffer
    record_count: int


def payloads(rows: Sequence[Row], bytes_max: int = BATCH_BYTES_MAX) -> Iterator[Payload]:
    return payloads_of(Columns.of_rows(rows), bytes_max)


def payloads_of(columns: Columns, bytes_max: int = BATCH_BYTES_MAX) -> Iterator[Payload]:
    """Yield the records in as few batches as fit into `bytes_max` each; a larger record is a batch of its own."""
    count = len(columns.keys)
    ends = np.cumsum(_bytes_of(columns) + _OVERHEAD_BYTES_MAX)
    start = 0
    while start < count:
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + bytes_max, side="right")))
        yield Payload(_records(columns.slice(start, end)), end - start)
        start = end


def _records(columns: Columns) -> Buffer:
    keys, values, headers = columns
    places = _varints(np.arange(len(keys)))
    key_lengths, value_lengths = _varints(_lengths(keys)), _varints(_lengths(values))
    sizes = _FIXED_BYTES + places.sizes + key_lengths.sizes + value_lengths.sizes + _bytes_of(columns)
    before_key = _side_by_side(_varints(sizes), _zeros(len(keys)), places, key_lengths)
    pieces = (before_key.as_column(), keys, value_lengths.as_column(), values, headers)
    joined = pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement="")
    return memoryview(joined.buffers()[2])[: joined.total_values_length]


def _bytes_of(columns: Columns) -> Numbers:
    """Return the size of key, value and headers of each record in bytes."""
    keys, values, headers = (np.diff(bounds_and_bytes(column)[0]) for column in columns)
    return keys + values + headers


def _lengths(column: pa.BinaryArray) -> Numbers:
    """Return the lengths of the values; -1 for a null."""
    lengths = np.diff(bounds_and_bytes(column)[0])
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


class _Bytes(NamedTuple):
    """A matrix with some bytes for each record, and a mask of those that are used."""

    matrix: npt.NDArray[np.uint8]
    present: npt.NDArray[np.bool_]

    @property
    def sizes(self) -> Numbers:
        sizes: Numbers = self.present.sum(axis=1, dtype=np.int64)
        return sizes

    def as_column(self) -> pa.BinaryArray:
        return binary_column(self.matrix, self.present)


def _varints(numbers: Numbers) -> _Bytes:
    folded = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    width = max(1, -(-int(folded.max()).bit_length() // 7))
    rests = folded[:, np.newaxis] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    present = rests != 0
    present[:, 0] = True
    matrix = (rests & np.uint64(0x7F)).astype(np.uint8)
    matrix[:, :-1] |= present[:, 1:].astype(np.uint8) << np.uint8(7)
    return _Bytes(matrix, present)


def _zeros(count: int) -> _Bytes:
    shape = (count, _FIXED_BYTES)
    return _Bytes(np.zeros(shape, dtype=np.uint8), np.ones(shape, dtype=np.bool_))


def _side_by_side(*parts: _Bytes) -> _Bytes:
    return _Bytes(np.hstack([part.matrix for part in parts]), np.hstack([part.present for part in parts]))


def framed(
    payload: Payload,
    *,
    timestamp: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    codec: Compression = Compression.NONE,
    transactional: bool = False,
) -> Buffer:
    header = BatchHeader(
        base_offset=0,
        length=0,  # set when the records are compressed
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | TRANSACTIONAL * transactional,
        last_offset_delta=payload.record_count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=payload.record_count,
    )
    return frame(header, compress(codec, payload.records))
