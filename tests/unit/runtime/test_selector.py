"""The selector: several sockets in one turn, one that ends another, and what is left for the end of the turn."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from sskafka.runtime.selector import READABLE, Pollable, Selector


class Reader(Pollable):
    def __init__(self, selector: Selector, seen: list[str], name: str) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.on_ready: Callable[[], None] = lambda: None
        self._seen = seen
        self._name = name
        self._selector = selector
        selector.watch(self.ours.fileno(), READABLE, self)

    def ready(self, events: int) -> None:
        self._seen.append(f"{self._name} {self.ours.recv(100).decode()}")
        self.on_ready()

    def close(self) -> None:
        self._selector.watch(self.ours.fileno(), 0, self)
        self.ours.close()
        self.theirs.close()


def play(scene: Callable[[Selector, Reader, Reader, list[str]], None], until: str, **options: bool) -> list[str]:
    seen: list[str] = []

    async def run() -> None:
        selector = Selector(asyncio.get_running_loop(), **options)
        readers = Reader(selector, seen, "a"), Reader(selector, seen, "b")
        scene(selector, *readers, seen)
        async with asyncio.timeout(5):
            while until not in seen:  # noqa: ASYNC110
                await asyncio.sleep(0)
        for reader in readers:
            reader.close()
        selector.close()

    asyncio.run(run())
    return seen


@pytest.mark.parametrize("uses_epoll", [False, True])
def test_work_at_the_end_of_a_turn_follows_all_sockets_that_are_ready(uses_epoll: bool) -> None:
    def scene(selector: Selector, a: Reader, b: Reader, seen: list[str]) -> None:
        def wake() -> None:
            seen.append("woken")
            selector.call_at_end(lambda: seen.append("flushed"))  # as a woken request that has its response

        a.on_ready = b.on_ready = lambda: selector.call_at_end(wake) if "woken" not in seen else None
        a.theirs.send(b"1")
        b.theirs.send(b"2")

    seen = play(scene, "flushed", uses_epoll=uses_epoll)
    if uses_epoll:
        assert seen == ["a 1", "b 2", "woken", "woken", "flushed", "flushed"]
    assert {"a 1", "b 2", "woken", "flushed"} == set(seen)


def test_a_socket_that_the_turn_of_another_has_closed_is_not_served() -> None:
    def scene(selector: Selector, a: Reader, b: Reader, seen: list[str]) -> None:
        a.on_ready = b.close
        a.theirs.send(b"1")
        b.theirs.send(b"2")
        selector.call_at_end(lambda: None)

    assert play(scene, "a 1") == ["a 1"]


def test_an_error_at_the_end_of_a_turn_does_not_keep_the_others_from_running(caplog: pytest.LogCaptureFixture) -> None:
    def scene(selector: Selector, a: Reader, b: Reader, seen: list[str]) -> None:
        def fail() -> None:
            raise ValueError("a mistake")

        def ready() -> None:
            selector.call_at_end(fail)
            selector.call_at_end(lambda: seen.append("done"))

        a.on_ready = ready
        a.theirs.send(b"1")

    assert play(scene, "done") == ["a 1", "done"]
    assert "work at the end of a turn failed" in caplog.text


def test_outside_of_a_turn_the_work_is_done_soon() -> None:
    def scene(selector: Selector, a: Reader, b: Reader, seen: list[str]) -> None:
        selector.call_at_end(lambda: seen.append("done"))
        assert not seen

    assert play(scene, "done") == ["done"]


@pytest.mark.parametrize("uses_epoll", [False, True])
def test_an_error_of_one_socket_does_not_delay_the_end_of_the_turn(uses_epoll: bool) -> None:
    seen: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: seen.append(str(context["exception"])))
        selector = Selector(loop, uses_epoll=uses_epoll)
        reader = Reader(selector, seen, "a")

        def fail() -> None:
            selector.call_at_end(lambda: seen.append("end"))
            raise ValueError("unexpected")

        reader.on_ready = fail
        reader.theirs.send(b"1")
        async with asyncio.timeout(5):
            while "unexpected" not in seen:  # noqa: ASYNC110
                await asyncio.sleep(0)
        selector.call_at_end(lambda: seen.append("soon"))
        async with asyncio.timeout(5):
            while "soon" not in seen:  # noqa: ASYNC110
                await asyncio.sleep(0)
        reader.close()
        selector.close()

    asyncio.run(run())
    assert seen == ["a 1", "end", "unexpected", "soon"]
