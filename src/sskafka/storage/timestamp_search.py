"""Find offsets by timestamp.

The time indexes lead to a part of a segment, batch headers to the first batch whose largest timestamp is late enough.
Only that batch has to be opened.

Both may take long: timestamps that do not increase are not in the index, so a segment may be one part with millions of
headers, and a batch may be large. A thread does that, with a file that stays readable when its segment is deleted.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from sskafka.records.batch import LOG_APPEND_TIME, NO_TIMESTAMP, BatchHeader, CorruptBatchError
from sskafka.records.inspection import SLICE_RECORDS
from sskafka.records.record import payload
from sskafka.storage.append_checks import decompressed_bytes_max, is_cheap, yield_interpreter
from sskafka.storage.batch_count import SLICE_HEADERS
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.compaction.record_spans import record_spans
from sskafka.storage.disk import File
from sskafka.storage.segment import Segment

INLINE_HEADERS: Final = 128
"""The event loop has the time to read so many headers: as many small ones as are between two entries of an index."""


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class BatchToSearch(NamedTuple):
    """The first batch from `from_offset` on that may have a record with `timestamp` or a later one."""

    file: File
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
        batch = self.file.read_at(header.size_bytes, self.position)
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


class Walked(NamedTuple):
    batch: BatchToSearch | None
    """The next batch that may have the record."""
    next_offset: int
    """Where to search on if there is no such batch, or if it does not have the record."""


class PartToSearch(NamedTuple):
    """The part of a segment that may have the first record at `from_offset` or later whose timestamp is `timestamp` or
    later."""

    file: File
    position: int
    end_position: int
    timestamp: int
    from_offset: int
    max_message_bytes: int

    def walk(self, headers_max: int) -> Walked:
        """Read the next headers."""
        next_offset = self.from_offset + 1
        for position, header in islice(walk_headers(self.file, self.position, self.end_position), headers_max):
            next_offset = max(next_offset, header.next_offset)
            if header.max_timestamp >= self.timestamp and header.last_offset >= self.from_offset:
                limit = decompressed_bytes_max(self.max_message_bytes, header.size_bytes)
                batch = BatchToSearch(self.file, position, header, self.timestamp, self.from_offset, limit)
                return Walked(batch, next_offset)
        return Walked(None, next_offset)

    def walk_slice(self) -> Walked:
        return self.walk(SLICE_HEADERS)


def part_with_timestamp(
    segments: Iterable[Segment], timestamp: int, from_offset: int, max_message_bytes: int
) -> PartToSearch | None:
    """Return the first part that may have a record at `from_offset` or later that has `timestamp` or a later one."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        position = segment.position_of(max(segment.time_index.offset_before(timestamp), from_offset))
        if position < segment.size_bytes:
            return PartToSearch(segment.file, position, segment.size_bytes, timestamp, from_offset, max_message_bytes)
    return None


def largest_timestamp(segments: Iterable[Segment]) -> int:
    return max((segment.max_timestamp for segment in segments), default=NO_TIMESTAMP)
