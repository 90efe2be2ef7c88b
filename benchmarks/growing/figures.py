"""Figures of one broker process, and how they are printed."""

import os
import signal
import time
from collections.abc import Callable

from benchmarks.brokers import Broker
from benchmarks.processes import children_of, read_cpu, read_rss_bytes

Row = dict[str, str]
"""The figures of one size, by the name of their column."""

IDLE_S = 5.0
READY_SECONDS_MAX = 600.0


def seconds_of(work: Callable[[], None]) -> float:
    began_at = time.monotonic()
    work()
    return time.monotonic() - began_at


def descriptors(broker: Broker) -> int:
    """Return the number of open files of the broker's processes."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (broker.pid, *children_of(broker.pid)))


def idle_percent(broker: Broker) -> float:
    """Return the CPU usage of an idle broker in percent of a core."""
    before = read_cpu(broker.pid).seconds
    time.sleep(IDLE_S)
    return 100 * (read_cpu(broker.pid).seconds - before) / IDLE_S


def rss_mb(broker: Broker) -> float:
    return read_rss_bytes(broker.pid) / 1e6


def cpu_s(broker: Broker) -> float:
    return read_cpu(broker.pid).seconds


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)


def started(broker: Broker) -> str:
    """Return how long the start took, and its CPU time."""
    assert broker.startup is not None
    return f"{broker.startup.ready_seconds:.2f} ({cpu_s(broker):.2f})"
