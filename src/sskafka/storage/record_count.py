"""The number of data records in a log. Segments count their own; records below the log start offset are subtracted."""

from sskafka.storage.segments import Segments


class RecordCount:
    __slots__ = ("_below", "_counted_for", "_segments")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self.forget()

    def forget(self) -> None:
        """Drop the count because the segments have changed."""
        self._counted_for = self._segments.first.base_offset
        self._below = 0

    def since(self, log_start_offset: int) -> int:
        if self._counted_for != log_start_offset:
            self._below = self._segments.first.records_below(log_start_offset)
            self._counted_for = log_start_offset
        return sum(segment.record_count() for segment in self._segments) - self._below
