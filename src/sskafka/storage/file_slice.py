"""A run of bytes in a segment, handed out instead of the bytes.

The connection reads it when the socket has room. It holds the file itself, so a segment that is deleted meanwhile
stays readable; one that was truncated below the slice does not, and says so.
"""

from sskafka.model.buffers import Buffer
from sskafka.storage.disk import File
from sskafka.storage.errors import StorageError


class FileSlice:
    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"FileSlice({self.position}+{self.length})"

    def part(self, start: int, length: int) -> "FileSlice":
        """The bytes from `start` on, at most `length` of them."""
        return FileSlice(self.file, self.position + start, min(length, self.length - start))

    def read(self) -> Buffer:
        """All of it; may wait for the disk, so call it in an executor unless the bytes are known to be cached."""
        return self._whole(self.file.read_at(self.length, self.position))

    def read_now(self) -> Buffer | None:
        """All of it if memory holds it, otherwise None."""
        data = self.file.read_cached_at(self.length, self.position)
        return None if data is None else self._whole(data)

    def _whole(self, data: Buffer) -> Buffer:
        if len(data) != self.length:
            raise StorageError(f"{self.length} bytes at {self.position} were cut off while they were being read")
        return data
