"""Count the data records in the first batches of a segment by reading their headers, a slice at a time.

A segment may have millions of headers. So a thread reads each slice, while the event loop may append to the segment or
delete it. Neither changes the batches that are counted. A truncation does: then the log drops the count.
"""

from itertools import islice
from typing import Final

from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import File

SLICE_HEADERS: Final = 1024
"""A thread reads so many headers at once. That takes about 1 ms if they are in the page cache, and the event loop may
have to wait for it."""
_ALL_OFFSETS: Final = 2**63 - 1


class BatchCount:
    __slots__ = ("_end_position", "_position", "_up_to_offset", "records")

    def __init__(self, end_position: int, up_to_offset: int = _ALL_OFFSETS) -> None:
        """Count up to `end_position` or `up_to_offset`, whichever comes first."""
        self._end_position = end_position
        self._up_to_offset = up_to_offset
        self._position = 0
        self.records = 0
        """Final when the count is complete. Control records are not counted."""

    @property
    def is_complete(self) -> bool:
        return self._position == self._end_position

    def read_slice(self, file: File) -> None:
        """Read the next headers. Only one thread at a time may do so."""
        position, records = self._position, self.records
        for at, header in islice(walk_headers(file, position, self._end_position), SLICE_HEADERS):
            if header.base_offset >= self._up_to_offset:
                position = self._end_position
                break
            if not header.is_control:
                records += min(max(header.record_count, 0), self._up_to_offset - header.base_offset)
            position = at + header.size_bytes
        self._position, self.records = position, records
