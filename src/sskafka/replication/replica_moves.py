"""Move replicas to another log directory of this broker, as AlterReplicaLogDirs requests. Several move at a time.

    requested -> a copy grows in the new directory -> it has caught up -> the new directory is reported to the
    controller -> the copy replaces the original

Clients notice nothing: the partition's log is replaced between two turns of the event loop. A stop discards the copy,
and the next start begins the move again.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.replication.directory_reports import DirectoryReports
from sskafka.replication.partition import Partition
from sskafka.replication.throttle import Throttle
from sskafka.runtime.clock import Clock
from sskafka.storage.broker_directory import LogDir
from sskafka.storage.errors import CorruptBatchError, OffsetOutOfRangeError, RejectedAppendError, StorageError
from sskafka.storage.flusher import sync_files
from sskafka.storage.log_manager import LogManager
from sskafka.storage.log_move import LogMove

_log = logging.getLogger(__name__)

PIECE_BYTES = 512 * 1024
LAST_PIECE_OFFSETS = 1_000
"""Replace the original when no more than this is left to copy, because clients wait during the replacement."""
RETRY_PAUSE_S = 0.5


class ReplicaMoves:
    def __init__(
        self,
        logs: LogManager,
        find: Callable[[str, int], Partition | None],
        reports: DirectoryReports,
        clock: Clock,
        executor: Executor,
        throttle: Throttle,
        concurrent_moves: int = 1,
    ) -> None:
        self._concurrent_moves = concurrent_moves
        self._under_way: set[TopicPartition] = set()
        self._logs = logs
        self._find = find
        self._reports = reports
        self._clock = clock
        self._executor = executor
        self._throttle = throttle
        self._wake_up = asyncio.Event()
        throttle.on_changed = self._wake_up.set
        self._wanted: dict[TopicPartition, LogDir] = {}
        self._is_wanted = asyncio.Event()
        for directory in logs.directories:
            for topic_partition in directory.interrupted.values():
                self.ask(topic_partition, directory)

    def ask(self, topic_partition: TopicPartition, target: LogDir) -> None:
        """Request a move. A replica that is in `target` already stays, and its move to another directory ends."""
        self._wanted[topic_partition] = target
        self._is_wanted.set()
        self._wake_up.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._concurrent_moves):
                workers.create_task(self._keep_moving())

    async def _keep_moving(self) -> None:
        while True:
            await self._is_wanted.wait()
            topic_partition = next((item for item in self._wanted if item not in self._under_way), None)
            if topic_partition is None:
                self._is_wanted.clear()
                continue
            target = self._wanted[topic_partition]
            self._under_way.add(topic_partition)
            try:
                is_done = await self._work_on(topic_partition, target)
            finally:
                self._under_way.discard(topic_partition)
            if is_done and self._wanted.get(topic_partition) is target:
                del self._wanted[topic_partition]
            if not is_done:
                await asyncio.sleep(RETRY_PAUSE_S)
            self._is_wanted.set()

    async def _work_on(self, topic_partition: TopicPartition, target: LogDir) -> bool:
        """Move the replica. Return False if it does not exist yet, so that other moves continue."""
        partition = self._find(*topic_partition)
        if partition is None:
            self._wanted[topic_partition] = self._wanted.pop(topic_partition)
            return False
        if self._logs.log_dir_of(topic_partition) is target or not target.is_online:
            return True
        try:
            move = self._logs.begin_move(topic_partition, target, self._clock.now_ms())
            _log.info("%s moves to %s", topic_partition, target.path)
            await self._move_or_abandon(partition, move)
        except (StorageError, CorruptBatchError, RejectedAppendError, OffsetOutOfRangeError) as error:
            _log.error(
                "%s could not be moved to %s and stays where it is: %s; request the move again after the repair",
                topic_partition,
                target.path,
                error,
            )
        return True

    async def _move_or_abandon(self, partition: Partition, move: LogMove) -> None:
        is_done = False
        try:
            is_done = await self._move(partition, move)
        finally:
            if not is_done:
                self._logs.abandon_move(move)

    async def _move(self, partition: Partition, move: LogMove) -> bool:
        while self._is_still_wanted(partition, move):
            await self._catch_up(partition, move)
            error = await self._tell_controller(partition, move.target.directory_id)
            if error is not ErrorCode.NONE:
                _log.error(
                    "%s is not moved: the controller rejected the new directory: %s",
                    partition.topic_partition,
                    error.name,
                )
                return False
            if self._is_still_wanted(partition, move) and move.lag <= LAST_PIECE_OFFSETS:
                moved = self._logs.finish_move(move, self._clock.now_ms(), partition.high_watermark)
                partition.replace_log(moved)
                _log.info("%s has moved to %s", partition.topic_partition, move.target.path)
                return True
        return False

    def _is_still_wanted(self, partition: Partition, move: LogMove) -> bool:
        topic_partition = partition.topic_partition
        return (
            move.can_go_on
            and partition.log is move.original
            and self._find(*topic_partition) is partition
            and self._wanted.get(topic_partition) is move.target
        )

    async def _catch_up(self, partition: Partition, move: LogMove) -> None:
        """Copy until little is left. Threads do the reads and the syncs, which may block on the disk."""
        loop = asyncio.get_running_loop()
        while self._is_still_wanted(partition, move) and (pieces := move.next_piece(self._piece_bytes())):
            for data in await loop.run_in_executor(self._executor, move.read, pieces):
                move.append(data, self._clock.now_ms())
                self._throttle.take(len(data))
            while self._is_still_wanted(partition, move) and (wait_ms := self._throttle.wait_ms()):
                await self._pause(wait_ms)
        if move.can_go_on:
            await self._sync(move)

    def _piece_bytes(self) -> int:
        """Return the size of the next piece: smaller for low rates, so that the rate is kept better; at least one
        batch."""
        window_bytes = self._throttle.window_bytes
        return PIECE_BYTES if window_bytes is None else min(PIECE_BYTES, max(1, window_bytes))

    async def _pause(self, wait_ms: float) -> None:
        """Wait for the throttle. A changed rate or another request to move replicas ends the wait early."""
        self._wake_up.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._wake_up.wait()

    async def _sync(self, move: LogMove) -> None:
        """Sync what was copied, so that little is left to sync when the copy replaces the original."""
        try:
            plan = move.copy.plan_flush()
            await asyncio.get_running_loop().run_in_executor(self._executor, sync_files, plan.files)
        except OSError as error:
            raise move.target.health.sync_failed(error) from error
        move.copy.complete_flush(plan)

    async def _tell_controller(self, partition: Partition, directory_id: Uuid | None) -> ErrorCode:
        if directory_id is None:
            return ErrorCode.NONE
        return await self._reports.reported(partition.topic_id, partition.topic_partition.partition, directory_id)
