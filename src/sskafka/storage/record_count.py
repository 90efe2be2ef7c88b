"""How many data records a log holds: segments know theirs, and of the first one those before the log's start do not
count."""

from sskafka.storage.segments import Segments


class RecordCount:
    __slots__ = ("_below", "_counted_for", "_segments")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self.forget()

    def forget(self) -> None:
        """The segments are not what they were."""
        self._counted_for = self._segments.first.base_offset
        self._below = 0

    def since(self, log_start_offset: int) -> int:
        if self._counted_for != log_start_offset:
            self._below = self._segments.first.records_below(log_start_offset)
            self._counted_for = log_start_offset
        return sum(segment.record_count() for segment in self._segments) - self._below
