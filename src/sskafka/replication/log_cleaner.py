"""The broker's log cleaner: choose the dirtiest log, let a child process clean it, swap the result in.

    look at the compacted logs -> the dirtiest that is due -> a child cleans it -> each group is swapped in -> again
    nothing is due: the children end, and the broker looks again after `log.cleaner.backoff.ms`

The child does the cleaning. The broker only renames files and records the first dirty offset. Errors are handled by
kind: after a full disk the log is retried later, a failing disk takes its directory offline, and a log that cannot be
read is not cleaned until the next start, which the metrics show. No other log has to wait for it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor

from sskafka.model.counters import Sample
from sskafka.model.settings import Settings
from sskafka.replication.cleaner_child import CleanerChild
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.storage.compaction.cleanable import CleanableLog, dirtiest, find_cleanable
from sskafka.storage.compaction.cleaning_job import (
    CleanedGroup,
    CleaningFailure,
    CleaningLimits,
    CleaningStats,
)
from sskafka.storage.errors import StorageError
from sskafka.storage.log import Log
from sskafka.storage.log_directory import is_temporary
from sskafka.storage.log_manager import LogManager
from sskafka.storage.segment_swap import remove_cleaned

_log = logging.getLogger(__name__)

IO_BYTES_MIN = 64 * 1024


class LogCleaner:
    def __init__(
        self,
        logs: LogManager,
        replicas: ReplicaManager,
        settings: Callable[[], Settings],
        clock: Clock,
        executor: Executor,
    ) -> None:
        """`settings`: returns the current settings."""
        self._logs = logs
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        self._executor = executor
        self._left_alone_until_ms: dict[Log, float] = {}
        self._lacks_resources: set[Log] = set()
        self._idle: list[CleanerChild] = []
        self._children: set[CleanerChild] = set()
        self.metrics = CleanerMetrics(clock)

    def samples(self) -> Iterator[Sample]:
        return self.metrics.samples()

    async def run(self) -> None:
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                running |= self._start_due(len(running))
                backoff_s = self._settings()["log.cleaner.backoff.ms"] / 1000
                if running:
                    done, running = await asyncio.wait(running, timeout=backoff_s, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                else:
                    await self._end_idle()
                    await asyncio.sleep(backoff_s)
        finally:
            for task in running:
                task.cancel()
            for child in self._children:
                child.end_now()

    # ---- selecting a log

    def _start_due(self, running: int) -> set[asyncio.Task[None]]:
        settings = self._settings()
        workers: int = settings["log.cleaner.threads"] if settings["log.cleaner.enable"] else 0
        started: set[asyncio.Task[None]] = set()
        while running + len(started) < workers:
            chosen = self._choose()
            if chosen is None:
                break
            chosen.log.is_being_rewritten = True
            limits = _limits(settings, workers)
            started.add(asyncio.get_running_loop().create_task(self._clean(chosen, limits)))
        return started

    def _choose(self) -> CleanableLog | None:
        now_ms = self._clock.now_ms()
        cleanable: list[CleanableLog] = []
        for partition in self._replicas.partitions():
            log = partition.log
            if log.config.is_compacted and log.is_in_service and not self._is_left_alone(log):
                try:
                    cleanable.append(find_cleanable(log, partition.last_stable_offset, now_ms))
                except StorageError as error:
                    _log.error("%s: %s", log.topic_partition, error)
        self.metrics.checked(cleanable)
        return dirtiest(cleanable)

    def _is_left_alone(self, log: Log) -> bool:
        if log.is_being_rewritten or log in self.metrics.uncleanable:
            return True
        until_ms = self._left_alone_until_ms.get(log)
        if until_ms is not None and self._clock.monotonic_ms() >= until_ms:
            del self._left_alone_until_ms[log]
            return False
        return until_ms is not None

    # ---- cleaning one log

    async def _clean(self, chosen: CleanableLog, limits: CleaningLimits) -> None:
        log = chosen.log
        try:
            child = await self._child()
            if child is not None:
                await self._clean_by(child, chosen, limits)
        finally:
            log.is_being_rewritten = False

    async def _clean_by(self, child: CleanerChild, chosen: CleanableLog, limits: CleaningLimits) -> None:
        try:
            await self._process_answers(child, chosen, limits)
        except StorageError as error:
            _log.error("%s was not compacted: %s", chosen.log.topic_partition, error)
            self._leave_alone_for_now(chosen.log)
            await self._give_up(child, chosen.log)
        if child.is_alive:
            self._idle.append(child)

    async def _child(self) -> CleanerChild | None:
        if self._idle:
            return self._idle.pop()
        try:
            child = await CleanerChild.start(self._executor)
        except OSError as error:
            _log.error("no process for compaction could be started: %s", error)
            await asyncio.sleep(self._settings()["log.cleaner.backoff.ms"] / 1000)
            return None
        self._children.add(child)
        return child

    async def _process_answers(self, child: CleanerChild, chosen: CleanableLog, limits: CleaningLimits) -> None:
        log, truncations = chosen.log, chosen.log.truncations
        async for answer in child.clean(chosen.job(self._clock.now_ms(), limits)):
            match answer:
                case CleanedGroup():
                    if not log.is_in_service or not log.swap_in(answer.base_offsets, truncations):
                        _log.info("%s was truncated or deleted while it was being compacted", log.topic_partition)
                        await self._give_up(child, log)
                        return
                case CleaningStats():
                    if log.truncations == truncations:
                        await self._finish(log, answer)
                case CleaningFailure():
                    self._failed(child, chosen, answer)
                    await self._give_up(child, log)
                    return

    async def _finish(self, log: Log, stats: CleaningStats) -> None:
        _log.info(
            "%s compacted up to %d: %d of %d records, %d of %d bytes left, %.1f s, key map %.0f%% full",
            log.topic_partition,
            stats.end_offset,
            stats.records_written,
            stats.records_read,
            stats.bytes_written,
            stats.bytes_read,
            stats.seconds,
            100 * stats.map_utilization,
        )
        self._lacks_resources.discard(log)
        log.first_dirty_offset = stats.end_offset
        self.metrics.cleaned(stats)
        await asyncio.get_running_loop().run_in_executor(self._executor, self._logs.checkpoint_cleaned_offsets)

    def _failed(self, child: CleanerChild, chosen: CleanableLog, failure: CleaningFailure) -> None:
        log = chosen.log
        if not log.is_in_service:  # its directory was renamed, or is offline
            _log.info("%s was deleted or moved while it was being compacted", log.topic_partition)
            return
        error = OSError(failure.errno, failure.reason) if failure.errno is not None else None
        has_changed = log.segments.find_closed([segment.base_offset for segment in chosen.segments]) is None
        if isinstance(error, FileNotFoundError) and has_changed:
            _log.info("segments of %s were deleted while it was being compacted", log.topic_partition)
        elif error is not None and is_temporary(error):
            self._report_lack_of_resources(log, error)
        elif error is not None:
            log.log_directory.fail(error)
        elif child.was_killed:
            _log.warning("%s was not compacted, will retry: %s", log.topic_partition, failure.reason)
        else:
            _log.error(
                "%s cannot be compacted and is skipped until the next start: %s",
                log.topic_partition,
                failure.reason,
            )
            self.metrics.uncleanable[log] = failure.reason
        self._leave_alone_for_now(log)

    def _report_lack_of_resources(self, log: Log, error: OSError) -> None:
        """Log the lack of disk space, memory or descriptors once, until the log has been compacted."""
        if log not in self._lacks_resources:
            self._lacks_resources.add(log)
            _log.warning("%s cannot be compacted for now, will retry: %s", log.topic_partition, error.strerror)

    def _leave_alone_for_now(self, log: Log) -> None:
        self._left_alone_until_ms[log] = self._clock.monotonic_ms() + self._settings()["log.cleaner.backoff.ms"]

    async def _give_up(self, child: CleanerChild, log: Log) -> None:
        """End the child, which may be in the middle of the job, and remove its output."""
        await child.end()
        self._children.discard(child)
        if log.is_in_service:
            await asyncio.get_running_loop().run_in_executor(self._executor, _remove_cleaned, log)

    async def _end_idle(self) -> None:
        idle, self._idle = self._idle, []
        for child in idle:
            await child.end()
            self._children.discard(child)


def _remove_cleaned(log: Log) -> None:
    try:
        remove_cleaned(log.log_directory.disk, log.directory)
    except OSError as error:
        _log.warning("leftover files from cleaning %s could not be removed: %s", log.topic_partition, error)


def _limits(settings: Settings, workers: int) -> CleaningLimits:
    """Return the limits of one worker: its share of what all workers may use together."""
    return CleaningLimits(
        settings["log.cleaner.dedupe.buffer.size"] // workers,
        settings["log.cleaner.io.buffer.load.factor"],
        settings["log.cleaner.io.max.bytes.per.second"] / workers,
        max(settings["log.cleaner.io.buffer.size"] // workers // 2, IO_BYTES_MIN),
    )


class CleanerMetrics:
    """Metrics of the log cleaner, under the names of Kafka's LogCleaner and LogCleanerManager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_run_ms = clock.monotonic_ms()
        self._max_dirty_ratio = 0.0
        self._last: CleaningStats | None = None
        self._uncleanable: dict[Log, str] = {}

    @property
    def uncleanable(self) -> dict[Log, str]:
        """Logs that are no longer cleaned, with the reason. Closed logs are dropped."""
        for log in [log for log in self._uncleanable if not log.is_in_service]:
            del self._uncleanable[log]
        return self._uncleanable

    def may_clean_again(self, log: Log) -> None:
        """Clean a log again: what could not be read in it was replaced."""
        self._uncleanable.pop(log, None)

    def checked(self, cleanable: Sequence[CleanableLog]) -> None:
        self._last_run_ms = self._clock.monotonic_ms()
        self._max_dirty_ratio = max((one.dirty_ratio for one in cleanable), default=0.0)

    def cleaned(self, stats: CleaningStats) -> None:
        self._last = stats

    def samples(self) -> Iterator[Sample]:
        manager = "kafka_log_logcleanermanager_"
        directories = Counter(log.log_directory.path for log in self.uncleanable)
        sizes: Counter[str] = Counter()
        for log in self.uncleanable:
            sizes[log.log_directory.path] += log.size_bytes
        for path in directories:
            labels = (("logdirectory", path),)
            yield Sample(manager + "uncleanable_partitions_count", labels, directories[path])
            yield Sample(manager + "uncleanable_bytes", labels, sizes[path])
        yield Sample(manager + "max_dirty_percent", (), 100 * self._max_dirty_ratio)
        yield Sample(manager + "time_since_last_run_seconds", (), self._seconds_since_last_run())
        yield from self._last_cleaning()

    def _seconds_since_last_run(self) -> float:
        return (self._clock.monotonic_ms() - self._last_run_ms) / 1000

    def _last_cleaning(self) -> Iterator[Sample]:
        cleaner, last = "kafka_log_logcleaner_", self._last
        if last is not None:
            recopied = 100 * last.bytes_written / max(last.bytes_read, 1)
            yield Sample(cleaner + "max_buffer_utilization_percent", (), 100 * last.map_utilization)
            yield Sample(cleaner + "cleaner_recopy_percent", (), recopied)
            yield Sample(cleaner + "max_clean_time_secs", (), last.seconds)
