"""Frames of the binary protocol of ADR-0011, for its server and its client.

Numbers are big-endian. `length` includes its own 4 bytes; the lengths of fields do not.

    PRODUCE    length 4 | 03 | topic length 4 | topic | key length 4 (0: no key) | key | data length 4 | data
    response   length 4 | 04 | 1 | offset 8 | partition 4
    CONSUME    length 4 | 01 | topic length 4 | topic | partition 4 (-1: the broker chooses) | offset 8 | batch size 4
    response   length 4 | 02 | 1 | next offset 8 | count 4 | for each message: data length 4 | offset 8 | data
    FLUSH      length 4 | 05
    response   length 4 | 06 | 1
    failure    length 4 | type | 0 | text length 4 | text, and after 04 partition 4 (-1: none was chosen)

Topics, keys and texts are UTF-8. No bytes follow the last field of a frame. Every length is checked against the
remaining bytes before it is used.
"""

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple, TypeAlias

HEADER_BYTES = 5
NO_PARTITION = -1
ANY_PARTITION = -1

_HEAD = Struct(">iB")
_INT = Struct(">i")
_PRODUCED = Struct(">qi")
_CONSUME = Struct(">iqi")
_CONSUMED = Struct(">qi")
_MESSAGE = Struct(">iq")


class FrameType(IntEnum):
    CONSUME = 1
    CONSUMED = 2
    PRODUCE = 3
    PRODUCED = 4
    FLUSH = 5
    FLUSHED = 6


class MalformedFrameError(Exception):
    """The bytes are not a valid frame of this protocol."""


class Produce(NamedTuple):
    topic: str
    key: bytes | None
    data: bytes


class Consume(NamedTuple):
    topic: str
    partition: int
    offset: int
    batch_size: int


class Flush(NamedTuple):
    pass


class Produced(NamedTuple):
    offset: int
    partition: int


class StoredMessage(NamedTuple):
    offset: int
    data: bytes


class Consumed(NamedTuple):
    next_offset: int
    messages: Sequence[StoredMessage]


class Flushed(NamedTuple):
    pass


class Failure(NamedTuple):
    """`partition` is encoded only in the response to PRODUCE."""

    type: int
    text: str
    partition: int = NO_PARTITION


Request: TypeAlias = Produce | Consume | Flush
Answer: TypeAlias = Produced | Consumed | Flushed | Failure


def read_head(head: bytes) -> tuple[int, int]:
    """Return length and type from the first HEADER_BYTES of a frame."""
    length, frame_type = _HEAD.unpack(head)
    return length, frame_type


def answer_type(request_type: int) -> int:
    """Return the frame type of the response; an unknown request type is answered with the same type."""
    return request_type + 1 if request_type in {FrameType.CONSUME, FrameType.PRODUCE, FrameType.FLUSH} else request_type


def encode_request(request: Request) -> bytes:
    match request:
        case Produce(topic, key, data):
            return _frame(FrameType.PRODUCE, _sized(topic.encode()), _sized(key or b""), _sized(data))
        case Consume(topic, partition, offset, batch_size):
            fields = _CONSUME.pack(partition, offset, batch_size)
            return _frame(FrameType.CONSUME, _sized(topic.encode()), fields)
        case Flush():
            return _frame(FrameType.FLUSH)


def decode_request(frame_type: int, body: bytes) -> Request:
    """Decode a request; `body` is everything after the type."""
    fields = _Fields(body)
    request: Request
    match frame_type:
        case FrameType.PRODUCE:
            request = Produce(fields.text("topic"), fields.key(), fields.sized("data"))
        case FrameType.CONSUME:
            request = Consume(fields.text("topic"), *fields.struct(_CONSUME))
        case FrameType.FLUSH:
            request = Flush()
        case _:
            raise MalformedFrameError(f"unknown request type {frame_type:02x}")
    fields.end()
    return request


def encode_answer(answer: Answer) -> bytes:
    match answer:
        case Produced():
            return _frame(FrameType.PRODUCED, b"\1", _PRODUCED.pack(*answer))
        case Consumed(next_offset, messages):
            parts = [_MESSAGE.pack(len(message.data), message.offset) + message.data for message in messages]
            return _frame(FrameType.CONSUMED, b"\1", _CONSUMED.pack(next_offset, len(parts)), *parts)
        case Flushed():
            return _frame(FrameType.FLUSHED, b"\1")
        case Failure(frame_type, text, partition):
            tail = _INT.pack(partition) if frame_type == FrameType.PRODUCED else b""
            return _frame(frame_type, b"\0", _sized(text.encode()), tail)


def decode_answer(frame_type: int, body: bytes) -> Answer:
    fields = _Fields(body)
    answer: Answer
    if not fields.flag():
        text = fields.text("failure")
        answer = Failure(frame_type, text, fields.number() if frame_type == FrameType.PRODUCED else NO_PARTITION)
    elif frame_type == FrameType.PRODUCED:
        answer = Produced(*fields.struct(_PRODUCED))
    elif frame_type == FrameType.CONSUMED:
        next_offset, count = fields.struct(_CONSUMED)
        if count < 0:
            raise MalformedFrameError(f"invalid message count {count}")
        answer = Consumed(next_offset, [fields.message() for _ in range(count)])
    elif frame_type == FrameType.FLUSHED:
        answer = Flushed()
    else:
        raise MalformedFrameError(f"unknown response type {frame_type:02x}")
    fields.end()
    return answer


def _frame(frame_type: int, *parts: bytes) -> bytes:
    length = HEADER_BYTES + sum(map(len, parts))
    return b"".join((_HEAD.pack(length, frame_type), *parts))


def _sized(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


class _Fields:
    """The body of a frame, read from front to back."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def struct(self, form: Struct) -> tuple[int, ...]:
        return form.unpack(self._take(form.size, "a number"))

    def number(self) -> int:
        return self.struct(_INT)[0]

    def flag(self) -> bool:
        return self._take(1, "the success flag") != b"\0"

    def sized(self, what: str) -> bytes:
        return self._take(self.number(), what)

    def text(self, what: str) -> str:
        try:
            return self.sized(what).decode()
        except UnicodeDecodeError as error:
            raise MalformedFrameError(f"the {what} is not UTF-8: {error.reason}") from error

    def key(self) -> bytes | None:
        """Return the bytes of the key, which must be UTF-8; None if it is empty."""
        return self.text("key").encode() or None

    def message(self) -> StoredMessage:
        size, offset = self.struct(_MESSAGE)
        return StoredMessage(offset, self._take(size, "a message"))

    def end(self) -> None:
        if self._at != len(self._body):
            raise MalformedFrameError(f"{len(self._body) - self._at} bytes follow the last field")

    def _take(self, size: int, what: str) -> bytes:
        left = len(self._body) - self._at
        if not 0 <= size <= left:
            raise MalformedFrameError(f"{what} has {size} bytes, but only {left} are left in the frame")
        taken = self._body[self._at : self._at + size]
        self._at += size
        return taken
