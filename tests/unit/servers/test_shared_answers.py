"""One look at the health of the cluster serves all streams of a client."""

import asyncio

import pytest

from sskafka.servers.http.caller import HttpCaller
from sskafka.servers.http.shared_answers import CLIENTS_MAX, SharedAnswers

ALICE, BOB = HttpCaller("User:alice", "127.0.0.1"), HttpCaller("User:bob", "127.0.0.1")


class Looks:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> str:
        self.count += 1
        await asyncio.sleep(0)
        return f"look {self.count}"


async def ask_twice(health: SharedAnswers, look: Looks, age_s_max: float) -> list[str]:
    return [await health.recent(ALICE, age_s_max, look) for _ in range(2)]


def test_streams_of_a_client_share_a_look() -> None:
    async def run() -> tuple[list[str], str]:
        health, look = SharedAnswers(), Looks()
        both = await asyncio.gather(*(health.recent(ALICE, 60, look) for _ in range(2)))
        return list(both), await health.recent(BOB, 60, look)

    assert asyncio.run(run()) == (["look 1", "look 1"], "look 2")


def test_an_old_look_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.servers.http.shared_answers.thread_time", lambda: 0.0)
    assert asyncio.run(ask_twice(SharedAnswers(), Looks(), -1)) == ["look 1", "look 2"]


def test_a_costly_look_is_used_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    used_s = iter([0.0, 5.0])  # processor time before and after the look
    monkeypatch.setattr("sskafka.servers.http.shared_answers.thread_time", lambda: next(used_s))
    assert asyncio.run(ask_twice(SharedAnswers(), Looks(), 0)) == ["look 1", "look 1"]


def test_a_failed_look_is_not_kept() -> None:
    async def fail() -> str:
        raise TimeoutError

    async def run() -> str:
        health = SharedAnswers()
        with pytest.raises(TimeoutError):
            await health.recent(ALICE, 60, fail)
        return await health.recent(ALICE, 60, Looks())

    assert asyncio.run(run()) == "look 1"


def test_few_clients_are_remembered() -> None:
    async def run() -> int:
        health, look = SharedAnswers(), Looks()
        for number in range(CLIENTS_MAX + 1):
            await health.recent(HttpCaller(f"User:{number}", ""), 60, look)
        await health.recent(HttpCaller("User:0", ""), 60, look)
        return look.count

    assert asyncio.run(run()) == CLIENTS_MAX + 2
