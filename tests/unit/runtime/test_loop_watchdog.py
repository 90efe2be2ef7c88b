import asyncio
import logging
import time
from types import SimpleNamespace

import pytest

from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.loop_watchdog import LoopWatchdog, SlowTurn


def busy_for(cpu_s: float) -> None:
    stop_s = time.thread_time() + cpu_s
    while time.thread_time() < stop_s:
        pass


def handle_request(cpu_s: float) -> None:
    api = SimpleNamespace(name="DescribeGroups")
    busy_for(cpu_s)
    assert api


async def next_tick() -> None:
    await asyncio.sleep(0.05)


async def watch(*turns: float | None, sleep_s: float = 0.0) -> LoopWatchdog:
    """Take turns of so much CPU time, None for one that only sleeps."""
    watchdog = LoopWatchdog()
    watchdog.start()
    await next_tick()
    for cpu_s in turns:
        if cpu_s is None:
            time.sleep(sleep_s)  # noqa: ASYNC251  the loop is kept from turning on purpose
        else:
            handle_request(cpu_s)
        await next_tick()
    watchdog.stop()
    return watchdog


def run(*turns: float | None, sleep_s: float = 0.0) -> LoopWatchdog:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(watch(*turns, sleep_s=sleep_s))


def test_a_long_turn_is_counted_and_logged_with_the_request_that_it_handles(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = run(0.2)
    assert watchdog.slow_turns["DescribeGroups"] == 1
    assert watchdog.longest_cpu_s > 0.15
    (record,) = [record for record in caplog.records if "DescribeGroups" in record.getMessage()]
    assert record.levelno == logging.WARNING
    assert "busy_for (test_loop_watchdog.py:" in record.getMessage()


def test_a_turn_that_only_waits_takes_no_cpu_time() -> None:
    watchdog = run(None, sleep_s=0.3)
    assert watchdog.longest_wall_s > 0.25
    assert watchdog.longest_cpu_s < 0.1
    assert watchdog.slow_turns.total() >= 1


@pytest.mark.parametrize(
    ("cpu_s", "stack", "is_of_the_machine"),
    [
        (0.0, "run (runners.py:118) < run_broker (start.py:67)", True),
        (0.0, "select (selectors.py:468) < _run_once (base_events.py:1898)", True),
        (0.0, "", True),
        (0.04, "run (runners.py:118) < run_broker (start.py:67)", False),
        (0.0, "flush (segment.py:31) < run (runners.py:118)", False),
    ],
)
def test_a_busy_machine_is_no_fault_of_the_loop(cpu_s: float, stack: str, is_of_the_machine: bool) -> None:
    assert SlowTurn(0.2, cpu_s, "other", stack).is_of_the_machine is is_of_the_machine


def test_a_turn_that_waits_in_our_code_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    run(None, sleep_s=0.6)
    assert logging.WARNING in {record.levelno for record in caplog.records if "watch (test_loop" in record.getMessage()}


def test_many_slow_turns_are_counted_but_not_all_logged(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = run(*[0.1] * 10)
    assert watchdog.slow_turns.total() >= 10  # a busy machine adds slow turns of other work
    assert watchdog.slow_turns["DescribeGroups"] >= 5  # and may keep the sampler from looking in time
    assert len(caplog.records) <= 5  # a busy machine makes some turns the longest so far; these are logged


def test_metrics() -> None:
    samples = {sample.name: sample for sample in run(0.2).samples()}
    assert samples["sskafka_data_loop_slow_turns_total"].labels == (("request", "DescribeGroups"),)
    assert samples["sskafka_data_loop_longest_turn_cpu_seconds"].value > 0.15
