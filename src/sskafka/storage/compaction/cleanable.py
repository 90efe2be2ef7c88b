"""Decide which part of a log can be cleaned and how dirty it is, and build the cleaner's job.

    |------ clean ------|---------- dirty ----------|-- not yet --|
    log start      first dirty            first uncleanable     log end

The cleaner never cleans the active segment, anything above the last stable offset (its transactions are undecided, or
it is not on all in-sync replicas), or segments with records younger than `min.compaction.lag.ms`. Only whole segments
are cleaned. A log is due when dirty bytes make up more than `min.cleanable.dirty.ratio` of the cleanable bytes, or when
a record has waited for longer than `max.compaction.lag.ms`.
"""

from collections.abc import Iterable
from itertools import pairwise

from sskafka.model.values import value
from sskafka.records.batch import CorruptBatchError
from sskafka.storage.compaction.batch_cleaning import LastOfProducer
from sskafka.storage.compaction.cleaning_job import CleaningJob, CleaningLimits, SourceSegment
from sskafka.storage.log import Log
from sskafka.storage.offset_index import OffsetIndex
from sskafka.storage.segment import Segment
from sskafka.storage.time_index import TimeIndex


@value
class CleanableLog:
    log: Log
    segments: tuple[Segment, ...]
    """The segments from the first one to the last one that may be cleaned."""
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)

    @property
    def is_due(self) -> bool:
        return self.dirty_bytes > 0 and (
            self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio
        )

    def job(self, now_ms: int, limits: CleaningLimits) -> CleaningJob:
        log, config = self.log, self.log.config
        return CleaningJob(
            directory=log.directory,
            segments=tuple(_sources(self.segments, self.end_offset, log)),
            first_dirty_offset=self.first_dirty_offset,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            last_of_producers={
                producer.producer_id: LastOfProducer(producer.last_offset, producer.producer_epoch)
                for producer in log.producers.producers.values()
                if producer.last_offset < self.end_offset  # the last batches of the other producers are not cleaned
            },
            aborted=tuple(log.aborted_transactions(self.segments[0].base_offset, self.end_offset)),
            limits=limits,
        )


def find_cleanable(log: Log, last_stable_offset: int, now_ms: int) -> CleanableLog:
    first_dirty = max(log.first_dirty_offset, log.log_start_offset)
    chosen: list[Segment] = []
    clean_bytes = dirty_bytes = 0
    end_offset = log.segments.first.base_offset
    oldest_wait_ms = 0
    for segment, following in pairwise(log.segments):
        is_dirty = following.base_offset > first_dirty
        if following.base_offset > last_stable_offset or (is_dirty and _is_too_young(segment, log, now_ms)):
            break
        chosen.append(segment)
        end_offset = following.base_offset
        if is_dirty:
            dirty_bytes += segment.size_bytes
            oldest_wait_ms = max(oldest_wait_ms, _waiting_ms(segment, log, now_ms))
        else:
            clean_bytes += segment.size_bytes
    is_overdue = oldest_wait_ms > log.config.max_compaction_lag_ms
    return CleanableLog(log, tuple(chosen), first_dirty, end_offset, clean_bytes, dirty_bytes, is_overdue)


def dirtiest(cleanable: Iterable[CleanableLog]) -> CleanableLog | None:
    return max((one for one in cleanable if one.is_due), key=lambda one: one.dirty_ratio, default=None)


def _is_too_young(segment: Segment, log: Log, now_ms: int) -> bool:
    lag_ms = log.config.min_compaction_lag_ms
    return lag_ms > 0 and segment.newest_ms > now_ms - lag_ms


def _waiting_ms(segment: Segment, log: Log, now_ms: int) -> int:
    """Return how long ago the segment's first batch was written. Read only if max.compaction.lag.ms is set."""
    if not segment.size_bytes or log.config.max_compaction_lag_ms >= now_ms:
        return 0
    try:
        with log.log_directory.reading():
            timestamp = segment.header_at(0).max_timestamp
    except CorruptBatchError:
        return 0
    return now_ms - timestamp if timestamp > 0 else 0


def _sources(segments: tuple[Segment, ...], end_offset: int, log: Log) -> Iterable[SourceSegment]:
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, end in zip(segments, ends, strict=True):
        yield SourceSegment(
            segment.base_offset,
            end,
            segment.size_bytes,
            segment.offset_index.count * OffsetIndex.layout.size,
            segment.time_index.count * TimeIndex.layout.size,
            _start_position(segment, log),
        )


def _start_position(segment: Segment, log: Log) -> int:
    """Return the position of the batch with the log start offset; 0 if it is not in this segment or cannot be found."""
    if log.log_start_offset <= segment.base_offset:
        return 0
    try:
        with log.log_directory.reading():
            position = segment.position_of(log.log_start_offset)
    except CorruptBatchError:
        return 0
    return position if position < segment.size_bytes else 0
