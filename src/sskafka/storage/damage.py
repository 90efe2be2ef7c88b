"""Damaged ranges of a log: batches whose bytes on the disk are no longer the bytes that were written.

A reader gets the batches before and after a damaged range as usual. A read at an offset within the range raises
CorruptBatchError, for which clients receive CORRUPT_MESSAGE: damaged bytes are never served, and no reader passes over
a damaged range without noticing.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError


class Damage(NamedTuple):
    """Offsets `offset` to `end_offset` in bytes `position` to `end_position` of a segment file."""

    segment_base_offset: int
    position: int
    end_position: int
    offset: int
    end_offset: int
    problem: str

    @property
    def size_bytes(self) -> int:
        return self.end_position - self.position


class DamagedRanges:
    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[Damage] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Damage]:
        return iter(list(self._found))

    def add(self, damage: Damage) -> bool:
        """Return whether the damage was not known yet."""
        where = damage[:2]
        if any(known[:2] == where for known in self._found):
            return False
        self._found = sorted([*self._found, damage], key=lambda known: known.offset)
        return True

    def remove(self, damage: Damage) -> None:
        self._found = [known for known in self._found if known is not damage]

    def keep_between(self, log_start_offset: int, log_end_offset: int) -> None:
        """Forget ranges that were deleted or truncated."""
        self._found = [
            known for known in self._found if known.end_offset > log_start_offset and known.end_offset <= log_end_offset
        ]

    def readable_up_to(self, offset: int, up_to_offset: int) -> int:
        """Return up to where a read from `offset` may go. Raise CorruptBatchError if it starts within a range."""
        for damage in self._found:
            if damage.offset <= offset < damage.end_offset:
                raise CorruptBatchError(f"offsets {damage.offset} to {damage.end_offset - 1} are damaged on disk")
            if offset < damage.offset:
                return min(up_to_offset, damage.offset)
        return up_to_offset
