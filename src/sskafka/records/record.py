"""Decode the records in a batch.

    size     field
    varint   length of the rest
         1   attributes (unused)
    varlong  timestamp minus the batch's base timestamp
    varint   offset minus the batch's base offset
    varint   key length (-1: no key), then the key
    varint   value length (-1: no value), then the value
    varint   header count, then per header: key length, key (UTF-8), value length (-1: none), value

Every length is checked against the remaining bytes before it is used. Invalid data raises CorruptBatchError.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.records.batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader, CorruptBatchError
from sskafka.records.compression import DECOMPRESSED_BYTES_MAX, codec_of, decompress, decompress_strictly
from sskafka.records.varint import INT64_BYTES_MAX, read_varint

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

# Header keys may contain bytes that are not UTF-8; this error handler preserves them, so they encode back unchanged.
HEADER_KEY_ERRORS = "surrogateescape"


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def decode_records(
    batch: Buffer, header: BatchHeader, position: int = 0, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """Decode the records of the batch at `position` lazily, so an error may be raised after some records."""
    data = payload(batch, header, position, max_bytes)
    if header.record_count < 0:
        raise CorruptBatchError(f"invalid record count {header.record_count}")
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    at = 0
    for _ in range(header.record_count):
        record, at = _decode_record(data, at, header.base_offset, header.base_timestamp)
        yield record if append_time is None else record._replace(timestamp=append_time)
    if at != len(data):
        raise CorruptBatchError(f"{len(data) - at} bytes follow the last of {header.record_count} records")


def payload(batch: Buffer, header: BatchHeader, position: int = 0, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the encoded records of a batch, decompressed."""
    return bytes(decompress(codec_of(header.compression), stored_payload(batch, header, position), max_bytes))


def produced_payload(
    batch: Buffer, header: BatchHeader, position: int, max_bytes: int
) -> bytes | bytearray | memoryview:
    """Like `payload`, for a batch from a producer: raise CorruptBatchError also if some consumers cannot decompress it.

    Neither stored nor decompressed records are copied: copying megabytes would stop all other threads."""
    return decompress_strictly(codec_of(header.compression), stored_payload(batch, header, position), max_bytes)


def stored_payload(batch: Buffer, header: BatchHeader, position: int) -> memoryview:
    """Return the records of a batch as they are stored, without a copy."""
    records = memoryview(batch)[position + HEADER_BYTES : position + header.size_bytes]
    if len(records) != header.size_bytes - HEADER_BYTES:
        raise CorruptBatchError(f"the batch is {header.size_bytes - HEADER_BYTES - len(records)} bytes too short")
    return records


def _decode_record(data: bytes, at: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    """Return one record and the position after it."""
    length, at = read_varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise CorruptBatchError(f"the record has {length} bytes, but only {len(data) - at} are left")
    timestamp_delta, at = read_varint(data, at + 1, INT64_BYTES_MAX)
    offset_delta, at = read_varint(data, at)
    key, at = _read_nullable(data, at, end)
    value, at = _read_nullable(data, at, end)
    count, at = read_varint(data, at)
    headers: Headers = ()
    if count > 0:
        headers, at = _read_headers(data, at, end, count)
    if at != end:
        raise CorruptBatchError(f"the fields of a record end at byte {at}, but its length says {end}")
    return Record(base_offset + offset_delta, base_timestamp + timestamp_delta, key, value, headers), end


def _read_nullable(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise CorruptBatchError(f"a field has {length} bytes, but only {end - at} are left in the record")
    return data[at : at + length], at + length


def _read_headers(data: bytes, at: int, end: int, count: int) -> tuple[Headers, int]:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, at = _read_nullable(data, at, end)
        if key is None:
            raise CorruptBatchError("a record header has no key")
        value, at = _read_nullable(data, at, end)
        headers.append((key.decode(errors=HEADER_KEY_ERRORS), value))
    return tuple(headers), at
