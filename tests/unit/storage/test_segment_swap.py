"""A compaction that is interrupted at any step leaves either the old log or the new one."""

import errno
from collections.abc import Callable
from copy import deepcopy
from random import Random

import pytest
from compacting import compact, job_for, pairs_of, put
from logs import NOW_MS, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.compaction.cleaning import clean_log
from sskafka.storage.compaction.cleaning_job import CleanedGroup
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig

CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=300)
CHANGES = {"write", "truncate", "sync", "rename", "remove", "sync_directory"}
Pairs = list[tuple[int, bytes | None, bytes | None]]


class Killed(BaseException):
    """As kill -9: nothing that runs gets to tidy up."""


def dirty_log() -> tuple[SimulatedDisk, int]:
    """Small segments, most records of which have later ones with the same key; and the first dirty offset."""
    disk = SimulatedDisk()
    log = reopen(disk, CONFIG)
    for n in range(20):
        put(log, (b"%d" % (n % 4), b"%d" % n), now_ms=NOW_MS)
    compact(log, NOW_MS)  # leaves segments so small that the next one makes one of several
    for n in range(20):
        put(log, (b"%d" % (n % 5), b"again %d" % n), now_ms=NOW_MS)
    log.close()
    return disk, log.first_dirty_offset


DIRTY, FIRST_DIRTY = dirty_log()


def opened(disk: SimulatedDisk) -> Log:
    return reopen(disk, CONFIG, cleaned_before=FIRST_DIRTY, recovery_point=40)


def work_off(log: Log, then: Callable[[], None] = lambda: None) -> None:
    """A compaction, `then` after each group."""
    truncations = log.truncations
    for answer in clean_log(log.log_directory.disk, job_for(log, NOW_MS), lambda size: None):
        if isinstance(answer, CleanedGroup):
            assert log.swap_in(answer.base_offsets, truncations)
            then()


def states_between_groups() -> list[Pairs]:
    """What the log holds before the compaction and after each group that changed something."""
    log = opened(deepcopy(DIRTY))
    states = [pairs_of(log)]

    def note() -> None:
        if pairs_of(log) != states[-1]:
            states.append(pairs_of(log))

    work_off(log, note)
    return states


class Steps:
    """Counts changes of the disk, and raises at one of them."""

    def __init__(self, disk: SimulatedDisk, until: int, error: BaseException | None = None) -> None:
        self.count = 0
        self._until = until
        self._error = error
        disk.fault = self.ask

    def ask(self, operation: str, path: str) -> None:
        if operation in CHANGES:
            if self._error is not None and self.count >= self._until:
                raise self._error
            self.count += 1


def count_steps() -> int:
    disk = deepcopy(DIRTY)
    log = opened(disk)
    steps = Steps(disk, 0)
    work_off(log)
    return steps.count


STATES = states_between_groups()
STEPS = count_steps()


def interrupted(step: int, error: BaseException | None = None) -> SimulatedDisk:
    """After a compaction that came no further than the given step."""
    disk = deepcopy(DIRTY)
    log = opened(disk)
    Steps(disk, step, error or Killed())
    with pytest.raises((Killed, LogDirectoryError, OSError)):
        work_off(log)
    disk.fault = None
    return disk


def test_a_compaction_has_steps_worth_interrupting() -> None:
    assert STEPS > 100
    assert len(STATES) > 3
    assert any(base_offsets[1:] for base_offsets in _groups()), "some group is made of several segments"


def _groups() -> list[tuple[int, ...]]:
    log = opened(deepcopy(DIRTY))
    answers = clean_log(log.log_directory.disk, job_for(log, NOW_MS), lambda size: None)
    return [answer.base_offsets for answer in answers if isinstance(answer, CleanedGroup)]


@pytest.mark.parametrize("power_cut", [False, True])
def test_kill_at_every_step_leaves_old_or_new(power_cut: bool) -> None:
    met = set()
    for step in range(STEPS):
        disk = interrupted(step)
        if power_cut:
            disk.crash(Random(step))
        log = opened(disk)
        found = pairs_of(log)
        assert found in STATES, f"killed at step {step}: a mix of old and new"
        met.add(STATES.index(found))
        assert not [path for path in disk.nodes if path.endswith((".cleaned", ".swap", ".deleted"))]
        put(log, (b"0", b"goes on"), now_ms=NOW_MS)
        compact(log, NOW_MS)
        final = {key: value for _, key, value in pairs_of(log)}
        assert final == {key: value for _, key, value in STATES[0]} | {b"0": b"goes on"}
    assert met == set(range(len(STATES)))


def test_a_second_crash_while_a_start_finishes_the_swap() -> None:
    """Killed where the swap is half done, then killed again at each step of the start."""
    half_done = [step for step in range(STEPS) if _has_swap_file(interrupted(step))]
    assert half_done
    for step in half_done[::12]:
        second = 0
        while _is_killed_at(disk := interrupted(step), second):
            assert pairs_of(opened(disk)) in STATES, (step, second)
            second += 1
        assert second > 1


def _has_swap_file(disk: SimulatedDisk) -> bool:
    return any(path.endswith(".log.swap") for path in disk.nodes)


def _is_killed_at(disk: SimulatedDisk, step: int) -> bool:
    """False when the start is through before."""
    Steps(disk, step, Killed())
    try:
        opened(disk)
    except Killed:
        return True
    finally:
        disk.fault = None
    return False


def test_a_full_disk_stops_the_cleaner_and_nothing_else() -> None:
    disk = deepcopy(DIRTY)
    log = opened(disk)
    disk.capacity_bytes = sum(len(node.data) for node in disk.nodes.values()) + 10
    with pytest.raises(OSError, match="No space left"):
        work_off(log)
    assert pairs_of(log) == STATES[0]
    disk.capacity_bytes = None
    put(log, (b"0", b"room again"), now_ms=NOW_MS)
    compact(log, NOW_MS)
    assert {key: value for _, key, value in pairs_of(log)}[b"0"] == b"room again"


def test_a_directory_that_became_read_only_loses_nothing() -> None:
    for step in range(STEPS):
        disk = interrupted(step, OSError(errno.EROFS, "Read-only file system"))
        assert pairs_of(opened(disk)) in STATES, step
