"""The table that maps errors of the layers below to Kafka's error codes."""

import logging
from typing import TYPE_CHECKING

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.replication import errors as replication
from sskafka.storage import errors as storage

if TYPE_CHECKING:
    from sskafka.model.ids import Uuid
    from sskafka.replication.replica_manager import ReplicaManager
    from sskafka.servers.kafka.request import Request

log = logging.getLogger(__name__)

_CODES: dict[type[Exception], ErrorCode] = {
    replication.UnknownTopicOrPartitionError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    replication.UnknownTopicIdError: ErrorCode.UNKNOWN_TOPIC_ID,
    replication.NotLeaderOrFollowerError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    replication.StaleBrokerEpochError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    replication.FencedLeaderEpochError: ErrorCode.FENCED_LEADER_EPOCH,
    replication.UnknownLeaderEpochError: ErrorCode.UNKNOWN_LEADER_EPOCH,
    replication.NotEnoughReplicasError: ErrorCode.NOT_ENOUGH_REPLICAS,
    replication.ReplicaOfflineError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage.RecordTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
    storage.InvalidRecordError: ErrorCode.INVALID_RECORD,
    storage.InvalidTimestampError: ErrorCode.INVALID_TIMESTAMP,
    storage.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage.InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    storage.TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage.CorruptBatchError: ErrorCode.CORRUPT_MESSAGE,
    storage.StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
}


WRONG_BROKER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""Codes that send a client to another broker. Responses of newer versions name that broker."""


def error_code_of(error: Exception) -> tuple[ErrorCode, str | None]:
    """Return the error code and a message for people. An unexpected error is logged with its traceback."""
    if isinstance(error, KafkaError):
        return error.code, error.message or None
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code, str(error)
    log.error("unexpected error in a request", exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"


def absence_error(
    replicas: "ReplicaManager", request: "Request", operation: AclOperation, topic: "str | Uuid", index: int
) -> Exception:
    """Return the error for a partition that is not on this broker.

    Clients that may not do the operation on a topic must not learn whether the topic exists."""
    name = replicas.name_of(topic)
    if name is not None and not request.may_on_topic(operation, name):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return replicas.absence_error(topic, index)
