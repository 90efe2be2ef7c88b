"""Group adjacent segments that are merged into one when they are cleaned.

Cleaning leaves segments small, so as many segments as fit into `segment.bytes`, by their sizes before the cleaning, are
merged. Their indexes must fit too, and their offsets must fit into four bytes relative to the base offset of the group.
"""

from collections.abc import Sequence
from typing import NamedTuple

RELATIVE_OFFSET_MAX = 2**31 - 1


class SourceSegment(NamedTuple):
    base_offset: int
    end_offset: int
    """The base offset of the next segment."""
    size_bytes: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SourceSegment], size_max: int, index_size_max: int
) -> list[tuple[SourceSegment, ...]]:
    groups: list[list[SourceSegment]] = []
    for segment in segments:
        if groups and _fits([*groups[-1], segment], size_max, index_size_max):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [tuple(group) for group in groups]


def _fits(group: list[SourceSegment], size_max: int, index_size_max: int) -> bool:
    return (
        sum(segment.size_bytes for segment in group) <= size_max
        and sum(segment.index_bytes for segment in group) <= index_size_max
        and sum(segment.time_index_bytes for segment in group) <= index_size_max
        and group[-1].end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )
