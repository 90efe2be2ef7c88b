"""Periodic work on a broker's logs: flush, roll, apply retention, remove files, write checkpoints.

Checkpoints block on the disk, so a thread writes them. Everything else runs on the event loop, in turns of a few
milliseconds, because there may be thousands of logs.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial

from sskafka.model.settings import Settings
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.work_queue import TURN_MS
from sskafka.storage.errors import StorageError, TemporaryStorageError
from sskafka.storage.log_manager import LogManager

log = logging.getLogger(__name__)

INTERVAL_S = 1.0
"""After a start the first retention check runs no later than this."""


class Housekeeping:
    def __init__(
        self,
        logs: LogManager,
        replicas: ReplicaManager,
        settings: Callable[[], Settings],
        clock: Clock,
        executor: Executor,
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        self._executor = executor
        self._due_ms: dict[str, float] = {}
        self._writing = asyncio.Lock()  # one writer of checkpoints at a time

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            try:
                await self._round()
            except TemporaryStorageError:
                continue  # the directory has logged it
            except StorageError as error:
                log.error("housekeeping: %s", error)  # the directory is offline now

    def checkpoint(self) -> None:
        """Write all checkpoints that a restart needs now."""
        self._logs.checkpoint_high_watermarks(self._replicas.high_watermarks())
        self._logs.checkpoint_recovery_points()
        self._logs.checkpoint_log_start_offsets()

    async def sync_log_start_offsets(self) -> None:
        """Write the log start offsets to disk before returning."""
        await self._in_thread(self._logs.checkpoint_log_start_offsets)

    async def _round(self) -> None:
        now_ms = self._clock.now_ms()
        settings = self._settings()
        self._logs.check_shortages()
        self._replicas.retry_opening()
        await self._in_turns(self._logs.flush_due_logs(now_ms))
        await self._in_turns(self._logs.roll_due_segments(now_ms))
        if self._is_due(
            "retention", settings["log.retention.check.interval.ms"], settings["log.initial.task.delay.ms"]
        ):
            await self._in_turns(self._retire_segments(now_ms))
        self._logs.remove_deleted_files(now_ms)
        if self._is_due("producers", settings["producer.id.expiration.check.interval.ms"]):
            await self._in_turns(self._logs.expire_producers(now_ms, settings["producer.id.expiration.ms"]))
        if self._is_due("high watermarks", settings["replica.high.watermark.checkpoint.interval.ms"]):
            marks = self._replicas.high_watermarks()
            await self._in_thread(partial(self._logs.checkpoint_high_watermarks, marks))
        if self._is_due("recovery points", settings["log.flush.offset.checkpoint.interval.ms"]):
            await self._in_thread(self._logs.checkpoint_recovery_points)
            await self._in_thread(self._logs.checkpoint_cleaned_offsets)
        if self._is_due("log starts", settings["log.flush.start.offset.checkpoint.interval.ms"]):
            await self.sync_log_start_offsets()

    def _retire_segments(self, now_ms: int) -> Iterator[None]:
        for partition in list(self._replicas.partitions()):
            _retire_segments_of(partition, now_ms)
            yield

    async def _in_turns(self, steps: Iterator[None]) -> None:
        """Take the steps, a few milliseconds of them in one turn of the event loop."""
        stop_ms = self._clock.monotonic_ms() + TURN_MS
        for _ in steps:
            if self._clock.monotonic_ms() >= stop_ms:
                await asyncio.sleep(0)
                stop_ms = self._clock.monotonic_ms() + TURN_MS

    def _is_due(self, chore: str, interval_ms: int, first_ms: int | None = None) -> bool:
        now_ms = self._clock.monotonic_ms()
        delay_ms = interval_ms if first_ms is None else min(interval_ms, first_ms)
        if now_ms < self._due_ms.setdefault(chore, now_ms + delay_ms):
            return False
        self._due_ms[chore] = now_ms + interval_ms
        return True

    async def _in_thread(self, work: Callable[[], None]) -> None:
        async with self._writing:
            await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _retire_segments_of(partition: Partition, now_ms: int) -> None:
    """Apply retention. An error affects only this log."""
    if not partition.is_in_service:
        return
    try:
        gone = partition.retire_segments(now_ms)
    except TemporaryStorageError:
        return  # the directory has logged it
    except StorageError as error:
        log.error("%s: old segments could not be deleted: %s", partition.topic_partition, error)
        return
    if gone:
        start_offset = partition.log_start_offset
        log.info(
            "%s: %d segments deleted by retention, the log start offset is now %d",
            partition.topic_partition,
            gone,
            start_offset,
        )
