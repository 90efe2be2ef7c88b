from collections.abc import Callable

from sskafka.runtime.timer_wheel import CANCELLED_MAX, TICK_MS, TimerWheel


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


def test_cancelled_timers_do_not_stay_for_as_long_as_a_client_wants() -> None:
    """Produce requests with a timeout of weeks, each of them answered at once, beside requests that wait."""
    clock, wheel, fired = make()
    for number in range(10):
        wheel.schedule(100 * (number + 1), lambda number=number: fired.append(str(number)))
    for _ in range(20 * CANCELLED_MAX):
        wheel.schedule(2**31 - 1, lambda: fired.append("no")).cancel()
        clock.advance(0.01)
    assert wheel.size <= 2 * CANCELLED_MAX
    clock.advance(2000)
    assert fired == [str(number) for number in range(10)]


def test_timers_that_are_cancelled_while_others_fire() -> None:
    clock, wheel, fired = make()
    later = [wheel.schedule(50 + index % 2 * 60_000, lambda: fired.append("no")) for index in range(5 * CANCELLED_MAX)]

    def cancel_all() -> None:
        fired.append("first")
        for timer in later:
            timer.cancel()

    wheel.schedule(40, cancel_all)
    wheel.schedule(70_000, lambda: fired.append("last"))
    clock.advance(100_000)
    assert fired == ["first", "last"]
    assert wheel.size == 0
