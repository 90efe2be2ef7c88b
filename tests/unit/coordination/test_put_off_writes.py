"""Operations that a shard runs before all others once its log can be written again."""

from collections.abc import Callable

import pytest
from coordinator_lab import CoordinatorLab

from sskafka.runtime.timer_wheel import Timer, TimerWheel


def test_one_timer_is_kept_however_many_ask_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled: list[int] = []
    schedule = TimerWheel.schedule

    def noting(wheel: TimerWheel, delay_ms: int, callback: Callable[[], None]) -> Timer:
        scheduled.append(delay_ms)
        return schedule(wheel, delay_ms, callback)

    monkeypatch.setattr(TimerWheel, "schedule", noting)
    lab = CoordinatorLab()
    lab.log.is_writable = False
    lab.load()
    lab.context.write_eventually(lambda shard, _: shard.add("first", 1))
    for _ in range(100):
        assert lab.read("first").response == 0
    assert len(scheduled) == 1
    lab.turn(5_100)
    assert len(scheduled) <= 7, "again every second, and no more"
    lab.log.is_writable = True
    lab.turn(1_100)
    assert lab.read("first").response == 1


def test_they_run_in_a_later_turn_or_before_the_next_operation() -> None:
    lab = CoordinatorLab()
    lab.load()
    lab.context.write_eventually(lambda shard, _: shard.add("first", 1))
    assert lab.context.shard.sums == {}, "all contexts are asked in one turn"
    assert lab.read("first").response == 1
    lab.context.write_eventually(lambda shard, _: shard.add("second", 2))
    lab.turn()
    assert lab.context.shard.sums == {"first": 1, "second": 2}
