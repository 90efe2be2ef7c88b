"""Split a byte stream into Kafka's frames: [int32 size][size bytes].

Small frames are received into a scratch buffer of the connection. A frame that does not fit there gets its own buffer,
which the socket fills directly, so a large fetch response is not copied again in this process.
"""

from struct import Struct

from sskafka.client.errors import ProtocolError

SCRATCH_BYTES = 64 * 1024
FRAME_BYTES_MAX = 512 * 1024 * 1024

_SIZE = Struct(">i")


class FrameReceiver:
    """Provides buffers for received bytes and returns completed frames."""

    __slots__ = ("_frame", "_frame_filled", "_frame_max", "_scratch", "_scratch_filled")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_filled = 0
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._frame_max = frame_bytes_max

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next received bytes; it is never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        return memoryview(self._scratch)[self._scratch_filled :]

    def received(self, count: int) -> list[bytes | bytearray]:
        """Account for `count` bytes written to the buffer and return the frames that they completed, in order."""
        if self._frame is not None:
            return self._received_into_frame(count)
        self._scratch_filled += count
        return self._cut_scratch()

    def _received_into_frame(self, count: int) -> list[bytes | bytearray]:
        assert self._frame is not None
        self._frame_filled += count
        if self._frame_filled < len(self._frame):
            return []
        frame, self._frame = self._frame, None
        return [frame]

    def _cut_scratch(self) -> list[bytes | bytearray]:
        frames: list[bytes | bytearray] = []
        position, filled = 0, self._scratch_filled
        while filled - position >= _SIZE.size:
            size = self._read_size(position)
            end = position + _SIZE.size + size
            if end > filled:
                break
            frames.append(bytes(self._scratch[position + _SIZE.size : end]))
            position = end
        self._keep_tail(position)
        return frames

    def _read_size(self, position: int) -> int:
        (size,) = _SIZE.unpack_from(self._scratch, position)
        if not 0 <= size <= self._frame_max:
            raise ProtocolError(f"invalid frame size {size}: is this a Kafka listener?")
        return int(size)

    def _keep_tail(self, position: int) -> None:
        """Move an incomplete frame to the front, or to its own buffer if the scratch buffer is too small for it."""
        if position:
            tail = self._scratch[position : self._scratch_filled]
            self._scratch[: len(tail)] = tail
            self._scratch_filled = len(tail)
        if self._scratch_filled < _SIZE.size:
            return
        size = self._read_size(0)
        if size + _SIZE.size > len(self._scratch):
            self._frame = bytearray(size)
            self._frame_filled = self._scratch_filled - _SIZE.size
            self._frame[: self._frame_filled] = self._scratch[_SIZE.size : self._scratch_filled]
            self._scratch_filled = 0
