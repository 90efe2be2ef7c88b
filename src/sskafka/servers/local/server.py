"""The broker's end of the private socket. Every question is a task, so a slow answer delays no other."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

log = logging.getLogger(__name__)

Answer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any] | AsyncIterator[Any]]
"""Takes the arguments of a question and returns the answer, or yields the parts of a long answer."""
LENGTH_BYTES = 4


async def serve(end: socket.socket, answers: Mapping[str, Answer]) -> None:
    """Answer questions until the other process closes its end; unfinished questions are cancelled then."""
    reader, writer = await asyncio.open_unix_connection(sock=end)
    async with asyncio.TaskGroup() as tasks:
        pending: set[asyncio.Task[None]] = set()
        try:
            while (frame := await read_frame(reader)) is not None:
                task = tasks.create_task(_answer(frame, answers, writer))
                pending.add(task)
                task.add_done_callback(pending.discard)
        finally:
            for task in pending:
                task.cancel()
            writer.close()


async def _answer(frame: Mapping[str, Any], answers: Mapping[str, Answer], writer: asyncio.StreamWriter) -> None:
    number, question = frame["id"], frame["ask"]
    try:
        answer = answers[question](frame["with"])
        if isinstance(answer, AsyncIterator):
            async for part in answer:
                await _send({"id": number, "part": part}, writer)
            result = None
        else:
            result = await answer
    except Exception as error:  # a question that fails must not end the broker: the other process gets the error
        log.warning("%s, asked over the private socket, failed", question, exc_info=error)
        await _send({"id": number, "error": str(error) or type(error).__name__}, writer)
    else:
        await _send({"id": number, "answer": result}, writer)


async def _send(value: Any, writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.write(encode_frame(value))
        try:
            await writer.drain()
        except ConnectionError:
            log.debug("nobody reads the private socket any more")


def encode_frame(value: Any) -> bytes:
    """Return a frame of the private socket: the length in four bytes, then JSON.

        {"id": 7, "ask": "vote", "with": {"epoch": 3, ...}}      child -> broker
        {"id": 7, "part": [...]}                                 broker -> child, any number of them, for long answers
        {"id": 7, "answer": ...}  or  {"id": 7, "error": "..."}  broker -> child, once

    Answers may arrive in any order."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """Return the next value, or None when the other process has closed its end."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        return json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
