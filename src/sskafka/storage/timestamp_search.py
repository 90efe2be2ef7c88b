"""Offsets by timestamp: through the time indexes to a segment, to a batch, and only there into the records."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sskafka.records.batch import NO_TIMESTAMP, BatchHeader, CorruptBatchError
from sskafka.records.record import Record, decode_records
from sskafka.storage.segment import Segment


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(segments: Iterable[Segment], timestamp: int, from_offset: int) -> TimestampedOffset | None:
    """The first record at `from_offset` or later whose timestamp is `timestamp` or later."""
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            found = _find_in_segment(segment, timestamp, from_offset)
            if found is not None:
                return found
    return None


def find_max_timestamp(segments: Iterable[Segment], from_offset: int) -> TimestampedOffset | None:
    """The first record that has the largest timestamp."""
    largest = max((segment.max_timestamp for segment in segments), default=NO_TIMESTAMP)
    return None if largest == NO_TIMESTAMP else find_timestamp(segments, largest, from_offset)


def _find_in_segment(segment: Segment, timestamp: int, from_offset: int) -> TimestampedOffset | None:
    start = max(segment.time_index.offset_before(timestamp), from_offset)
    for position, header in segment.headers(segment.position_of(start)):
        if header.max_timestamp < timestamp:
            continue
        for record in _records(segment, position, header):
            if record.timestamp >= timestamp and record.offset >= from_offset:
                return TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    """A batch that cannot be decoded counts as one record at its start: nobody is sent past what they look for."""
    batch = segment.file.read_at(header.size_bytes, position)
    try:
        yield from decode_records(batch, header)
    except CorruptBatchError:
        yield Record(header.base_offset, header.max_timestamp, None, None)
