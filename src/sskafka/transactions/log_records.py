"""Records of `__transaction_state`: Kafka's TransactionLogKey and TransactionLogValue.

Both are prefixed with their version, an int16. A key without a value is a tombstone: the id is removed. Version 1 of
the value requires transaction.version 1; only version 1 has the fields for the second version of the protocol.

Besides Kafka's fields, version 1 has `last_producer_epoch`, a tagged field that other software ignores. With it, the
next coordinator recognizes a producer that repeats InitProducerId because the first response was lost.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.computation import Computation, finished
from sskafka.model.coordination import StateRecord
from sskafka.model.ids import TopicPartition
from sskafka.transactions.metadata import TransactionMetadata, TransactionState
from sskafka.wire.codec import decode, decode_in_slices, encode
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

KEY_VERSION = 0
FLEXIBLE_FROM = 1
"""The level of transaction.version that allows version 1 of the value."""
_VERSION_BYTES = 2


class TransactionRecord(NamedTuple):
    """The new state of a transactional id; None for a tombstone."""

    transactional_id: str
    metadata: TransactionMetadata | None


def encode_record(record: TransactionRecord, version: int) -> StateRecord:
    """Encode the record. `version` is that of the value, see `value_version`."""
    known = record.metadata
    value = None if known is None else encode_value(known, version)
    return StateRecord(encode_key(record.transactional_id), value)


def decode_record(record: StateRecord) -> TransactionRecord | None:
    """None for records of kinds that this version does not know."""
    return finished(decode_record_in_steps(record))


def decode_record_in_steps(record: StateRecord) -> Computation[TransactionRecord | None]:
    """As `decode_record`, for a transaction with thousands of partitions."""
    transactional_id = decode_key(record.key)
    if transactional_id is None:
        return None
    known = None if record.value is None else (yield from _decode_value(transactional_id, record.value))
    return TransactionRecord(transactional_id, known)


def value_version(transaction_version: int) -> int:
    return 1 if transaction_version >= FLEXIBLE_FROM else 0


def encode_key(transactional_id: str) -> bytes:
    return _prefixed(KEY_VERSION, encode(TransactionLogKey(transactional_id), KEY_VERSION))


def encode_value(known: TransactionMetadata, version: int) -> bytes:
    value = TransactionLogValue(
        producer_id=known.producer_id,
        previous_producer_id=known.previous_producer_id if version else -1,
        next_producer_id=known.next_producer_id if version else -1,
        producer_epoch=known.producer_epoch,
        next_producer_epoch=known.next_producer_epoch if version else -1,
        transaction_timeout_ms=known.timeout_ms,
        transaction_status=known.state,
        transaction_partitions=None if known.state is TransactionState.EMPTY else _by_topic(known.partitions),
        transaction_last_update_timestamp_ms=known.last_update_ms,
        transaction_start_timestamp_ms=known.start_ms,
        client_transaction_version=known.client_version if version else 0,
        last_producer_epoch=known.last_producer_epoch if version else -1,
    )
    return _prefixed(version, encode(value, version))


def decode_key(key: Buffer | None) -> str | None:
    """None for records of kinds that this version does not know."""
    if key is None or len(key) < _VERSION_BYTES or _version_of(key) != KEY_VERSION:
        return None
    return decode(TransactionLogKey, KEY_VERSION, key, _VERSION_BYTES).transactional_id


def decode_value(transactional_id: str, value: Buffer) -> TransactionMetadata:
    return finished(_decode_value(transactional_id, value))


def _decode_value(transactional_id: str, value: Buffer) -> Computation[TransactionMetadata]:
    version = _version_of(value)
    known = TransactionLogValue.SCHEMA.versions
    if not known.first <= version <= known.last:
        raise MalformedMessageError(f"version {version} of a transaction's value is not known")
    stored = yield from decode_in_slices(TransactionLogValue, version, value, _VERSION_BYTES)
    return TransactionMetadata(
        transactional_id,
        stored.producer_id,
        stored.producer_epoch,
        stored.transaction_timeout_ms,
        TransactionState(stored.transaction_status),
        frozenset(_flat(stored.transaction_partitions or ())),
        stored.transaction_start_timestamp_ms,
        stored.transaction_last_update_timestamp_ms,
        stored.client_transaction_version,
        stored.previous_producer_id,
        stored.next_producer_id,
        stored.last_producer_epoch,
        stored.next_producer_epoch,
    )


def _prefixed(version: int, message: bytes) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big") + message


def _version_of(data: Buffer) -> int:
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, PartitionsSchema] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, PartitionsSchema(topic)).partition_ids.append(index)
    return list(topics.values())


def _flat(topics: Iterable[PartitionsSchema]) -> Iterable[TopicPartition]:
    return (TopicPartition(topic.topic, index) for topic in topics for index in topic.partition_ids)
