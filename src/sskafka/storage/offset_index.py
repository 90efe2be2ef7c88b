"""`<base offset>.index`: a sparse index from offsets to positions in a segment.

    size  field
       4  last offset of a batch, relative to the segment's base offset
       4  position of that batch

An entry is added for the batch that follows `index.interval.bytes` of other batches.
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
        """Return the position of a batch from which a forward walk reaches the batch with `offset`."""
        entry = self.floor(offset - self.base_offset)
        return 0 if entry is None else entry[1]

    def position_well_before(self, offset: int, entries: int) -> int | None:
        """Like `position_before`, but `entries` entries earlier. Return None if there are not that many."""
        entry = self.entry_before(offset - self.base_offset, entries)
        return None if entry is None else entry[1]
