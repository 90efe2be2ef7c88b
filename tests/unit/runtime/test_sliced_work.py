"""Long computations: in slices, with pauses in between, one after the other."""

import logging
from collections.abc import Callable
from itertools import pairwise

import pytest
from coordinator_lab import LoopWork
from virtual_time import VirtualTime

from sskafka.model.computation import Computation
from sskafka.runtime.sliced_work import PAUSE_FACTOR, SLICE_MS, SlicedWork
from sskafka.runtime.timer_wheel import TICK_MS, TimerWheel


class Lab:
    """Every step of a computation takes a millisecond."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.elapsed_ms = 0.0
        self.work = SlicedWork(self, TimerWheel(self.time, self.time.call_later), LoopWork(self.time.call_later))
        self.steps: list[tuple[str, float]] = []

    def now_ms(self) -> int:
        return self.time.now_ms()

    def monotonic_ms(self) -> float:
        return self.time.monotonic_ms() + self.elapsed_ms

    def put(self, name: str, count: int, key: str | None = None, last: Callable[[], None] = lambda: None) -> None:
        self.work.put(key or name, lambda: self._computation(name, count, last))

    def _computation(self, name: str, count: int, last: Callable[[], None]) -> Computation[None]:
        for _ in range(count):
            self.steps.append((name, self.time.monotonic_ms()))
            self.elapsed_ms += 1
            yield
        last()

    @property
    def names(self) -> str:
        return "".join(name for name, _ in self.steps)


def test_nothing_runs_in_the_turn_that_asks_for_it() -> None:
    lab = Lab()
    lab.put("a", 1)
    assert not lab.steps
    lab.time.run_for(1)
    assert lab.names == "a"


def test_a_slice_is_short_and_followed_by_a_longer_pause() -> None:
    lab = Lab()
    lab.put("a", 20)
    lab.time.run_for(1_000)
    turns = sorted({at_ms for _, at_ms in lab.steps})
    assert max(sum(at_ms == turn for _, at_ms in lab.steps) for turn in turns) == SLICE_MS
    pauses = [after - before for before, after in pairwise(turns)]
    assert min(pauses) >= PAUSE_FACTOR * SLICE_MS - TICK_MS
    assert len(lab.steps) == 20
    assert not len(lab.work)


def test_computations_take_turns_in_order_and_one_of_a_key_runs() -> None:
    lab = Lab()
    lab.put("a", 3)
    lab.put("b", 2)
    lab.put("x", 9, key="b")
    lab.time.run_for(1)
    lab.put("y", 9, key="a")
    lab.time.run_for(1_000)
    assert lab.names == "aaabb"
    lab.put("z", 1, key="a")
    lab.time.run_for(1_000)
    assert lab.names == "aaabbz"


def test_one_that_asks_for_itself_runs_again() -> None:
    lab = Lab()
    lab.put("a", 1, last=lambda: lab.time.call_later(0, lambda: lab.put("b", 1, key="a")))
    lab.time.run_for(1_000)
    assert lab.names == "ab"


def test_a_failure_does_not_keep_others_from_running(caplog: pytest.LogCaptureFixture) -> None:
    lab = Lab()

    def fail() -> None:
        raise RuntimeError("a bug")

    lab.put("a", 1, last=fail)
    lab.put("b", 1)
    with caplog.at_level(logging.ERROR):
        lab.time.run_for(1_000)
    assert lab.names == "ab"
    assert "a computation failed" in caplog.text


def test_nothing_runs_after_a_stop() -> None:
    lab = Lab()
    lab.put("a", 20)
    lab.put("b", 1)
    lab.time.run_for(1)
    lab.work.stop()
    lab.put("c", 1)
    lab.time.run_for(1_000)
    assert lab.names == "a" * SLICE_MS
    assert not len(lab.work)


def test_a_stop_in_the_middle_of_a_step() -> None:
    lab = Lab()
    lab.put("a", 1, last=lab.work.stop)
    lab.put("b", 1)
    lab.time.run_for(1_000)
    assert lab.names == "a"
