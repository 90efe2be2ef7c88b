"""Report to the controller in which log directory each replica of this broker lies (AssignReplicasToDirs).

The controller does not choose directories for brokers that have several, but must know them: when a directory fails,
the controller elects other leaders for its partitions. Reports are batched, sent in one request at a time, and retried
until the controller has accepted them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import Uuid
from sskafka.replication.partition import Partition
from sskafka.storage.log_manager import LogManager
from sskafka.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)

TIMEOUT_MS = 5_000
RETRY_PAUSE_S = 0.2
REPORTS_MAX = 2_000
"""Limit for one request."""


class Replica(NamedTuple):
    topic_id: Uuid
    number: int


class DirectoryReports:
    def __init__(
        self,
        broker_id: int,
        ask: Callable[[Message, int], Awaitable[Any]],
        broker_epoch: Callable[[], int],
        known_directory: Callable[[Uuid, int], Uuid | None],
    ) -> None:
        """`known_directory`: the directory in the metadata, or None if this broker has no such replica there."""
        self._broker_id = broker_id
        self._ask = ask
        self._broker_epoch = broker_epoch
        self._known_directory = known_directory
        self._unreported: dict[Replica, Uuid] = {}
        self._waiting: dict[Replica, list[asyncio.Future[ErrorCode]]] = {}
        self._is_wanted = asyncio.Event()

    def report(self, topic_id: Uuid, index: int, directory_id: Uuid) -> None:
        self._unreported[Replica(topic_id, index)] = directory_id
        self._is_wanted.set()

    def report_directory(self, logs: LogManager, partition: Partition) -> None:
        """Report the directory of the replica, which may have failed just now."""
        home = logs.directory_at(partition.log_directory.path)
        if home is not None and home.directory_id is not None:
            self.report(partition.topic_id, partition.topic_partition.partition, home.directory_id)

    async def reported(self, topic_id: Uuid, index: int, directory_id: Uuid) -> ErrorCode:
        """Wait until the controller has accepted or rejected the report."""
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(Replica(topic_id, index), []).append(outcome)
        self.report(topic_id, index, directory_id)
        return await outcome

    async def run(self) -> None:
        while True:
            await self._is_wanted.wait()
            self._forget_known()
            if not self._unreported:
                self._is_wanted.clear()
            elif self._broker_epoch() < 0 or not await self._send():
                await asyncio.sleep(RETRY_PAUSE_S)

    def _forget_known(self) -> None:
        for replica, directory_id in list(self._unreported.items()):
            if self._known_directory(*replica) == directory_id:
                self._settle(replica, directory_id, ErrorCode.NONE)

    async def _send(self) -> bool:
        """Send the reports. Return False if they must be sent again."""
        sent = dict(list(self._unreported.items())[:REPORTS_MAX])
        try:
            answer: AssignReplicasToDirsResponse = await self._ask(self._request(sent), TIMEOUT_MS)
        except Exception as error:  # any failure: the reports are sent again
            _log.info("%d log directory assignments not reported to the controller yet: %s", len(sent), error)
            return False
        if answer.error_code != ErrorCode.NONE:
            _log.info("the controller rejected the log directory assignments: %s", ErrorCode(answer.error_code).name)
            return False
        for directory in answer.directories:
            for topic in directory.topics:
                for result in topic.partitions:
                    replica = Replica(topic.topic_id, result.partition_index)
                    self._settle(replica, directory.id, ErrorCode(result.error_code))
        return True

    def _request(self, reports: dict[Replica, Uuid]) -> AssignReplicasToDirsRequest:
        directories: dict[Uuid, dict[Uuid, RequestTopicData]] = {}
        for (topic_id, index), directory_id in reports.items():
            topics = directories.setdefault(directory_id, {})
            topics.setdefault(topic_id, RequestTopicData(topic_id)).partitions.append(RequestPartitionData(index))
        return AssignReplicasToDirsRequest(
            self._broker_id,
            self._broker_epoch(),
            [RequestDirectoryData(directory_id, list(topics.values())) for directory_id, topics in directories.items()],
        )

    def _settle(self, replica: Replica, directory_id: Uuid, error: ErrorCode) -> None:
        """Complete the report. A replica that has moved again in the meantime is reported again."""
        if self._unreported.get(replica) != directory_id:
            return
        del self._unreported[replica]
        for outcome in self._waiting.pop(replica, ()):
            if not outcome.done():
                outcome.set_result(error)
