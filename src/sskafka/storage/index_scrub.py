"""Compare the indexes of a segment with its batches while a scrub walks over them, and compute what they should be.

    offset index        each entry names a batch of the segment, with its position and last offset
    time index          each entry names a batch that has the largest timestamp so far
    transaction index   each entry names an abort marker of the segment

An entry that is missing is no problem: indexes are sparse. Directories that Apache Kafka wrote have other intervals,
and in the time index the offset of a record within the batch.
"""

from collections import deque

from sskafka.model.buffers import Buffer
from sskafka.records.batch import BatchHeader
from sskafka.records.control import ControlType
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.offset_index import OffsetIndex
from sskafka.storage.segment import Segment
from sskafka.storage.sparse_index import SparseIndex
from sskafka.storage.time_index import TimeIndex
from sskafka.storage.transactions.marker import maybe_read_marker

OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX = "offset index", "time index", "transaction index"


class IndexScrub:
    def __init__(self, segment: Segment, config: LogConfig) -> None:
        self._base_offset = segment.base_offset
        self._interval_bytes = config.index_interval_bytes
        self.problems: set[str] = set()
        """Names of the indexes that do not match the segment."""
        self._offsets = deque(self._entries_of(segment.offset_index, OFFSET_INDEX))
        self._times = deque(self._entries_of(segment.time_index, TIME_INDEX))
        self._bytes_since_index = 0
        self._max_timestamp, self._max_timestamp_offset = -1, segment.base_offset
        self._last_indexed_timestamp = -1
        self._markers: set[tuple[int, int]] = set()
        self._aborted: list[tuple[int, int]] = []
        self.offset_index = bytearray()
        """The content of an offset index that matches the segment."""
        self.time_index = bytearray()
        self._check_transaction_index(segment)

    def _entries_of(self, index: SparseIndex, name: str) -> list[tuple[int, int]]:
        try:
            return index.entries()
        except CorruptFileError:
            self.problems.add(name)
            return []

    def _check_transaction_index(self, segment: Segment) -> None:
        try:
            self._aborted = [(aborted.producer_id, aborted.last_offset) for aborted in segment.transaction_index]
        except CorruptFileError:
            self.problems.add(TRANSACTION_INDEX)

    def batch(self, position: int, header: BatchHeader, batch: Buffer) -> None:
        """Compare the next good batch of the segment."""
        if self._offsets and self._offsets[0][1] <= position:
            relative, indexed_position = self._offsets.popleft()
            is_unused = relative == 0 and indexed_position == 0  # as preallocated files have it
            if not is_unused and (indexed_position, relative + self._base_offset) != (position, header.last_offset):
                self.problems.add(OFFSET_INDEX)
        if header.max_timestamp > self._max_timestamp:
            self._new_maximum(header)
        if header.is_control and self._aborted:
            marker = maybe_read_marker(batch, header, 0)
            if marker is not None and marker.type == ControlType.ABORT:
                self._markers.add((header.producer_id, header.last_offset))
        self._rebuild(position, header)

    def _new_maximum(self, header: BatchHeader) -> None:
        self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
        if self._times and self._times[0][1] + self._base_offset <= header.last_offset:
            timestamp, relative = self._times.popleft()
            if timestamp != header.max_timestamp or relative + self._base_offset < header.base_offset:
                self.problems.add(TIME_INDEX)

    def _rebuild(self, position: int, header: BatchHeader) -> None:
        if self._bytes_since_index > self._interval_bytes:
            self.offset_index += OffsetIndex.layout.pack(header.last_offset - self._base_offset, position)
            self._add_time()
            self._bytes_since_index = 0
        self._bytes_since_index += header.size_bytes

    def _add_time(self) -> None:
        if self._max_timestamp > self._last_indexed_timestamp:
            relative = self._max_timestamp_offset - self._base_offset
            self.time_index += TimeIndex.layout.pack(self._max_timestamp, relative)
            self._last_indexed_timestamp = self._max_timestamp

    def end(self) -> None:
        """Compare what is left after the last batch of a closed segment."""
        self._add_time()
        if any(entry != (0, 0) for entry in self._offsets):
            self.problems.add(OFFSET_INDEX)
        if any(entry != (0, 0) for entry in self._times):
            self.problems.add(TIME_INDEX)
        if not self._markers.issuperset(self._aborted):
            self.problems.add(TRANSACTION_INDEX)
