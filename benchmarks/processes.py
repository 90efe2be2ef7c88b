"""CPU time and memory of a process and its descendants, from /proc.

CPU time is user plus system time, in clock ticks of 10 ms, of all live processes of the tree and of their children that
have ended; a run must take at least a second for this to be accurate enough.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Indexes into a stat line, counted from the field after the process name in brackets.
PPID, UTIME, STIME, CUTIME, CSTIME = 1, 11, 12, 13, 14


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU seconds so far."""

    seconds: float
    thread_seconds: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CpuSpent:
    """CPU seconds between two readings."""

    seconds: float
    busiest_thread_seconds: float


def read_cpu(pid: int) -> CpuReading:
    tree = list(_process_tree(pid))
    ticks = sum(_ticks(_stat_fields(Path(f"/proc/{member}/stat")), UTIME, STIME, CUTIME, CSTIME) for member in tree)
    threads = {thread: ticks / TICKS_PER_SECOND for member in tree for thread, ticks in _thread_ticks(member)}
    return CpuReading(ticks / TICKS_PER_SECOND, threads)


def cpu_between(before: CpuReading, after: CpuReading) -> CpuSpent:
    threads = (seconds - before.thread_seconds.get(thread, 0.0) for thread, seconds in after.thread_seconds.items())
    return CpuSpent(after.seconds - before.seconds, max(threads, default=0.0))


def read_machine_cpu_seconds() -> float:
    """Return the CPU time of all processes of this machine so far; guest time is already included in user time."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split(None, 8)[1:8])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def read_rss_bytes(pid: int) -> int:
    return sum(_resident_pages(member) for member in _process_tree(pid)) * PAGE_BYTES


def children_of(pid: int) -> list[int]:
    return _children_by_parent().get(pid, [])


def _children_by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat_fields(entry / "stat")):
            children.setdefault(int(fields[PPID]), []).append(int(entry.name))
    return children


def _process_tree(root: int) -> Iterator[int]:
    children = _children_by_parent()
    pending = [root]
    while pending:
        member = pending.pop()
        yield member
        pending.extend(children.get(member, ()))


def _thread_ticks(pid: int) -> Iterator[tuple[int, int]]:
    try:
        entries = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return
    for entry in entries:
        yield int(entry.name), _ticks(_stat_fields(entry / "stat"), UTIME, STIME)


def _stat_fields(path: Path) -> list[str]:
    """Return the fields after the process name; an empty list if the process has ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _ticks(fields: list[str], *positions: int) -> int:
    return sum(int(fields[position]) for position in positions) if fields else 0


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
