"""Which neighbouring segments become one when they are cleaned.

Cleaning leaves segments small; as many as fit into `segment.bytes`, by their sizes before, are written into one. Their
indexes must fit too, and so must the offsets, which are relative to the first of the group in four bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple

RELATIVE_OFFSET_MAX = 2**31 - 1


class SourceSegment(NamedTuple):
    base_offset: int
    end_offset: int
    """Where the next segment begins."""
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
