"""Processor time, memory and age of this process."""

import os
import resource
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_START_TIME_FIELD = 19  # of /proc/self/stat, counted from behind the name of the program, which may have spaces


class ProcessUsage(NamedTuple):
    cores: int
    """Cores that the process may run on."""
    uptime_ms: int
    cpu_ms: int
    memory_bytes: int


def process_usage() -> ProcessUsage:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessUsage(
        cores=len(os.sched_getaffinity(0)),
        uptime_ms=_uptime_ms(),
        cpu_ms=int(1000 * (used.ru_utime + used.ru_stime)),
        memory_bytes=resident_bytes(),
    )


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * _PAGE_BYTES


def _uptime_ms() -> int:
    with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
        started_s = int(stat.read().rpartition(")")[2].split()[_START_TIME_FIELD]) / _TICKS_PER_S
    with open("/proc/uptime", encoding="ascii") as uptime:
        return int(1000 * (float(uptime.read().split()[0]) - started_s))
