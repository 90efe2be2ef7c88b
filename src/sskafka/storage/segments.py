"""The segments of a log, ordered by base offset. There is always at least one, and the last one is the active segment.

Only the newest two keep the positions of their newest batches, because a log can have thousands of segments.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sskafka.storage.segment import Segment


class Segments:
    __slots__ = ("_base_offsets", "_segments", "active")

    def __init__(self, segments: list[Segment]) -> None:
        assert segments, "a log has at least one segment"
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        for segment, following in pairwise(segments):
            segment.recent.clear(following.base_offset - 1)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Add a segment and make it the active one."""
        assert segment.base_offset > self._base_offsets[-1]
        if len(self._segments) > 1:
            self._segments[-2].recent.clear(self.active.base_offset - 1)
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def replace_all(self, segment: Segment) -> None:
        self._segments, self._base_offsets, self.active = [segment], [segment.base_offset], segment

    def find_closed(self, base_offsets: Sequence[int]) -> list[Segment] | None:
        """Return the adjacent closed segments that begin at these offsets, or None if they are not all there."""
        index = bisect_right(self._base_offsets, base_offsets[0]) - 1
        found = self._segments[max(index, 0) : max(index, 0) + len(base_offsets)]
        is_complete = [segment.base_offset for segment in found] == list(base_offsets)
        return found if is_complete and self.active not in found else None

    def replace(self, old: list[Segment], new: list[Segment]) -> None:
        """Replace adjacent segments, as `find_closed` returns them. The first base offset stays."""
        assert old[0].base_offset == new[0].base_offset
        index = self._segments.index(old[0])
        self._segments[index : index + len(old)] = new
        self._base_offsets[index : index + len(old)] = [segment.base_offset for segment in new]

    def containing(self, offset: int) -> Segment:
        if offset >= self.active.base_offset:
            return self.active
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0)]

    def starting_at(self, offset: int) -> Iterator[Segment]:
        """Yield the segments from the one that contains `offset` to the last."""
        return iter(self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0) :])

    def after(self, segment: Segment) -> Segment | None:
        index = bisect_right(self._base_offsets, segment.base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def remove_after(self, offset: int) -> list[Segment]:
        """Remove and return the segments that begin above `offset`, but never the first segment."""
        index = max(bisect_right(self._base_offsets, offset), 1)
        removed = self._segments[index:]
        del self._segments[index:], self._base_offsets[index:]
        self.active = self._segments[-1]
        return removed

    def remove_before(self, offset: int) -> list[Segment]:
        """Remove and return the segments that end at or below `offset`, but never the active one."""
        index = max(bisect_right(self._base_offsets, offset) - 1, 0)
        removed = self._segments[:index]
        del self._segments[:index], self._base_offsets[:index]
        return removed
