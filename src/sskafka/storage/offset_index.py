"""`<base offset>.index`: from offsets to positions in a segment, sparsely.

    size  field
       4  last offset of a batch, relative to the segment's base offset
       4  position of that batch

An entry is made for the batch that follows `index.interval.bytes` of others.
"""

from struct import Struct

from sskafka.storage.disk import Disk
from sskafka.storage.sparse_index import SparseIndex

SUFFIX = ".index"


class OffsetIndex(SparseIndex):
    __slots__ = ("base_offset",)

    layout = Struct(">ii")

    def __init__(self, disk: Disk, path: str, base_offset: int, size_bytes: int = 0) -> None:
        super().__init__(disk, path, size_bytes)
        self.base_offset = base_offset

    def position_before(self, offset: int) -> int:
        """A position at a batch from which a walk forward meets the batch with `offset`."""
        entry = self.floor(offset - self.base_offset)
        return 0 if entry is None else entry[1]

    def position_well_before(self, offset: int, entries: int) -> int | None:
        """As `position_before`, so many entries earlier; None when there are not as many."""
        entry = self.entry_before(offset - self.base_offset, entries)
        return None if entry is None else entry[1]
