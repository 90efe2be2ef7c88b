"""A delayed operation completes once, when its offsets are reached or its timeout expires."""

from virtual_time import VirtualTime

from sskafka.model.errors import ErrorCode
from sskafka.runtime.delayed_operation import DelayedCallback, DelayedOperation, OffsetWaiters
from sskafka.runtime.timer_wheel import TimerWheel

NONE, TIMED_OUT = ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT


class Noted(DelayedOperation):
    def __init__(self) -> None:
        self.heard: list[list[ErrorCode]] = []

    def complete(self, outcomes: list[ErrorCode]) -> None:
        self.heard.append(list(outcomes))


class Lab:
    def __init__(self, waits: int = 2) -> None:
        self.time = VirtualTime()
        self.waiters = [OffsetWaiters() for _ in range(waits)]
        self.in_sync = True
        self.operation = Noted()
        self.operation.begin(waits, TimerWheel(self.time, self.time.call_later), 1_000)
        for number, waiters in enumerate(self.waiters):
            self.operation.wait_for(number, waiters, 10, self)

    def has_enough_in_sync(self) -> bool:
        return self.in_sync

    @property
    def heard(self) -> list[list[ErrorCode]]:
        return self.operation.heard


def test_it_is_complete_when_the_last_offset_is_reached() -> None:
    lab = Lab()
    lab.waiters[1].release(10)
    lab.waiters[0].release(9)
    assert lab.heard == []
    lab.waiters[0].release(11)
    lab.time.run_for(2_000)
    assert lab.heard == [[NONE, NONE]]


def test_what_makes_it_impossible_is_the_outcome_of_that_wait_alone() -> None:
    lab = Lab()
    lab.waiters[0].fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    lab.waiters[1].release(10)
    assert lab.heard == [[ErrorCode.NOT_LEADER_OR_FOLLOWER, NONE]]


def test_waits_that_are_open_when_the_time_is_over_have_timed_out() -> None:
    lab = Lab()
    lab.waiters[1].release(10)
    lab.time.run_for(1_100)
    assert lab.heard == [[TIMED_OUT, NONE]]
    lab.waiters[0].release(10)
    assert lab.heard == [[TIMED_OUT, NONE]], "told once"


def test_an_offset_reached_with_too_few_in_sync_is_not_enough() -> None:
    lab = Lab(1)
    lab.in_sync = False
    lab.waiters[0].release(10)
    assert lab.heard == [[ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]]


def test_one_that_is_cancelled_tells_nobody() -> None:
    lab = Lab()
    lab.operation.cancel()
    lab.waiters[0].release(10)
    lab.waiters[1].release(10)
    lab.time.run_for(2_000)
    assert lab.heard == []


def test_without_timers_somebody_else_sees_to_the_time() -> None:
    heard: list[ErrorCode] = []
    waiters = OffsetWaiters()
    operation = DelayedCallback(heard.append)
    operation.begin(1)
    operation.wait_for(0, waiters, 10)
    operation.expire()
    waiters.release(10)
    assert heard == [TIMED_OUT]
