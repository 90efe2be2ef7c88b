"""Operations that a shard runs before all others once its log can be written again."""

import itertools
from collections.abc import Callable

import pytest
from coordinator_lab import CoordinatorLab, MemoryLog

from sskafka.runtime.timer_wheel import Timer, TimerWheel
from sskafka.storage.errors import TemporaryStorageError


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


def test_after_a_failed_append_they_are_tried_again_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = CoordinatorLab()
    lab.load()
    tried_ms: list[float] = []
    append = MemoryLog.append

    def full_twice(log: MemoryLog, batch: bytearray, now_ms: int) -> int:
        tried_ms.append(lab.time.elapsed_ms)
        if len(tried_ms) <= 2:
            raise TemporaryStorageError("no room")
        return append(log, batch, now_ms)

    monkeypatch.setattr(MemoryLog, "append", full_twice)
    lab.context.after_load = lambda shard, _: shard.add("once", 1)
    lab.context.write_eventually(lambda shard, _: shard.add("first", 1))
    lab.turn(5_000)
    assert [later - earlier >= 1_000 for earlier, later in itertools.pairwise(tried_ms[:3])] == [True, True]
    assert lab.context.shard.sums == {"first": 1, "once": 1}
