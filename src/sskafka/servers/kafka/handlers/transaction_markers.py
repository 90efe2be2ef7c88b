"""WriteTxnMarkers: append the outcomes of transactions to partitions that this broker leads.

Transaction coordinators send this request. Administrators use it to abort a hanging transaction, that is, one that is
open in a partition but unknown to its coordinator.
"""

import asyncio

from sskafka.coordination.transaction_markers import Marker, MarkerWriter
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

RETRIED_BY_COORDINATORS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class TransactionMarkerHandler:
    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    async def write_markers(self, message: WriteTxnMarkersRequest, request: Request) -> WriteTxnMarkersResponse:
        may_write = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER) or request.may_on_cluster(
            AclOperation.CLUSTER_ACTION
        )
        results = []
        for requested in message.markers:
            errors = [
                self._begin(requested, TopicPartition(topic.name, index), may_write)
                for topic in requested.topics
                for index in topic.partition_indexes
            ]
            results.append((requested, errors))
        return WriteTxnMarkersResponse([await _result(requested, errors) for requested, errors in results])

    def _begin(
        self, requested: WritableTxnMarker, target: TopicPartition, may_write: bool
    ) -> "asyncio.Future[ErrorCode]":
        """Append all markers in one turn of the event loop, and respond when the last one is committed."""
        written: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        if may_write:
            self._writer.write(_marker(requested), target, written.set_result)
        else:
            written.set_result(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return written


def _marker(requested: WritableTxnMarker) -> Marker:
    return Marker(
        ProducerIdAndEpoch(requested.producer_id, requested.producer_epoch),
        requested.transaction_result,
        requested.coordinator_epoch,
        requested.transaction_version,
    )


async def _result(requested: WritableTxnMarker, errors: "list[asyncio.Future[ErrorCode]]") -> WritableTxnMarkerResult:
    outcomes = iter([_for_coordinators(await error) for error in errors])
    return WritableTxnMarkerResult(
        requested.producer_id,
        [
            WritableTxnMarkerTopicResult(
                topic.name,
                [WritableTxnMarkerPartitionResult(index, next(outcomes)) for index in topic.partition_indexes],
            )
            for topic in requested.topics
        ],
    )


def _for_coordinators(error: ErrorCode) -> ErrorCode:
    """Return NOT_LEADER_OR_FOLLOWER while the group coordinator is loading, so that the sender retries."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in RETRIED_BY_COORDINATORS else error
