"""`<base offset>.timeindex`: a sparse index from timestamps to offsets in a segment.

    size  field
       8  the largest timestamp so far
       4  last offset of the first batch that has it, relative to the segment's base offset

Timestamps strictly increase. An entry is added together with an offset index entry, and once more when the segment is
closed, so the last entry of a closed segment holds its largest timestamp.
"""

from struct import Struct

from sskafka.storage.disk import Disk
from sskafka.storage.sparse_index import SparseIndex

SUFFIX = ".timeindex"


class TimeIndex(SparseIndex):
    __slots__ = ("base_offset",)

    layout = Struct(">qi")

    def __init__(self, disk: Disk, path: str, base_offset: int, size_bytes: int = 0) -> None:
        super().__init__(disk, path, size_bytes)
        self.base_offset = base_offset

    def maybe_add(self, timestamp: int, offset: int) -> None:
        if timestamp > self.last_key:
            self.add(timestamp, offset - self.base_offset)

    @property
    def last_entry(self) -> tuple[int, int]:
        """The largest timestamp and its offset; -1 and the base offset if there is none."""
        return self.last_key, self.base_offset + self.last_value

    def offset_before(self, timestamp: int) -> int:
        """Return an offset at or before the first record with `timestamp` or a later one."""
        entry = self.floor(timestamp)
        return self.base_offset + (entry[1] if entry else 0)
