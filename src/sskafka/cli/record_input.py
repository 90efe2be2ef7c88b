r"""Read the input of `produce`: split standard input into records by a format.

    %k key   %v value   %t topic   %p partition   %d timestamp (ms)   and text between them, with \n \t \xHH escapes

The last text ends a record; the default is a newline. `%k\t%v` reads lines of key, tab, value.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

from sskafka.cli.record_format import FormatError, Verb, parse

_CHUNK_BYTES = 256 * 1024


class InputFields(NamedTuple):
    """The fields of a record that one piece of input contains."""

    key: bytes | None = None
    value: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None


class RecordCutter:
    """A compiled input format: verbs separated by text. The last text ends a record; the default is a newline."""

    def __init__(self, text: str) -> None:
        parts = parse(text)
        if not parts or isinstance(parts[0], bytes):
            raise FormatError("an input format must begin with a verb, such as %v or %k")
        if isinstance(parts[-1], Verb):
            parts.append(b"\n")
        self._letters = [self._checked(part) for part in parts[::2]]
        self._separators = [part for part in parts[1::2] if isinstance(part, bytes)]
        if len(self._separators) != len(self._letters):
            raise FormatError("two verbs need separating text between them")

    @property
    def record_end(self) -> bytes:
        return self._separators[-1]

    @property
    def has_topic(self) -> bool:
        """Whether the input names the topic of each record."""
        return "t" in self._letters

    @staticmethod
    def _checked(part: bytes | Verb) -> str:
        if isinstance(part, bytes) or part.letter not in "kvtpd" or part.argument is not None:
            raise FormatError("an input format has the verbs %k, %v, %t, %p and %d, with text between them")
        return part.letter

    def cut(self, text: bytes) -> InputFields:
        fields = dict(zip(self._letters, self._split(text), strict=True))
        topic = fields.get("t")
        return InputFields(
            key=fields.get("k"),
            value=fields.get("v"),
            topic=None if topic is None else topic.decode(),
            partition=_number(fields.get("p"), "partition", 32),
            timestamp=_number(fields.get("d"), "timestamp", 64),
        )

    def _split(self, text: bytes) -> Sequence[bytes]:
        found = []
        for separator in self._separators[:-1]:
            field, there, text = text.partition(separator)
            if not there:
                raise FormatError(f"no {separator.decode()!r} in {field.decode(errors='replace')!r}")
            found.append(field)
        return [*found, text]


def _number(text: bytes | None, what: str, bits: int) -> int | None:
    """Parse a signed number of `bits` bits."""
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise FormatError(f"{text.decode(errors='replace')!r} is not a {what}")
    return number


async def read_pieces(fd: int, end: bytes) -> AsyncIterator[bytes]:
    """Yield the input from `fd`, split at each `end`. Text after the last one is a piece too."""
    rest = b""
    while chunk := await _read_chunk(fd):
        *pieces, rest = (rest + chunk).split(end)
        for piece in pieces:
            yield piece
    if rest:
        yield rest


async def _read_chunk(fd: int) -> bytes:
    """Read on a daemon thread, so that Ctrl+C works while there is no input."""
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()

    def finish(chunk: bytes, error: OSError | None) -> None:
        if read.done():
            return
        if error is None:
            read.set_result(chunk)
        else:
            read.set_exception(error)

    def work() -> None:
        chunk, failure = b"", None
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except OSError as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, chunk, failure)

    Thread(target=work, name="read-input", daemon=True).start()
    return await read
