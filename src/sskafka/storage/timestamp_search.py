"""Find offsets by timestamp: the time indexes lead to a segment and a batch, and only that batch is decoded."""

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
    """Return the first record at `from_offset` or later whose timestamp is `timestamp` or later."""
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            found = _find_in_segment(segment, timestamp, from_offset)
            if found is not None:
                return found
    return None


def find_max_timestamp(segments: Iterable[Segment], from_offset: int) -> TimestampedOffset | None:
    """Return the first record that has the largest timestamp."""
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
    """Yield the batch's records. A batch that cannot be decoded counts as one record, so that no reader skips it."""
    batch = segment.file.read_at(header.size_bytes, position)
    try:
        yield from decode_records(batch, header)
    except CorruptBatchError:
        yield Record(header.base_offset, header.max_timestamp, None, None)
