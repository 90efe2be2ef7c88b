"""Send ISR changes to the controller: batched, one request at a time.

A change is retried until the controller has answered or the partition has changed, however long the controller is
unavailable: otherwise a leader would wait for a dead follower forever.
"""

import logging

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


class IsrChanges:
    def __init__(self, broker_id: int, links: ClusterLinks) -> None:
        self._broker_id = broker_id
        self._links = links
        self._waiting: dict[Partition, IsrChange] = {}
        self._is_scheduled = False
        self._is_in_flight = False
        self._is_stopped = False

    def ask(self, partition: Partition, change: IsrChange) -> None:
        self._waiting[partition] = change
        self._schedule(0)

    def stop(self) -> None:
        self._is_stopped = True
        self._waiting.clear()

    def _schedule(self, delay_s: float) -> None:
        """Send after this turn of the event loop, which may add more changes."""
        if not self._is_scheduled and not self._is_in_flight:
            self._is_scheduled = True
            self._links.call_later(delay_s, self._send)

    def _send(self) -> None:
        self._is_scheduled = False
        self._waiting = {
            partition: change for partition, change in self._waiting.items() if partition.is_waiting_for(change)
        }
        if not self._waiting:
            return
        sent = self._waiting.copy()
        self._is_in_flight = True
        self._links.controller.alter_partition(self._request(sent), lambda answer: self._answered(sent, answer))

    def _request(self, changes: dict[Partition, IsrChange]) -> AlterPartitionRequest:
        topics: dict[bytes, RequestTopicData] = {}
        for partition, change in changes.items():
            topic = topics.setdefault(partition.topic_id, RequestTopicData(partition.topic_id))
            topic.partitions.append(_as_request(partition.topic_partition.partition, change))
        return AlterPartitionRequest(self._broker_id, self._links.broker_epoch(), list(topics.values()))

    def _answered(self, sent: dict[Partition, IsrChange], answer: AlterPartitionResponse | Exception) -> None:
        self._is_in_flight = False
        if self._is_stopped:
            return
        delay_s = RETRY_BACKOFF_S
        if isinstance(answer, Exception):
            _log.info("the ISR of %d partitions could not be changed yet: %s", len(sent), answer)
        elif answer.error_code != ErrorCode.NONE:
            _log.info("the controller rejected ISR changes: %s", ErrorCode(answer.error_code).name)
        else:
            self._settle(sent, answer)
            delay_s = RETRY_BACKOFF_S if any(partition in self._waiting for partition in sent) else 0
        if self._waiting:
            self._schedule(delay_s)

    def _settle(self, sent: dict[Partition, IsrChange], response: AlterPartitionResponse) -> None:
        results = {
            (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
        }
        for partition, change in sent.items():
            result = results.get((partition.topic_id, partition.topic_partition.partition))
            if result is not None and _is_settled(partition, change, result) and self._waiting.get(partition) is change:
                del self._waiting[partition]


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
