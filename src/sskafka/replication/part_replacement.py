"""Replace the part of a compacted log that has a damaged range, where the replicas were compacted differently.

    1  find where the part may end (storage/replaced_part.py), rolling a new segment if the active one has the damage
    2  read the part from another replica, check it, write it to new segments beside the old ones (part_writer.py)
    3  make the log dirty from its start on, durably: the part may be compacted less than this log was
    4  swap the new segments in (segment_swap.py)

Nothing is truncated, so neither leader nor ISR changes. The log is served as before until step 4. Each of the following
ends the attempt, and leaves the log as it was:

    a crash                             before step 4 the files are useless; the next start removes them
    a truncation, retention,            the segments are no longer those of step 1
    DeleteRecords
    compaction of this log              does not begin, because `is_being_rewritten` is set
    compaction of the other replica     harmless if the copy takes less than delete.retention.ms, else given up
    a new leader epoch                  the other broker may no longer be a replica in sync
    a full disk                         the files are removed

A failed attempt is repeated after ten times as long as it took, because it may have copied a large log in vain.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from sskafka.records.batch import CorruptBatchError
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.replication.replica_reader import NotReplaceableError, ReplicaReader, reading_from
from sskafka.runtime.clock import Clock
from sskafka.storage.errors import StorageError
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log import Log
from sskafka.storage.part_writer import PartWriter
from sskafka.storage.replaced_part import (
    PartCheck,
    SegmentFacts,
    SpanningTransactionError,
    UnsureError,
    may_span,
    possible_ends,
    read_facts,
)
from sskafka.storage.segment import Segment
from sskafka.storage.segment_swap import remove_cleaned

T = TypeVar("T")

ALL_OFFSETS: Final = 2**63 - 1
RETRY_FACTOR: Final = 10


class PartReplacement:
    def __init__(
        self,
        links: ClusterLinks,
        executor: Executor,
        clock: Clock,
        bytes_per_second: Callable[[], int],
        checkpoint_cleaned_offsets: Callable[[], None],
    ) -> None:
        self._links = links
        self._executor = executor
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._checkpoint_cleaned_offsets = checkpoint_cleaned_offsets
        self._not_before_ms: dict[Log, float] = {}

    async def replace(self, partition: Partition, broker_id: int) -> None:
        """Replace the part with all damaged ranges of the log. Raise NotReplaceableError if that cannot be done now."""
        log = partition.log
        if not log.config.is_compacted:
            raise NotReplaceableError("its batches differ, although the topic is not compacted")
        if log.is_being_rewritten:
            raise NotReplaceableError("the log is being compacted")
        began_ms = self._clock.monotonic_ms()
        if began_ms < self._not_before_ms.get(log, began_ms):
            raise NotReplaceableError("the last attempt failed a short time ago")
        with _rewriting(log):
            try:
                await self._replace(partition, log, broker_id)
            except NotReplaceableError:
                self._note_failure(log, began_ms)
                await self._remove_files(log)
                raise
        self._not_before_ms.pop(log, None)

    def _note_failure(self, log: Log, began_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        self._not_before_ms = {other: until for other, until in self._not_before_ms.items() if other.is_in_service}
        self._not_before_ms[log] = now_ms + RETRY_FACTOR * (now_ms - began_ms)

    async def _remove_files(self, log: Log) -> None:
        if log.is_in_service:
            try:
                await self._in_thread(lambda: remove_cleaned(log.log_directory.disk, log.directory))
            except OSError as error:
                log.write_failed(error)

    async def _replace(self, partition: Partition, log: Log, broker_id: int) -> None:
        leader_epoch = partition.leadership.leader_epoch
        segments, facts, ends = await self._plan(partition, log)
        began_ms = self._clock.monotonic_ms()
        writer = self._writer(log, facts, ends)
        try:
            with reading_from(self._links, broker_id, partition) as reader:
                await self._copy(reader, writer)
            await self._in_thread(writer.finish)
        except (UnsureError, CorruptBatchError) as error:
            if isinstance(error, SpanningTransactionError):
                self._roll(log)  # the next attempt may end there
            raise NotReplaceableError(str(error)) from error
        except OSError as error:
            raise NotReplaceableError(str(log.write_failed(error))) from error
        log.first_dirty_offset = log.segments.first.base_offset
        try:
            await self._in_thread(self._checkpoint_cleaned_offsets)
        except StorageError as error:
            raise NotReplaceableError(str(error)) from error
        if self._clock.monotonic_ms() - began_ms >= log.config.delete_retention_ms:
            raise NotReplaceableError("the copy took longer than delete.retention.ms")
        if partition.log is not log or partition.leadership.leader_epoch != leader_epoch:
            raise NotReplaceableError("the leader of the partition has changed")
        _swap_in(log, segments, writer)

    async def _plan(self, partition: Partition, log: Log) -> tuple[list[Segment], list[SegmentFacts], list[int]]:
        """Return the segments of the log now, facts about them, and the offsets at which the part may end."""
        damaged_end = max((damage.end_offset for damage in log.damaged or ()), default=0)
        segments, facts = await self._facts(log)
        if not possible_ends(facts, damaged_end, ALL_OFFSETS):
            self._roll(log)
            segments, facts = await self._facts(log)
        ends = possible_ends(facts, damaged_end, partition.high_watermark)
        if not ends:
            raise NotReplaceableError("the log is not committed up to an offset from which on nothing was removed")
        return segments, facts, ends

    def _roll(self, log: Log) -> None:
        try:
            log.roll(self._clock.now_ms())
        except StorageError as error:
            raise NotReplaceableError(str(error)) from error

    async def _facts(self, log: Log) -> tuple[list[Segment], list[SegmentFacts]]:
        """Read headers from the last segment backwards, up to the first one from which records were removed."""
        segments = list(log.segments)
        ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
        sizes = [segment.size_bytes for segment in segments]
        facts = [SegmentFacts(segment.base_offset) for segment in segments]
        try:
            for number, segment in reversed(list(enumerate(segments))):
                read = partial(read_facts, segment.file, sizes[number], segment.base_offset, ends[number])
                found = await self._in_thread(read)
                if not found.is_complete:
                    break
                facts[number] = found._replace(aborted=list(segment.transaction_index))
        except OSError as error:
            raise NotReplaceableError(str(log.log_directory.read_failed(error))) from error
        except StorageError as error:  # the transaction index is damaged
            raise NotReplaceableError(str(error)) from error
        return segments, facts

    def _writer(self, log: Log, facts: list[SegmentFacts], ends: list[int]) -> PartWriter:
        disk, base_offset = log.log_directory.disk, facts[0].base_offset
        epochs = LeaderEpochs(disk, "", list(log.epochs.entries))
        allowed = partial(may_span, facts, log.producers.open_transactions)
        check = PartCheck(base_offset, log.log_start_offset, ends, epochs.epoch_of, allowed)
        return PartWriter(disk, log.directory, log.config, base_offset, check, self._clock.now_ms())

    async def _copy(self, reader: ReplicaReader, writer: PartWriter) -> None:
        check = writer.check
        while not check.is_done:
            batches = await reader.read(check.next_offset)
            if not batches:
                raise NotReplaceableError(f"it has nothing committed at offset {check.next_offset}")
            await self._in_thread(partial(writer.write, batches))
            await asyncio.sleep(len(batches) / self._bytes_per_second())

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


@contextmanager
def _rewriting(log: Log) -> Iterator[None]:
    log.is_being_rewritten = True
    try:
        yield
    finally:
        log.is_being_rewritten = False


def _swap_in(log: Log, segments: list[Segment], writer: PartWriter) -> None:
    assert writer.check.end_offset is not None
    if not log.is_in_service:
        raise NotReplaceableError("the log was closed in the meantime")
    try:
        is_replaced = log.replace_part(segments, writer.check.end_offset, writer.base_offsets)
    except StorageError as error:
        raise NotReplaceableError(str(error)) from error
    if not is_replaced:
        raise NotReplaceableError("the log was truncated, or its start has moved in the meantime")
