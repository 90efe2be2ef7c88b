import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sskafka.runtime.tasks import BackgroundTasks, RequestTasks


async def dies() -> None:
    raise ZeroDivisionError


async def lasts(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("cancelled")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 5))


def test_the_death_of_a_task_is_heard_of() -> None:
    async def scenario() -> None:
        tasks = BackgroundTasks()
        tasks.spawn(dies())
        with pytest.raises(ZeroDivisionError):
            await tasks.failure()

    run(scenario())


def test_a_task_that_is_cancelled_has_not_died() -> None:
    async def scenario() -> None:
        tasks = BackgroundTasks()
        task = tasks.spawn(lasts([]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await tasks.unless_failed(asyncio.sleep(0))

    run(scenario())


def test_nobody_waits_for_what_a_failure_makes_impossible() -> None:
    async def scenario() -> None:
        tasks, ended = BackgroundTasks(), list[str]()
        waiting = asyncio.create_task(tasks.unless_failed(lasts(ended)))
        await asyncio.sleep(0)
        tasks.fail(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            await waiting
        await asyncio.sleep(0)
        assert ended == ["cancelled"]

    run(scenario())


def test_the_first_failure_counts() -> None:
    async def scenario() -> None:
        tasks = BackgroundTasks()
        tasks.fail(ZeroDivisionError())
        tasks.fail(KeyError())
        with pytest.raises(ZeroDivisionError):
            await tasks.failure()

    run(scenario())


def test_requests_under_way_are_waited_for_up_to_a_time() -> None:
    async def scenario() -> None:
        tasks, done = RequestTasks(), list[str]()
        may_end = asyncio.Event()

        async def request() -> None:
            await may_end.wait()
            done.append("answered")

        tasks.spawn(request())
        await tasks.drain(0.01)
        assert done == []
        may_end.set()
        await tasks.drain(5)
        assert done == ["answered"]
        await tasks.drain(0)

    run(scenario())
