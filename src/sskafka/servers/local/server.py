"""The broker's end of the private socket: every question is a task, so a slow answer holds up no other."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from sskafka.servers.local.frames import encode_frame, read_frame

log = logging.getLogger(__name__)

Answer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any] | AsyncIterator[Any]]
"""From what was sent with a question to the answer, or to the parts of a long one."""


async def serve(end: socket.socket, answers: Mapping[str, Answer]) -> None:
    """Returns when the other side has gone; whoever waits there for an answer is past hearing it."""
    reader, writer = await asyncio.open_unix_connection(sock=end)
    async with asyncio.TaskGroup() as tasks:
        asked: set[asyncio.Task[None]] = set()
        try:
            while (frame := await read_frame(reader)) is not None:
                task = tasks.create_task(_answer(frame, answers, writer))
                asked.add(task)
                task.add_done_callback(asked.discard)
        finally:
            for task in asked:
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
