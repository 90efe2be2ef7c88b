"""Build record batches, for producers and for the records that brokers write themselves.

`build_batch` makes a batch of a known set of records. `BatchBuilder` adds records one by one and knows its current
size, for producers that fill batches up to a limit.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    write_crc,
    write_header,
)
from sskafka.records.compression import Compression, compress
from sskafka.records.record import HEADER_KEY_ERRORS, Headers
from sskafka.records.varint import encode_varint

NO_LEADER_EPOCH = -1
NO_PRODUCER_EPOCH = -1

# Upper bound for the fields other than key, value and headers: length, attributes, two deltas, two lengths, a count.
RECORD_OVERHEAD_BYTES_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5

_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)


class NewRecord(NamedTuple):
    """A record without an offset."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP


class BatchBuilder:
    """Encodes records as they are appended; `build` adds the header and may be called again with other sequences."""

    __slots__ = ("_base_timestamp", "_count", "_max_timestamp", "_payload")

    def __init__(self) -> None:
        self._payload = bytearray()
        self._count = 0
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Size of the batch before compression."""
        return HEADER_BYTES + len(self._payload)

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp: int) -> int:
        """Add a record and return its offset delta."""
        offset_delta = self._count
        if offset_delta == 0:
            self._base_timestamp = timestamp
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self._payload += encode_record(offset_delta, timestamp - self._base_timestamp, key, value, headers)
        self._count = offset_delta + 1
        return offset_delta

    def build(
        self,
        *,
        base_offset: int = 0,
        compression: Compression = Compression.NONE,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        leader_epoch: int = NO_LEADER_EPOCH,
        transactional: bool = False,
        control: bool = False,
        append_time: bool = False,
    ) -> bytearray:
        flags = TRANSACTIONAL * transactional | CONTROL * control | LOG_APPEND_TIME * append_time
        header = BatchHeader(
            base_offset=base_offset,
            length=0,  # known once the records are compressed
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=compression | flags,
            last_offset_delta=max(self._count - 1, 0),
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=self._count,
        )
        return frame(header, compress(compression, self._payload))


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    append_time: bool = False,
) -> bytearray:
    """Build one batch of `records`, with consecutive offsets from `base_offset` on."""
    builder = BatchBuilder()
    for record in records:
        builder.append(record.key, record.value, record.headers, record.timestamp)
    return builder.build(
        base_offset=base_offset,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
        transactional=transactional,
        control=control,
        append_time=append_time,
    )


def recompress(header: BatchHeader, payload: Buffer, codec: Compression, level: int | None = None) -> bytearray:
    """Return the batch with its records, given decompressed, compressed by `codec` and otherwise unchanged."""
    attributes = (header.attributes & ~COMPRESSION_MASK) | codec
    return frame(header._replace(attributes=attributes), compress(codec, payload, level))


def frame(header: BatchHeader, records: Buffer) -> bytearray:
    """Build a batch from `header` and encoded `records`, setting its length and CRC."""
    size_bytes = HEADER_BYTES + len(records)
    batch = bytearray(size_bytes)
    write_header(batch, header._replace(length=size_bytes - LOG_OVERHEAD_BYTES))
    batch[HEADER_BYTES:] = records
    write_crc(batch, 0, size_bytes)
    return batch


def encode_record(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Headers = ()
) -> bytes:
    """Encode one record; see record.py for the layout."""
    body = b"".join(
        (
            b"\x00",
            encode_varint(timestamp_delta),
            encode_varint(offset_delta),
            _NULL if key is None else encode_varint(len(key)),
            key or b"",
            _NULL if value is None else encode_varint(len(value)),
            value or b"",
            encode_headers(headers) if headers else _NO_HEADERS,
        )
    )
    return encode_varint(len(body)) + body


def encoded_size_max(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return an upper bound for the encoded size of a record, to decide whether it still fits into a batch."""
    size = RECORD_OVERHEAD_BYTES_MAX + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 2 * 5 + 4 * len(name) + len(content or b"")  # a character takes up to 4 bytes in UTF-8
    return size


def encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, value in headers:
        key = name.encode(errors=HEADER_KEY_ERRORS)
        parts += (encode_varint(len(key)), key)
        parts += (_NULL,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)
