"""Send ISR changes to the controller: batched, one request at a time.

A change is retried until the controller has answered or the partition has changed, however long the controller is
unavailable: otherwise a leader would wait for a dead follower forever.
"""

import logging
from collections.abc import Sequence
from typing import TypeAlias

from sskafka.client.broker_link import RequestQueue
from sskafka.model.errors import ErrorCode
from sskafka.partition.in_sync_replicas import IsrChange, Outcome
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

_log = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.05
PARTITIONS_MAX = 5_000
"""Partitions of one request: with 15 replicas each they stay below the maximum number of elements of a request."""


Change: TypeAlias = tuple[Partition, IsrChange]


class IsrChanges(RequestQueue[Change, AlterPartitionResponse]):
    def __init__(self, broker_id: int, links: ClusterLinks) -> None:
        super().__init__(links.controller, links.call_later, AlterPartitionResponse)
        self._broker_id = broker_id
        self._broker_epoch = links.broker_epoch

    def ask(self, partition: Partition, change: IsrChange) -> None:
        self.add((partition, change))

    def _select(self, waiting: Sequence[Change]) -> tuple[Sequence[Change], Sequence[Change]]:
        wanted = [(partition, change) for partition, change in waiting if partition.is_waiting_for(change)]
        return wanted[:PARTITIONS_MAX], wanted[PARTITIONS_MAX:]

    def _request(self, items: Sequence[Change]) -> AlterPartitionRequest:
        topics: dict[bytes, RequestTopicData] = {}
        for partition, change in items:
            topic = topics.setdefault(partition.topic_id, RequestTopicData(partition.topic_id))
            topic.partitions.append(_as_request(partition.topic_partition.partition, change))
        return AlterPartitionRequest(self._broker_id, self._broker_epoch(), list(topics.values()))

    def _answered(self, items: Sequence[Change], outcome: AlterPartitionResponse | Exception) -> float:
        unsettled = items
        if isinstance(outcome, Exception):
            _log.info("the ISR of %d partitions could not be changed yet: %s", len(items), outcome)
        elif outcome.error_code != ErrorCode.NONE:
            _log.info("the controller rejected ISR changes: %s", ErrorCode(outcome.error_code).name)
        else:
            unsettled = _changes_to_retry(items, outcome)
        for item in unsettled:
            self.add(item)
        return RETRY_BACKOFF_S if unsettled else 0


def _changes_to_retry(items: Sequence[Change], response: AlterPartitionResponse) -> Sequence[Change]:
    """Apply the results. Return the changes that must be sent again."""
    results = {
        (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
    }
    unsettled = []
    for partition, change in items:
        result = results.get((partition.topic_id, partition.topic_partition.partition))
        if result is None or not _is_settled(partition, change, result):
            unsettled.append((partition, change))
    return unsettled


def _as_request(index: int, change: IsrChange) -> RequestPartitionData:
    return RequestPartitionData(
        index,
        change.leader_epoch,
        new_isr_with_epochs=[BrokerState(*member) for member in zip(change.isr, change.broker_epochs, strict=True)],
        partition_epoch=change.partition_epoch,
    )


def _is_settled(partition: Partition, change: IsrChange, result: ResponsePartitionData) -> bool:
    """Return False if the change must be sent again."""
    error = ErrorCode(result.error_code)
    if error is not ErrorCode.NONE:
        return partition.isr_refused(change, error) is not Outcome.UNKNOWN
    partition.isr_committed(change, tuple(result.isr), result.partition_epoch)
    return True
