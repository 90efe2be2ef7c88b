"""Find offsets by timestamp.

The time indexes lead to a segment, batch headers to the first batch whose largest timestamp is late enough. Only that
batch has to be opened. A compressed batch, or one with many records, is opened in a thread (`BatchToSearch`).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sskafka.records.batch import LOG_APPEND_TIME, NO_TIMESTAMP, BatchHeader, CorruptBatchError
from sskafka.records.inspection import SLICE_RECORDS
from sskafka.records.record import payload
from sskafka.storage.append_checks import decompressed_bytes_max, is_cheap, yield_interpreter
from sskafka.storage.compaction.record_spans import record_spans
from sskafka.storage.segment import Segment


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class BatchToSearch(NamedTuple):
    """The first batch from `from_offset` on that may have a record with `timestamp` or a later one."""

    segment: Segment
    position: int
    header: BatchHeader
    timestamp: int
    from_offset: int
    decompressed_bytes_max: int

    @property
    def is_cheap(self) -> bool:
        """Return whether the event loop has the time to search it."""
        return is_cheap(self.header)

    def search(self, pause: Callable[[], None] | None = None) -> TimestampedOffset | None:
        """Return the record that is searched for. A batch that cannot be decoded counts as one record, so that no
        reader skips it."""
        header = self.header
        batch = self.segment.file.read_at(header.size_bytes, self.position)
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
        try:
            data = payload(batch, header, max_bytes=self.decompressed_bytes_max)
            for number, span in enumerate(record_spans(data, header.record_count), 1):
                timestamp = header.base_timestamp + span.timestamp_delta if append_time is None else append_time
                offset = header.base_offset + span.offset_delta
                if timestamp >= self.timestamp and offset >= self.from_offset:
                    return TimestampedOffset(timestamp, offset, header.leader_epoch)
                if pause is not None and not number % SLICE_RECORDS:
                    pause()
        except CorruptBatchError:
            return TimestampedOffset(header.max_timestamp, header.base_offset, header.leader_epoch)
        return None

    def search_in_thread(self) -> TimestampedOffset | None:
        return self.search(yield_interpreter)


def batch_with_timestamp(
    segments: Iterable[Segment], timestamp: int, from_offset: int, max_message_bytes: int
) -> BatchToSearch | None:
    """Return the batch that has the first record at `from_offset` or later whose timestamp is `timestamp` or later."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        start = max(segment.time_index.offset_before(timestamp), from_offset)
        for position, header in segment.headers(segment.position_of(start)):
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                limit = decompressed_bytes_max(max_message_bytes, header.size_bytes)
                return BatchToSearch(segment, position, header, timestamp, from_offset, limit)
    return None


def largest_timestamp(segments: Iterable[Segment]) -> int:
    return max((segment.max_timestamp for segment in segments), default=NO_TIMESTAMP)
