"""The meters themselves: an attack that should be noticed is noticed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from polite_client import as_scheduled
from scene import QUIET_LIMIT_MS_MIN, WAIT_MS_MAX, Measured, Scene, percentile, run_delay_ns
from waiting import wait_until


def test_a_broker_that_is_left_alone_passes(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        connection.create_topic("another")
    measured = scene.check(rss_growth_bytes_max=30 << 20)
    assert measured.requests > 0


def test_a_broker_that_does_not_answer_is_noticed(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    os.kill(scene.broker.pid, signal.SIGSTOP)
    time.sleep(0.6)
    os.kill(scene.broker.pid, signal.SIGCONT)
    measured = scene.measure()
    assert measured.p99_ms > WAIT_MS_MAX
    assert measured.p99_ms > measured._replace(starved_share=0.0, quiet_p99_ms=1.0).wait_ms_max


def measured(quiet_p99_ms: float, requests: int, starved_share: float) -> Measured:
    return Measured(quiet_p99_ms, 0.0, 0.0, requests, 0, 0, "", starved_share)


def test_the_limit_depends_on_the_quiet_wait_and_on_the_machine() -> None:
    assert measured(0.5, 1000, 0.0).wait_ms_max == QUIET_LIMIT_MS_MIN
    assert measured(15.0, 1000, 0.0).wait_ms_max == 150
    assert measured(90.0, 1000, 0.0).wait_ms_max == WAIT_MS_MAX
    assert measured(0.5, 20, 0.0).wait_ms_max == WAIT_MS_MAX
    assert measured(90.0, 1000, 0.1).wait_ms_max == 900
    assert measured(0.5, 1000, 0.5).wait_ms_max == 11 * WAIT_MS_MAX
    assert measured(90.0, 1000, 0.01).wait_ms_max == WAIT_MS_MAX


def test_a_machine_that_is_too_busy_is_noticed() -> None:
    """Two processes that compute on one CPU wait for each other."""
    cpu = min(os.sched_getaffinity(0))
    script = f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    try:
        wait_until(lambda: run_delay_ns(busy[0].pid) > 50_000_000, "one process waits for the other")
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_one_long_wait_stands_for_the_requests_that_were_not_sent_meanwhile() -> None:
    assert len(as_scheduled(1.0)) == pytest.approx(100, abs=1)
    assert percentile([1.0] * 100 + as_scheduled(1.0), 0.99) > 900
