"""The number of brokers on a machine: `auto` is one for each core that this process may use."""

import math
import os
from pathlib import Path

from sskafka.cli.usage import UsageError

AUTO = "auto"
BROKERS_MAX = 64
CPU_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")
"""CPU time of this container: `QUOTA PERIOD` in microseconds, or `max PERIOD`."""


def host_broker_count(text: str) -> int:
    """Return the number that `--brokers-per-host` asks for."""
    if text == AUTO:
        return min(usable_cores(), BROKERS_MAX)
    if not text.isdecimal() or not 1 <= int(text) <= BROKERS_MAX:
        raise UsageError(f"--brokers-per-host {text!r} is neither {AUTO} nor a number from 1 to {BROKERS_MAX}")
    return int(text)


def usable_cores(quota_file: Path = CPU_QUOTA_FILE) -> int:
    """Return the number of cores that the machine, the CPU affinity and the container allow."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _cores_of_container(quota_file) or cores))


def _cores_of_container(quota_file: Path) -> int | None:
    try:
        quota, period = quota_file.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else math.ceil(int(quota) / int(period))
