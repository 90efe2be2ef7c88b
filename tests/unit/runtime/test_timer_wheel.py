from collections.abc import Callable

from sskafka.runtime.timer_wheel import TICK_MS, TimerWheel


class ManualClock:
    """A clock and a loop timer in one: time moves only when the test says so."""

    def __init__(self) -> None:
        self.time_ms = 1000.0
        self.pending: list[tuple[float, Callable[[], None]]] = []

    def now_ms(self) -> int:
        return int(self.time_ms)

    def monotonic_ms(self) -> float:
        return self.time_ms

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.pending.append((self.time_ms + delay_s * 1000, callback))

    def advance(self, by_ms: float) -> None:
        target = self.time_ms + by_ms
        while due := sorted((entry for entry in self.pending if entry[0] <= target), key=lambda entry: entry[0]):
            self.time_ms = max(self.time_ms, due[0][0])
            self.pending.remove(due[0])
            due[0][1]()
        self.time_ms = target


def make() -> tuple[ManualClock, TimerWheel, list[str]]:
    clock = ManualClock()
    return clock, TimerWheel(clock, clock.call_later), []


def test_fires_not_early_and_at_most_two_ticks_late() -> None:
    clock, wheel, fired = make()
    wheel.schedule(100, lambda: fired.append("a"))
    clock.advance(99)
    assert fired == []
    clock.advance(1 + 2 * TICK_MS)
    assert fired == ["a"]


def test_an_earlier_timer_scheduled_later_fires_first() -> None:
    clock, wheel, fired = make()
    wheel.schedule(500, lambda: fired.append("late"))
    wheel.schedule(50, lambda: fired.append("early"))
    clock.advance(100)
    assert fired == ["early"]
    clock.advance(500)
    assert fired == ["early", "late"]


def test_a_cancelled_timer_never_fires_and_is_forgotten() -> None:
    clock, wheel, fired = make()
    timer = wheel.schedule(50, lambda: fired.append("no"))
    timer.cancel()
    assert timer.callback is None
    clock.advance(1000)
    assert fired == []


def test_sleeps_when_empty_and_wakes_again() -> None:
    clock, wheel, fired = make()
    wheel.schedule(10, lambda: fired.append("a"))
    clock.advance(100)
    assert clock.pending == []
    wheel.schedule(10, lambda: fired.append("b"))
    clock.advance(100)
    assert fired == ["a", "b"]


def test_a_callback_may_schedule_another() -> None:
    clock, wheel, fired = make()
    wheel.schedule(10, lambda: wheel.schedule(10, lambda: fired.append("second")) and None)
    clock.advance(100)
    assert fired == ["second"]


def test_a_timer_set_by_another_one_does_not_hold_up_those_before_it() -> None:
    clock, wheel, fired = make()
    wheel.schedule(50, lambda: wheel.schedule(10_000, lambda: fired.append("far")))  # type: ignore[arg-type, return-value]
    wheel.schedule(200, lambda: fired.append("near"))
    clock.advance(200 + 2 * TICK_MS)
    assert fired == ["near"]
    clock.advance(10_000)
    assert fired == ["near", "far"]


def test_a_timer_that_fails_does_not_keep_others_from_going_off() -> None:
    clock, wheel, fired = make()

    def fail() -> None:
        raise ZeroDivisionError

    wheel.schedule(50, fail)
    wheel.schedule(50, lambda: fired.append("same tick"))
    wheel.schedule(100, lambda: fired.append("later"))
    clock.advance(200)
    assert fired == ["same tick", "later"]
