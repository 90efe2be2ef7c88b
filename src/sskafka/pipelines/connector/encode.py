"""Rows to record batches, in bulk: keys and values are glued together by one join a batch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sskafka.model.buffers import Buffer
from sskafka.records.batch import MAGIC, TRANSACTIONAL, BatchHeader
from sskafka.records.builder import encode_record, frame
from sskafka.records.compression import Compression, compress
from sskafka.records.record import Headers
from sskafka.records.varint import encode_varint

Key: TypeAlias = bytes | None

BATCH_BYTES_MAX = 900_000  # below max.message.bytes of a broker that nobody configured

_NULL = encode_varint(-1)
_VARINTS = [encode_varint(number) for number in range(1 << 14)]
_TWO_ZEROS = b"\x00\x00"  # attributes, and no difference to the batch's timestamp
_NO_HEADERS = b"\x00"


class Row(NamedTuple):
    key: Key
    value: Key
    headers: Headers = ()


class Payload(NamedTuple):
    """Records of one batch, encoded but not framed."""

    records: bytes
    record_count: int


def payloads(rows: Sequence[Row], bytes_max: int = BATCH_BYTES_MAX) -> Iterator[Payload]:
    """The rows in as few batches as fit below `bytes_max` each; a row above that is a batch of its own."""
    start, size = 0, 0
    for place, row in enumerate(rows):
        row_bytes = len(row.key or b"") + len(row.value or b"") + 32 + sum(len(name) + 32 for name, _ in row.headers)
        if size and size + row_bytes > bytes_max:
            yield Payload(_records(rows[start:place]), place - start)
            start, size = place, 0
        size += row_bytes
    if start < len(rows):
        yield Payload(_records(rows[start:]), len(rows) - start)


def _records(rows: Sequence[Row]) -> bytes:
    parts: list[bytes] = []
    for place, (key, value, headers) in enumerate(rows):
        if headers:
            parts.append(encode_record(place, 0, key, value, headers))
            continue
        offset = _varint(place)
        key_length = _NULL if key is None else _varint(len(key))
        value_length = _NULL if value is None else _varint(len(value))
        body = (_TWO_ZEROS, offset, key_length, key or b"", value_length, value or b"", _NO_HEADERS)
        parts.append(_varint(sum(map(len, body))))
        parts += body
    return b"".join(parts)


def _varint(number: int) -> bytes:
    return _VARINTS[number] if number < 1 << 14 else encode_varint(number)


def framed(
    payload: Payload,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    codec: Compression,
    transactional: bool,
) -> Buffer:
    header = BatchHeader(
        base_offset=0,
        length=0,  # known once the records are compressed
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


_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)


def partitions_of_keys(keys: Sequence[bytes], partition_count: int) -> npt.NDArray[np.int64]:
    """The partition of each key by Kafka's murmur2; keys of one length are hashed together."""
    lengths = np.array([len(key) for key in keys], dtype=np.int64)
    hashes = np.empty(len(keys), dtype=np.uint32)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        joined = b"".join(keys[place] for place in places.tolist())
        hashes[places] = _murmur2_of_equal_length(joined, len(places), length)
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count


def _murmur2_of_equal_length(joined: bytes, count: int, length: int) -> npt.NDArray[np.uint32]:
    """records.partitioner.murmur2, for `count` keys that stand one behind the other."""
    matrix = np.frombuffer(joined, dtype=np.uint8).reshape(count, length)
    hashed = np.full(count, (_SEED ^ length) & 0xFFFFFFFF, dtype=np.uint32)
    whole = length & ~3
    words = np.ascontiguousarray(matrix[:, :whole]).view("<u4")
    for column in range(whole // 4):
        mixed = words[:, column] * _MULTIPLIER
        mixed = (mixed ^ (mixed >> np.uint32(24))) * _MULTIPLIER
        hashed = (hashed * _MULTIPLIER) ^ mixed
    if length > whole:
        tail = np.zeros((count, 4), dtype=np.uint8)
        tail[:, : length - whole] = matrix[:, whole:]
        hashed = (hashed ^ tail.view("<u4")[:, 0]) * _MULTIPLIER
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _MULTIPLIER
    return hashed ^ (hashed >> np.uint32(15))
