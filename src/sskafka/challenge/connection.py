"""A TCP connection to the program under test: send and receive frames, each with a timeout."""

import socket
from struct import Struct
from types import TracebackType
from typing import Self

from sskafka.challenge.program import HOST

ANSWER_SECONDS_MAX = 10.0
_SIZE = Struct(">i")
_ANSWER_BYTES_MAX = 64 << 20


class NoAnswerError(Exception):
    """The program closed the connection, did not answer in time, or sent an incomplete frame."""


class Connection:
    def __init__(self, port: int, answer_seconds_max: float = ANSWER_SECONDS_MAX) -> None:
        try:
            self._socket = socket.create_connection((HOST, port), answer_seconds_max)
        except OSError as error:
            raise NoAnswerError(f"no connection to port {port}: {error}") from error
        self._seconds_max = answer_seconds_max

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except (BrokenPipeError, ConnectionResetError):
            raise NoAnswerError("the program closed the connection before it read the whole request") from None
        except OSError as error:
            raise NoAnswerError(f"the request could not be sent: {error}") from error

    def receive(self) -> bytes:
        """Return the next frame, without its size."""
        (size,) = _SIZE.unpack(self._receive_exactly(_SIZE.size, "the size of a response"))
        if not 0 <= size <= _ANSWER_BYTES_MAX:
            raise NoAnswerError(f"the response starts with the invalid size {size}")
        return self._receive_exactly(size, f"a response of {size} bytes")

    def _receive_exactly(self, size: int, what: str) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except ConnectionResetError:
                part = b""
            except TimeoutError:
                raise NoAnswerError(
                    f"{what} did not arrive within {self._seconds_max:g} s ({len(data)} of {size} bytes did)"
                ) from None
            except OSError as error:
                raise NoAnswerError(f"the connection broke: {error}") from error
            if not part:
                raise NoAnswerError(f"the program closed the connection after {len(data)} of {size} bytes of {what}")
            data += part
        return bytes(data)
