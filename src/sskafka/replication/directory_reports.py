"""Report to the controller in which log directory each replica of this broker lies (AssignReplicasToDirs).

The controller does not choose directories for brokers that have several, but must know them: when a directory fails,
the controller elects other leaders for its partitions. Reports are batched, sent in one request at a time, and retried
until the controller has accepted them.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sskafka.client.broker_link import RequestQueue
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import Uuid
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.storage.log_manager import LogManager
from sskafka.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)

_log = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.2
REPORTS_MAX = 2_000
"""Limit for one request."""


class Replica(NamedTuple):
    topic_id: Uuid
    number: int


class DirectoryReports(RequestQueue[Replica, AssignReplicasToDirsResponse]):
    def __init__(
        self, broker_id: int, links: ClusterLinks, known_directory: Callable[[Uuid, int], Uuid | None]
    ) -> None:
        """`known_directory`: the directory in the metadata, or None if this broker has no such replica there."""
        super().__init__(links.controller, links.call_later, AssignReplicasToDirsResponse)
        self._broker_id = broker_id
        self._broker_epoch = links.broker_epoch
        self._known_directory = known_directory
        self._unreported: dict[Replica, Uuid] = {}
        self._outcomes: dict[Replica, list[asyncio.Future[ErrorCode]]] = {}

    def report(self, topic_id: Uuid, index: int, directory_id: Uuid) -> None:
        replica = Replica(topic_id, index)
        self._unreported[replica] = directory_id
        self.add(replica)

    def report_directory(self, logs: LogManager, partition: Partition) -> None:
        """Report the directory of the replica, which may have failed just now."""
        home = logs.directory_at(partition.log_directory.path)
        if home is not None and home.directory_id is not None:
            self.report(partition.topic_id, partition.topic_partition.partition, home.directory_id)

    async def reported(self, topic_id: Uuid, index: int, directory_id: Uuid) -> ErrorCode:
        """Wait until the controller has accepted or rejected the report."""
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._outcomes.setdefault(Replica(topic_id, index), []).append(outcome)
        self.report(topic_id, index, directory_id)
        return await outcome

    def _delay_s(self) -> float:
        return RETRY_PAUSE_S if self._broker_epoch() < 0 else 0.0

    def _select(self, waiting: Sequence[Replica]) -> tuple[Sequence[Replica], Sequence[Replica]]:
        for replica in waiting:
            directory_id = self._unreported.get(replica)
            if directory_id is not None and self._known_directory(*replica) == directory_id:
                self._settle(replica, directory_id, ErrorCode.NONE)
        wanted = [replica for replica in dict.fromkeys(waiting) if replica in self._unreported]
        return wanted[:REPORTS_MAX], wanted[REPORTS_MAX:]

    def _request(self, items: Sequence[Replica]) -> AssignReplicasToDirsRequest:
        directories: dict[Uuid, dict[Uuid, RequestTopicData]] = {}
        for replica in items:
            topics = directories.setdefault(self._unreported[replica], {})
            topic = topics.setdefault(replica.topic_id, RequestTopicData(replica.topic_id))
            topic.partitions.append(RequestPartitionData(replica.number))
        return AssignReplicasToDirsRequest(
            self._broker_id,
            self._broker_epoch(),
            [RequestDirectoryData(directory_id, list(topics.values())) for directory_id, topics in directories.items()],
        )

    def _answered(self, items: Sequence[Replica], outcome: AssignReplicasToDirsResponse | Exception) -> float:
        if isinstance(outcome, Exception):
            _log.info("%d log directory assignments not reported to the controller yet: %s", len(items), outcome)
        elif outcome.error_code != ErrorCode.NONE:
            name = ErrorCode(outcome.error_code).name
            _log.info("the controller rejected the log directory assignments: %s", name)
        else:
            self._settle_all(outcome)
        unsettled = [replica for replica in items if replica in self._unreported]
        for replica in unsettled:
            self.add(replica)
        return RETRY_PAUSE_S if unsettled else 0.0

    def _settle_all(self, response: AssignReplicasToDirsResponse) -> None:
        for directory in response.directories:
            for topic in directory.topics:
                for result in topic.partitions:
                    replica = Replica(topic.topic_id, result.partition_index)
                    self._settle(replica, directory.id, ErrorCode(result.error_code))

    def _settle(self, replica: Replica, directory_id: Uuid, error: ErrorCode) -> None:
        """Complete the report. A replica that has moved again in the meantime is reported again."""
        if self._unreported.get(replica) != directory_id:
            return
        del self._unreported[replica]
        for outcome in self._outcomes.pop(replica, ()):
            if not outcome.done():
                outcome.set_result(error)
