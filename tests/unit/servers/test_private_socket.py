import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from sskafka.servers.local.link import BrokerGoneError, LocalLink, RefusedError
from sskafka.servers.local.server import Answer, serve


async def double(details: Mapping[str, Any]) -> int:
    return int(details["number"]) * 2


async def refuse(details: Mapping[str, Any]) -> None:
    raise ValueError("not today")


async def never(details: Mapping[str, Any]) -> None:
    await asyncio.Event().wait()


async def count(details: Mapping[str, Any]) -> AsyncIterator[list[int]]:
    for number in range(details["to"]):
        yield [number]


ANSWERS: dict[str, Answer] = {"double": double, "refuse": refuse, "never": never, "count": count}


def connected(use: Callable[[LocalLink, "asyncio.Task[None]"], Awaitable[None]]) -> None:
    """Runs `use` with a link and the task that serves its other end."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(serve(ours, ANSWERS))
        link = await LocalLink.open(theirs)
        reading = asyncio.create_task(link.run())
        try:
            await use(link, serving)
        finally:
            serving.cancel()
            await asyncio.wait([serving, reading])

    asyncio.run(run())


def test_questions_are_answered_each_by_itself() -> None:
    async def use(link: LocalLink, serving: "asyncio.Task[None]") -> None:
        waiting = asyncio.create_task(link.ask("never"))
        assert await link.ask("double", number=21) == 42
        assert await asyncio.gather(*(link.ask("double", number=number) for number in range(50))) == list(
            range(0, 100, 2)
        )
        assert not waiting.done()
        waiting.cancel()

    connected(use)


def test_long_answers_come_in_parts() -> None:
    async def use(link: LocalLink, serving: "asyncio.Task[None]") -> None:
        assert await link.ask_for_parts("count", to=3) == [[0], [1], [2]]

    connected(use)


def test_a_failure_is_told_and_the_rest_goes_on() -> None:
    async def use(link: LocalLink, serving: "asyncio.Task[None]") -> None:
        with pytest.raises(RefusedError, match="not today"):
            await link.ask("refuse")
        with pytest.raises(RefusedError, match="unheard of"):
            await link.ask("unheard of")
        assert await link.ask("double", number=1) == 2

    connected(use)


def test_whoever_waits_when_the_broker_ends_is_told() -> None:
    async def use(link: LocalLink, serving: "asyncio.Task[None]") -> None:
        waiting = asyncio.create_task(link.ask("never"))
        await link.ask("double", number=1)
        serving.cancel()
        with pytest.raises(BrokerGoneError):
            await waiting
        with pytest.raises(BrokerGoneError):
            await link.ask("double", number=1)

    connected(use)


def test_serving_ends_when_the_child_has_gone() -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(serve(ours, ANSWERS))
        link = await LocalLink.open(theirs)
        reading = asyncio.create_task(link.run())
        waiting = asyncio.create_task(link.ask("never"))
        await link.ask("double", number=1)
        reading.cancel()
        waiting.cancel()
        link.close()
        await asyncio.wait_for(serving, 5)

    asyncio.run(run())
