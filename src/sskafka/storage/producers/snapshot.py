"""`<offset>.snapshot`: the producers of a partition when the log ended at that offset.

size  field
   2  version, 1
   4  CRC-32C of everything after it
   4  number of producers, then for each:
        8  producer id
        2  producer epoch
        4  last sequence
        8  last offset
        4  last offset minus first offset of the last batch
        8  timestamp
        4  coordinator epoch
        8  first offset of the open transaction, -1 for none
"""

from collections.abc import Iterable, Iterator
from struct import Struct

from sskafka.records.crc import crc32c
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.producers.entry import ProducedBatch, ProducerEntry

SUFFIX = ".snapshot"
_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    entries = [_encode(producer) for producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str) -> list[ProducerEntry]:
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptFileError(f"{path} has only {len(data)} bytes")
    version, crc = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    (count,) = _COUNT.unpack_from(body)
    if version != _VERSION:
        raise CorruptFileError(f"{path} has version {version}, only {_VERSION} is known")
    if crc != crc32c(body):
        raise CorruptFileError(f"{path} does not match its checksum")
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptFileError(f"{path} has {len(body)} bytes for {count} producers")
    return list(_decode(body[_COUNT.size :]))


def _encode(producer: ProducerEntry) -> bytes:
    return _ENTRY.pack(
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_offset,
        producer.batches[-1].offset_delta if producer.batches else 0,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def _decode(entries: memoryview) -> Iterator[ProducerEntry]:
    for fields in _ENTRY.iter_unpack(entries):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction = fields
        producer = ProducerEntry(producer_id, epoch)
        if last_offset >= 0:
            producer.batches.append(ProducedBatch(last_sequence, last_offset, delta, timestamp))
        producer.last_timestamp = timestamp
        producer.coordinator_epoch = coordinator_epoch
        producer.transaction_first_offset = transaction
        yield producer
