"""A frame too large for the receive buffer that connections share: it gathers in a buffer lent for it."""

from sskafka.servers.kafka.request_memory import RequestMemory


class LargeFrame:
    __slots__ = ("_buffer", "_filled", "_memory", "_size")

    def __init__(self, memory: RequestMemory, buffer: bytearray, size: int, beginning: memoryview) -> None:
        buffer[: len(beginning)] = beginning
        self._memory = memory
        self._buffer = buffer
        self._size = size
        self._filled = len(beginning)

    @classmethod
    def maybe_begin(cls, memory: RequestMemory, size: int, beginning: memoryview) -> "LargeFrame | None":
        """None when too much is lent already."""
        buffer = memory.borrow(size)
        return None if buffer is None else cls(memory, buffer, size, beginning)

    def room(self) -> memoryview:
        """For the bytes still to come."""
        return memoryview(self._buffer)[self._filled : self._size]

    def is_complete_with(self, nbytes: int) -> bool:
        """So many more have come in."""
        self._filled += nbytes
        return self._filled >= self._size

    def content(self) -> memoryview:
        return memoryview(self._buffer)[: self._size]

    def give_back(self) -> None:
        self._memory.give_back(self._buffer)
