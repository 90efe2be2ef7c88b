"""The child's end of the private socket: questions to the broker that this process belongs to."""

import asyncio
import itertools
import socket
from typing import Any

from sskafka.servers.local.server import encode_frame, read_frame


class BrokerGoneError(Exception):
    """The broker that this process belongs to has ended."""


class RefusedError(Exception):
    """The broker could not answer; says why."""


class LocalLink:
    """`run` reads the answers; it ends when the broker does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._parts: dict[int, list[Any]] = {}
        self._has_ended = False

    @classmethod
    async def open(cls, end: socket.socket) -> "LocalLink":
        return cls(*await asyncio.open_unix_connection(sock=end))

    async def run(self) -> None:
        while (frame := await read_frame(self._reader)) is not None:
            self._take(frame)
        self._has_ended = True
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(BrokerGoneError("the broker has ended"))
        self.close()

    def close(self) -> None:
        """Close this end; the broker reads end-of-file."""
        self._writer.close()

    async def ask(self, question: str, **details: Any) -> Any:
        """Return the answer; raises RefusedError or BrokerGoneError."""
        number = self._send(question, details)
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def ask_for_parts(self, question: str, **details: Any) -> list[Any]:
        """Return all parts of a response that is sent in parts."""
        number = self._send(question, details)
        parts = self._parts[number] = []
        try:
            await self._waiting[number]
        finally:
            del self._waiting[number], self._parts[number]
        return parts

    def _send(self, question: str, details: dict[str, Any]) -> int:
        if self._has_ended:
            raise BrokerGoneError("the broker has ended")
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(encode_frame({"id": number, "ask": question, "with": details}))
        return number

    def _take(self, frame: dict[str, Any]) -> None:
        """Complete the question, unless its caller has given up in the meantime."""
        answered = self._waiting.get(frame["id"])
        if "part" in frame:
            self._parts.get(frame["id"], []).append(frame["part"])
        elif answered is not None and not answered.done():
            if "error" in frame:
                answered.set_exception(RefusedError(frame["error"]))
            else:
                answered.set_result(frame["answer"])
