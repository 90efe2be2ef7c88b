"""Compare the offset index and the time index with their segment, entry by entry.

    offset index   offsets and positions increase; each position is a batch's, each offset that batch's last
    time index     timestamps increase; each offset is in the segment, each timestamp the largest of its batch

Preallocated files of a crashed broker end in zeros, which are not entries.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from sskafka.storage import offset_index, time_index
from sskafka.storage.verification.walk import SegmentReader, StoredBatch, base_offset_of


class IndexEntry(NamedTuple):
    key: int
    """Offset index: the offset. Time index: the timestamp."""
    value: int
    """Offset index: the position. Time index: the offset."""


class BatchPosition(NamedTuple):
    """The fields of a batch that indexes refer to."""

    position: int
    last_offset: int
    max_timestamp: int

    @classmethod
    def of(cls, batch: StoredBatch) -> "BatchPosition":
        return cls(batch.position, batch.last_offset, batch.max_timestamp)


class Mismatch(NamedTuple):
    """`found` is the segment's value, -1 if it has none."""

    indexed: int
    found: int


class TimeIndexProblems(NamedTuple):
    wrong: list[Mismatch]
    """Timestamps that are not the largest of their batch."""
    unordered: list[Mismatch]
    """Timestamps that do not increase; `found` is the previous one."""
    unfound: list[Mismatch]
    """Offsets that are not the last of a batch; `found` is the last offset of the batch that contains them."""

    def __bool__(self) -> bool:
        return any(self)


def offset_index_entries(path: Path) -> Iterator[IndexEntry]:
    base_offset = base_offset_of(path)
    layout = offset_index.OffsetIndex.layout
    for index, (relative, position) in enumerate(layout.iter_unpack(_whole_entries(path, layout))):
        if relative == 0 and index > 0:
            return
        yield IndexEntry(base_offset + relative, position)


def time_index_entries(path: Path) -> Iterator[IndexEntry]:
    base_offset = base_offset_of(path)
    layout = time_index.TimeIndex.layout
    for index, (timestamp, relative) in enumerate(layout.iter_unpack(_whole_entries(path, layout))):
        if relative == 0 and index > 0:
            return
        yield IndexEntry(timestamp, base_offset + relative)


def _whole_entries(path: Path, layout: Struct) -> bytes:
    data = path.read_bytes()
    return data[: len(data) - len(data) % layout.size]


def batch_places(path: Path) -> list[BatchPosition]:
    with SegmentReader(path) as segment:
        return [BatchPosition.of(batch) for batch in segment.walk()]


def offset_index_mismatches(path: Path, batches: Sequence[BatchPosition]) -> list[Mismatch]:
    """Return the entries that do not point at the batch whose last offset they name."""
    by_position = {batch.position: batch.last_offset for batch in batches}
    unused = IndexEntry(base_offset_of(path), 0)  # brokers never index a segment's first batch
    return [
        Mismatch(entry.key, by_position.get(entry.value, -1))
        for entry in offset_index_entries(path)
        if entry != unused and by_position.get(entry.value, -1) != entry.key
    ]


def time_index_problems(path: Path, batches: Sequence[BatchPosition]) -> TimeIndexProblems:
    last_offsets = [batch.last_offset for batch in batches]
    unused = IndexEntry(0, base_offset_of(path))
    problems, previous = TimeIndexProblems([], [], []), -1
    for timestamp, offset in (entry for entry in time_index_entries(path) if entry != unused):
        index = bisect_left(last_offsets, offset)
        if index == len(batches) or last_offsets[index] != offset:
            problems.unfound.append(Mismatch(offset, last_offsets[index] if index < len(batches) else -1))
        else:
            if batches[index].max_timestamp != timestamp:
                problems.wrong.append(Mismatch(timestamp, batches[index].max_timestamp))
            if timestamp <= previous:
                problems.unordered.append(Mismatch(timestamp, previous))
        previous = timestamp
    return problems


def sanity_problem(path: Path) -> str | None:
    """Return the problem for which a broker would rebuild the index at startup, or None if it would keep the index."""
    is_time_index = path.suffix == time_index.SUFFIX
    layout = time_index.TimeIndex.layout if is_time_index else offset_index.OffsetIndex.layout
    size_bytes = path.stat().st_size
    if size_bytes % layout.size:
        return f"{path} has {size_bytes} bytes, not a multiple of {layout.size}"
    entries = list(layout.iter_unpack(path.read_bytes()))
    if not entries:
        return None
    first, last = entries[0], entries[-1]
    offset_field = 1 if is_time_index else 0
    if last[offset_field] < 0:
        return f"{path} ends in an entry with the relative offset {last[offset_field]}"
    if is_time_index and last[0] < first[0]:
        return f"{path} ends in the timestamp {last[0]}, which is below the first, {first[0]}"
    return None
