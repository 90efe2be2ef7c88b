"""Verify all logs from time to time, and replace damaged batches by those of other replicas.

    log.scrub.interval.ms          from the beginning of one round to the next; -1: never
    log.scrub.bytes.per.second     how fast segments are read

Segments are verified one after the other in small steps, each in a thread (storage/scrubbing.py). Between the steps the
scrubber pauses, as long as the rate requires and for much longer than a step takes: batches may be small, and checking
them needs the interpreter that also serves clients. A reader that gets a bad batch from the disk has its segment
verified at once.

A damaged range is logged once, counted, and not served (storage/damage.py) until it is replaced. If no replica can
provide its batches now, the scrubber tries again later. An offset or time index that does not match its batches is
rebuilt.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from sskafka.model.counters import Sample
from sskafka.model.settings import Settings
from sskafka.records.batch import CorruptBatchError
from sskafka.replication.batch_replacement import BatchReplacement
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.part_replacement import PartReplacement
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.replica_reader import NotReplaceableError
from sskafka.runtime.clock import Clock
from sskafka.storage.damage import Damage
from sskafka.storage.disk import File
from sskafka.storage.epoch_repair import EpochRepair
from sskafka.storage.index_scrub import TRANSACTION_INDEX
from sskafka.storage.log import Log
from sskafka.storage.log_manager import LogManager
from sskafka.storage.scrubbing import ScrubProgress, SegmentScrub, read_scrub_progress, write_scrub_progress
from sskafka.storage.segment import Segment

_log = logging.getLogger(__name__)

STEP_BYTES = 128 * 1024
PAUSE_FACTOR = 19
"""Length of a pause as a multiple of the last step: the scrubber uses at most a twentieth of a core."""
CHECK_INTERVAL_S = 1.0
RETRY_INTERVAL_MS = 10_000
PROGRESS_INTERVAL_MS = 10_000


class LogScrubber:
    def __init__(
        self,
        replicas: ReplicaManager,
        settings: Callable[[], Settings],
        clock: Clock,
        executor: Executor,
        links: ClusterLinks,
        logs: LogManager,
    ) -> None:
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        self._executor = executor
        parts = PartReplacement(links, executor, clock, self._bytes_per_second, logs.checkpoint_cleaned_offsets)
        self._replacement = BatchReplacement(links, executor, parts)
        self._disk, self._progress_directory = logs.directories[0].disk, logs.directories[0].path
        self._progress = read_scrub_progress(self._disk, self._progress_directory) or ScrubProgress(clock.now_ms())
        self._saved_ms = -float(PROGRESS_INTERVAL_MS)
        self._retry_ms = 0.0
        self._suspects: set[tuple[Log, Segment]] = set()
        self._suspected_files: list[File] = []
        self._woken = asyncio.Event()
        self.on_replaced: Callable[[Log], None] | None = None
        """Called with a log whose last damaged range was replaced."""
        self.rounds = 0
        self.bytes_read = 0
        self.damaged_found = 0
        self.replaced = 0
        self.wrong_indexes = 0

    # ---- for others

    def suspect_file(self, file: File) -> None:
        """Verify the segment of this file now: a reader got a bad batch from it."""
        self._suspected_files.append(file)
        self._woken.set()

    def suspect(self, partition: Partition, offset: int) -> None:
        """Verify the segment with this offset now, unless it is known to be damaged there: it could not be read."""
        log = partition.log
        if log.damaged is None or not any(known.offset <= offset < known.end_offset for known in log.damaged):
            self._suspects.add((log, log.segments.containing(offset)))
            self._woken.set()

    def samples(self) -> Iterator[Sample]:
        prefix = "kafka_log_logscrubber_"
        yield Sample(prefix + "rounds_total", (), self.rounds)
        yield Sample(prefix + "bytesread_total", (), self.bytes_read)
        yield Sample(prefix + "damagedranges_total", (), self.damaged_found)
        yield Sample(prefix + "replacedranges_total", (), self.replaced)
        yield Sample(prefix + "wrongindexes_total", (), self.wrong_indexes)
        yield Sample(prefix + "damagedranges", (), sum(1 for _ in self._damaged()))

    def _damaged(self) -> Iterator[tuple[Partition, Damage]]:
        for partition in self._replicas.partitions():
            for damage in partition.log.damaged or ():
                yield partition, damage

    # ---- rounds

    async def run(self) -> None:
        while True:
            await self._wait(CHECK_INTERVAL_S)
            await self._verify_suspects()
            await self._maybe_retry()
            if self._is_due():
                await self._round()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    def _is_due(self) -> bool:
        interval_ms = self._settings()["log.scrub.interval.ms"]
        if interval_ms < 0:
            return False
        is_interrupted = self._progress.partition is not None
        return is_interrupted or self._clock.now_ms() - self._progress.round_began_ms >= interval_ms

    async def _round(self) -> None:
        """Verify all segments that this round has not verified yet."""
        if self._progress.partition is None:
            self._progress = ScrubProgress(self._clock.now_ms())
        for partition in sorted(self._replicas.partitions(), key=lambda found: found.topic_partition):
            log = partition.log
            for segment in list(log.segments):
                if self._progress.is_behind(log.topic_partition, segment.base_offset):
                    await self._verify(partition, log, segment, is_urgent=False)
                    self._progress = self._progress._replace(
                        partition=log.topic_partition, base_offset=segment.base_offset
                    )
                    await self._save_progress(is_urgent=False)
                if self._settings()["log.scrub.interval.ms"] < 0:
                    return
        self._progress = self._progress._replace(partition=None, base_offset=-1)
        self.rounds += 1
        await self._save_progress(is_urgent=True)

    async def _save_progress(self, *, is_urgent: bool) -> None:
        now_ms = self._clock.monotonic_ms()
        if not is_urgent and now_ms - self._saved_ms < PROGRESS_INTERVAL_MS:
            return
        self._saved_ms = now_ms
        progress = self._progress
        try:
            await self._in_thread(lambda: write_scrub_progress(self._disk, self._progress_directory, progress))
        except OSError as error:
            _log.debug("scrub-progress could not be written: %s", error)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, work)

    # ---- one segment

    async def _verify(self, partition: Partition, log: Log, segment: Segment, *, is_urgent: bool) -> None:
        if segment not in log.segments or not log.is_in_service or not segment.size_bytes:
            return
        try:
            scrub = await self._scrubbed(log, SegmentScrub(log, segment), is_urgent)
            if scrub.are_epochs_wrong and not scrub.is_outdated(log):
                epochs = log.epochs.entries if await self._are_epochs_repaired(log) else []
                scrub = await self._scrubbed(log, SegmentScrub(log, segment, epochs), is_urgent)
        except OSError as error:
            log.log_directory.read_failed(error)
            return
        if not scrub.is_outdated(log):
            await self._found(partition, log, scrub.found)
            if scrub.wrong_indexes:
                self._repair_indexes(log, scrub)

    async def _scrubbed(self, log: Log, scrub: SegmentScrub, is_urgent: bool) -> SegmentScrub:
        while not scrub.is_done and not scrub.is_outdated(log):
            began_ms = self._clock.monotonic_ms()
            read_before = scrub.position
            await self._in_thread(lambda: _step(scrub))
            size_bytes = scrub.position - read_before
            self.bytes_read += size_bytes
            if not is_urgent:
                await self._pause(size_bytes, self._clock.monotonic_ms() - began_ms)
        return scrub

    async def _are_epochs_repaired(self, log: Log) -> bool:
        """Rebuild leader epochs that contradict good batches."""
        repair = EpochRepair(log)
        try:
            await self._in_thread(repair.read)
            is_repaired = repair.apply(log)
        except (CorruptBatchError, OSError) as error:
            _log.error("%s: leader-epoch-checkpoint does not match the batches: %s", log.directory, error)
            return False
        if is_repaired:
            self.wrong_indexes += 1
            _log.error("%s: leader-epoch-checkpoint does not match the batches and is rebuilt", log.directory)
        return is_repaired

    def _repair_indexes(self, log: Log, scrub: SegmentScrub) -> None:
        self.wrong_indexes += len(scrub.wrong_indexes)
        where = f"{log.directory}, segment {scrub.segment.base_offset:020d}"
        for index in scrub.wrong_indexes:
            if index == TRANSACTION_INDEX:
                _log.error("%s: the %s does not match the batches; `sskafka log verify` tells more", where, index)
            else:
                _log.error("%s: the %s does not match the batches and is rebuilt", where, index)
        if set(scrub.wrong_indexes) != {TRANSACTION_INDEX}:
            try:
                scrub.repair_indexes()
            except OSError as error:
                log.log_directory.write_failed(error)

    async def _pause(self, size_bytes: int, step_ms: float) -> None:
        await self._wait(max(size_bytes / self._bytes_per_second(), step_ms * PAUSE_FACTOR / 1000))
        await self._verify_suspects()
        await self._maybe_retry()

    def _bytes_per_second(self) -> int:
        rate: int = self._settings()["log.scrub.bytes.per.second"]
        return rate

    async def _verify_suspects(self) -> None:
        files, self._suspected_files = self._suspected_files, []
        if files:
            self._suspects |= {
                (partition.log, segment)
                for partition in self._replicas.partitions()
                for segment in partition.log.segments
                if any(segment.uses(file) for file in files)
            }
        suspects, self._suspects = self._suspects, set()
        for log, segment in suspects:
            partition = self._replicas.maybe_find(log.topic_partition.topic, log.topic_partition.partition)
            if partition is not None and partition.log is log:
                await self._verify(partition, log, segment, is_urgent=True)

    # ---- damage

    async def _found(self, partition: Partition, log: Log, found: list[Damage]) -> None:
        """Note all ranges first: their replacement may concern more than one of them."""
        new = [damage for damage in found if damage.end_offset > log.log_start_offset and log.note_damage(damage)]
        self.damaged_found += len(new)
        for damage in new:
            _log.error(
                "%s: offsets %d to %d are damaged on disk, at byte %d of segment %020d in %s: %s",
                log.topic_partition,
                damage.offset,
                damage.end_offset - 1,
                damage.position,
                damage.segment_base_offset,
                log.directory,
                damage.problem,
            )
        for damage in new:
            await self._replace(partition, damage, is_first=True)

    async def _replace(self, partition: Partition, damage: Damage, *, is_first: bool) -> None:
        log = partition.log
        if not log.is_damaged_at(damage):
            return
        try:
            broker_id = await self._replacement.replace(partition, damage)
        except NotReplaceableError as error:
            level = logging.ERROR if is_first else logging.DEBUG
            _log.log(
                level,
                "%s: the damaged offsets %d to %d cannot be replaced for now, and are not served: %s",
                partition.topic_partition,
                damage.offset,
                damage.end_offset - 1,
                error,
            )
            return
        self._note_replaced(log, damage, broker_id)

    def _note_replaced(self, log: Log, damage: Damage, broker_id: int) -> None:
        self.replaced += 1
        _log.warning(
            "%s: the damaged offsets %d to %d were replaced by those of broker %d",
            log.topic_partition,
            damage.offset,
            damage.end_offset - 1,
            broker_id,
        )
        if log.damaged is None and self.on_replaced is not None:
            self.on_replaced(log)

    async def _maybe_retry(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._retry_ms:
            return
        self._retry_ms = now_ms + RETRY_INTERVAL_MS
        for partition, damage in list(self._damaged()):
            await self._replace(partition, damage, is_first=False)


def _step(scrub: SegmentScrub) -> None:
    scrub.step(STEP_BYTES)
