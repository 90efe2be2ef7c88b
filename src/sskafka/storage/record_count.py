"""The number of data records in a log, without control records.

    |-- segment --|-- segment --|--- active segment ---|~~~~~~~~~~~~~~~~~~~|
     batches that were on disk when the log was opened   appended since then

A segment counts its records while they are appended. The headers of other batches are read when the number is asked for
the first time, and so are those of the batches below the log start offset, which are subtracted.
"""

from typing import NamedTuple

from sskafka.storage.batch_count import BatchCount
from sskafka.storage.disk import File
from sskafka.storage.segment import Segment
from sskafka.storage.segments import Segments


class Uncounted(NamedTuple):
    """Batches to count before the number of records is known."""

    batches: BatchCount
    file: File

    def read_slice(self) -> None:
        self.batches.read_slice(self.file)


class RecordCount:
    __slots__ = ("_below", "_below_for", "_segments")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self.forget()

    def forget(self) -> None:
        """Drop the count of the records below the log start offset: batches of the first segment may have changed."""
        self._below = BatchCount(0)
        self._below_for: tuple[Segment, int] | None = None

    def since(self, log_start_offset: int) -> int | None:
        """Return the number of records, or None while there are `uncounted` batches."""
        below = self._count_below(log_start_offset)
        if not below.is_complete:
            return None
        records = -below.records
        for segment in self._segments:
            if not segment.found_batches.is_complete:
                return None
            records += segment.record_count
        return records

    def uncounted(self, log_start_offset: int) -> Uncounted | None:
        """Return the next batches to count, or None if all are counted."""
        below = self._count_below(log_start_offset)
        if not below.is_complete:
            return Uncounted(below, self._segments.first.file)
        for segment in self._segments:
            if not segment.found_batches.is_complete:
                return Uncounted(segment.found_batches, segment.file)
        return None

    def _count_below(self, log_start_offset: int) -> BatchCount:
        first = self._segments.first
        if self._below_for != (first, log_start_offset):
            self._below_for = first, log_start_offset
            self._below = BatchCount(first.size_bytes if log_start_offset > first.base_offset else 0, log_start_offset)
        return self._below
