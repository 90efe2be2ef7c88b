"""A log moves to another directory while records are appended."""

import errno
from random import Random

import pytest
from compacting import COMPACTED_SETTINGS, compact, pairs_of, put
from logs import NOW_MS, append, read_records
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.log_move import LogMove
from sskafka.storage.meta_properties import MetaProperties

TP = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=300)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def start(disk: SimulatedDisk) -> LogManager:
    return LogManager.open(disk, ("/a", "/b"), node_id=1, format_as=lambda: MetaProperties("cluster", 1))


def opened(manager: LogManager, config: LogConfig = CONFIG) -> Log:
    return manager.open_log(TP, TOPIC_ID, config, NOW_MS, directory=manager.directories[0])


def copy_piece(move: LogMove, max_bytes: int = 200) -> bool:
    pieces = move.next_piece(max_bytes)
    for piece in pieces:
        move.append(piece.read(), NOW_MS)
    return bool(pieces)


def catch_up(move: LogMove) -> None:
    while copy_piece(move):
        pass


def home(manager: LogManager) -> str:
    directory = manager.log_dir_of(TP)
    assert directory is not None
    return directory.path


def test_everything_is_in_the_new_directory(disk: SimulatedDisk) -> None:
    manager = start(disk)
    log = opened(manager)
    for n in range(20):
        append(log, b"%d" % n, epoch=n // 7, producer_id=7, producer_epoch=0, base_sequence=n)
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    copy_piece(move)
    append(log, b"20", epoch=3, producer_id=7, producer_epoch=0, base_sequence=20)
    log.increment_log_start_offset(5)
    catch_up(move)
    append(log, b"21", epoch=3, producer_id=7, producer_epoch=0, base_sequence=21)
    assert move.lag == 1
    moved = manager.finish_move(move, NOW_MS)
    assert home(manager) == "/b"
    assert manager.get(TP) is moved
    assert read_records(moved) == [(n, b"%d" % n) for n in range(5, 22)]
    assert moved.epochs.entries == log.epochs.entries
    assert (moved.log_start_offset, moved.recovery_point) == (5, 22)
    assert append(moved, b"22", epoch=3, producer_id=7, producer_epoch=0, base_sequence=22) == 22
    manager.remove_deleted_files(NOW_MS + 60_000)
    assert not [path for path in disk.nodes if path.startswith("/a/orders")]
    manager.release()
    again = opened(start(disk))
    assert again.directory == "/b/orders-0"
    assert again.log_end_offset == 23


def test_a_log_cut_meanwhile_is_copied_anew(disk: SimulatedDisk) -> None:
    manager = start(disk)
    log = opened(manager)
    for n in range(10):
        append(log, b"%d" % n)
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    catch_up(move)
    pieces = log.read(0, 1 << 20, 10)
    log.truncate_to(4)
    append(log, b"other", epoch=1)
    for piece in pieces[:1]:
        move.append(piece.read(), NOW_MS)
    catch_up(move)
    moved = manager.finish_move(move, NOW_MS)
    assert read_records(moved) == [*[(n, b"%d" % n) for n in range(4)], (4, b"other")]


def test_a_compacted_log_keeps_its_gaps(disk: SimulatedDisk) -> None:
    manager = start(disk)
    config = LogConfig(segment_bytes=300, **COMPACTED_SETTINGS)
    log = opened(manager, config)
    for n in range(20):
        put(log, (b"%d" % (n % 3), b"%d" % n), now_ms=NOW_MS)
    compact(log, NOW_MS)
    manager.checkpoint_cleaned_offsets()
    before = pairs_of(log)
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    catch_up(move)
    moved = manager.finish_move(move, NOW_MS)
    assert pairs_of(moved) == before
    assert moved.first_dirty_offset == log.first_dirty_offset


@pytest.mark.parametrize("steps", [0, 5, 10, 1000])
def test_gaps_survive_a_crash_after_a_move_although_the_topic_is_no_longer_compacted(steps: int) -> None:
    disk = SimulatedDisk()
    manager = start(disk)
    log = opened(manager, LogConfig(segment_bytes=300, **COMPACTED_SETTINGS))
    for n in range(20):
        put(log, (b"%d" % (n % 3), b"%d" % n), now_ms=NOW_MS)
    compact(log, NOW_MS)
    manager.checkpoint_cleaned_offsets()
    log.configure(CONFIG)
    before = pairs_of(log)
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    catch_up(move)
    _finished(disk, manager, move, steps)
    manager.release()
    assert pairs_of(opened(start(disk))) == before


def test_a_move_that_ends_early_leaves_no_trace(disk: SimulatedDisk) -> None:
    manager = start(disk)
    log = opened(manager)
    append(log, b"a")
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    catch_up(move)
    manager.abandon_move(move)
    manager.remove_deleted_files(NOW_MS)
    assert not [path for path in disk.nodes if "-future" in path]
    assert home(manager) == "/a"
    assert append(log, b"b") == 1


def test_a_crash_throws_the_copy_away_and_remembers_where_it_should_have_gone(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(opened(manager), b"a")
    catch_up(manager.begin_move(TP, manager.directories[1], NOW_MS))
    manager.release()
    again = start(disk)
    assert list(again.directories[1].interrupted.values()) == [TP]
    assert read_records(opened(again)) == [(0, b"a")]
    assert home(again) == "/a"
    again.remove_deleted_files(NOW_MS)
    assert not [path for path in disk.nodes if "-future" in path]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("power_cut", [False, True])
def test_kill_at_every_step_of_the_swap_loses_nothing(power_cut: bool) -> None:
    step, has_synced = 0, False
    homes = set()
    while not has_synced:
        disk = SimulatedDisk()
        manager = start(disk)
        log = opened(manager)
        for n in range(10):
            append(log, b"%d" % n)
        log.flush()
        move = manager.begin_move(TP, manager.directories[1], NOW_MS)
        catch_up(move)
        has_synced = _finished(disk, manager, move, step)
        if power_cut:
            disk.crash(Random(step))
        manager.release()
        again = start(disk)
        assert read_records(opened(again)) == [(n, b"%d" % n) for n in range(10)], step
        homes.add(home(again))
        again.release()
        assert read_records(opened(start(disk))) == [(n, b"%d" % n) for n in range(10)], step
        step += 1
    assert homes == {"/a", "/b"}


def _finished(disk: SimulatedDisk, manager: LogManager, move: LogMove, steps: int) -> bool:
    left = steps

    def fault(operation: str, path: str) -> None:
        nonlocal left
        if operation not in {"open", "read", "entries"}:
            left -= 1
            if left < 0:
                raise Killed

    disk.fault = fault
    try:
        manager.finish_move(move, NOW_MS)
    except Killed:
        return False
    finally:
        disk.fault = None
    return True


def test_of_two_copies_the_newer_one_stays(disk: SimulatedDisk) -> None:
    """The new directory failed just after the rename, and the original went on."""
    manager = start(disk)
    log = opened(manager)
    append(log, b"a")
    move = manager.begin_move(TP, manager.directories[1], NOW_MS)
    catch_up(move)

    def fault(operation: str, path: str) -> None:
        if operation == "write" and path.startswith("/b/orders-0/partition"):
            raise OSError(errno.EIO, "Input/output error")

    disk.fault = fault
    with pytest.raises(LogDirectoryError):
        manager.finish_move(move, NOW_MS)
    manager.abandon_move(move)
    assert home(manager) == "/a"
    append(log, b"b")
    log.flush()
    disk.fault = None
    manager.release()
    again = start(disk)
    assert read_records(opened(again)) == [(0, b"a"), (1, b"b")]
    assert home(again) == "/a"
    assert [path for path in disk.directories if path.startswith("/b/orders-0.") and path.endswith("-stray")]


def test_a_replica_that_is_not_here_yet_is_made_where_it_was_asked_for(disk: SimulatedDisk) -> None:
    manager = start(disk)
    manager.preferred[TP] = manager.directories[1]
    log = manager.open_log(TP, TOPIC_ID, CONFIG, NOW_MS)
    assert log.directory == "/b/orders-0"
