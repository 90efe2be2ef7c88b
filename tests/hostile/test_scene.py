"""The meters themselves: an attack that should be noticed is noticed."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from polite_client import as_scheduled
from scene import Scene, percentile


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
    with pytest.raises(AssertionError, match="worst"):
        scene.check(rss_growth_bytes_max=1 << 30, wait_ms_max=100)


def test_one_long_wait_stands_for_the_requests_that_were_not_sent_meanwhile() -> None:
    assert len(as_scheduled(1.0)) == pytest.approx(100, abs=1)
    assert percentile([1.0] * 100 + as_scheduled(1.0), 0.99) > 900
