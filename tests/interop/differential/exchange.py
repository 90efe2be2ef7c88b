"""A request and what came back, over a plain socket: bytes are made and read here, so nothing is retried or hidden."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.header import decode_response_header, encode_request_header

CLIENT_ID = "differential"
ANSWER_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Dropped:
    """What came instead of an answer."""

    what: str


CLOSED = Dropped("the connection was closed")
SILENT = Dropped(f"no answer within {ANSWER_SECONDS_MAX:.0f} s")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request of a script, with the answer to it: a message or Dropped."""

    api: str
    version: int
    note: str
    request: Any
    answer: Any

    def __str__(self) -> str:
        return f"{self.api} v{self.version}{f' ({self.note})' if self.note else ''}"


class Connection:
    """A client's connection; requests may be sent ahead of the answers to earlier ones."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and return the answer to it, a message or Dropped."""
        self.send(request, version)
        return self.answer(request, version)

    def send(self, request: Any, version: int) -> None:
        self.send_bytes(request.SCHEMA.key, version, encode(request, version))

    def send_bytes(self, api_key: int, version: int, body: bytes) -> None:
        self._correlation_id += 1
        header = encode_request_header(api_key, version, self._correlation_id, CLIENT_ID)
        self.send_raw((len(header) + len(body)).to_bytes(4, "big") + header + body)

    def send_raw(self, frame: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the answer will be Dropped
            self._socket.sendall(frame)

    def answer(self, request: Any, version: int) -> Any:
        return self.answer_of(request.SCHEMA.key, version)

    def answer_of(self, api_key: int, version: int) -> Any:
        """The next answer, decoded; it must end where its frame ends."""
        frame = self.frame()
        return frame if isinstance(frame, Dropped) else self._decode(api_key, version, frame)

    def frame(self, seconds_max: float = ANSWER_SECONDS_MAX) -> bytes | Dropped:
        """The next frame without its size."""
        self._socket.settimeout(seconds_max)
        try:
            size = self._exactly(4)
            return CLOSED if size is None else self._exactly(int.from_bytes(size, "big")) or CLOSED
        except TimeoutError:
            return SILENT
        except ConnectionResetError:
            return CLOSED

    def _exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def _decode(self, api_key: int, version: int, frame: bytes) -> Any:
        try:
            correlation_id, start = decode_response_header(api_key, version, frame)
            if correlation_id != self._correlation_id:
                return Dropped(f"correlation id {correlation_id} instead of {self._correlation_id}")
            read_as = version
            if api_key == ApiKey.API_VERSIONS and frame[start : start + 2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(
                2, "big"
            ):
                read_as = 0
            return decode(API_BY_KEY[api_key].response_class(), read_as, frame, start)
        except MalformedMessageError as error:
            return Dropped(f"an answer that cannot be read: {error}")


def error_codes(message: Any) -> Iterator[int]:
    """Every error code in a message."""
    for name in getattr(message, "__dataclass_fields__", ()):
        value = getattr(message, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, list):
            for one in value:
                yield from error_codes(one)
        else:
            yield from error_codes(value)
