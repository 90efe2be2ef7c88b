"""Waiting for what another process does: until a condition holds or a deadline passes, never a sleep for luck."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_INTERVAL_S = 0.01


def wait_until(condition: Callable[[], T], what: str, timeout_s: float = 15) -> T:
    """The first true value of `condition`; fails when it has none in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {timeout_s} s; the last answer was {value!r}")
        time.sleep(POLL_INTERVAL_S)
    return value
