"""The log directories of a broker."""

import errno
import gc
import json
import logging
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from logs import NOW_MS, append, read_records
from simulated_disk import SimulatedDisk

from sskafka.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, TopicPartition
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage import broker_directory, flusher
from sskafka.storage.disk import Disk, OsDisk
from sskafka.storage.errors import ClosedLogError, LogDirectoryError, StorageError, TemporaryStorageError
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))
TP = TopicPartition("orders", 0)


def start(
    disk: Disk, *paths: str, node_id: int = 1, partition_base: int = 0, metadata_path: str | None = None
) -> LogManager:
    return LogManager.open(
        disk,
        paths or ("/a",),
        node_id=node_id,
        partition_base=partition_base,
        metadata_path=metadata_path,
        format_as=lambda: MetaProperties("cluster", node_id, partition_base=partition_base),
    )


def open_log(manager: LogManager, partition: int = 0, topic: str = "orders", topic_id: bytes = TOPIC_ID) -> Log:
    return manager.open_log(TopicPartition(topic, partition), topic_id, LogConfig(), NOW_MS)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def text(disk: SimulatedDisk, path: str) -> str:
    return disk.nodes[path].data.decode()


def test_a_partition_survives_a_clean_restart(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(open_log(manager), b"a", epoch=3)
    manager.close(broker_epoch=17)
    assert json.loads(text(disk, "/a/.kafka_cleanshutdown")) == {"version": 0, "brokerEpoch": 17}
    assert text(disk, "/a/recovery-point-offset-checkpoint") == "0\n1\norders 0 1\n"
    assert text(disk, "/a/orders-0/partition.metadata") == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    again = start(disk)
    assert again.previous_broker_epoch == 17
    assert not disk.exists("/a/.kafka_cleanshutdown")
    assert again.stray_directories() == ["/a/orders-0"]
    assert read_records(open_log(again)) == [(0, b"a")]
    assert again.stray_directories() == []


def test_a_kill_leaves_no_clean_mark(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(open_log(manager), b"a")
    manager.release()
    again = start(disk)
    assert again.previous_broker_epoch == -1
    assert not again.directories[0].was_clean_stop
    assert read_records(open_log(again)) == [(0, b"a")]


def test_a_new_partition_goes_where_the_fewest_are(disk: SimulatedDisk) -> None:
    manager = start(disk, "/a", "/b", "/c")
    for partition in range(7):
        open_log(manager, partition)
    assert sorted(len(directory.logs) for directory in manager.directories) == [2, 2, 3]
    manager.close()
    again = start(disk, "/a", "/b", "/c")
    homes = {log.directory for log in (open_log(again, partition) for partition in range(7))}
    assert len(homes) == 7
    assert again.stray_directories() == [], "each was found where it lay"


def test_partitions_that_were_not_opened_count_for_placement(disk: SimulatedDisk) -> None:
    manager = start(disk, "/a")
    open_log(manager, 0)
    manager.close()
    assert open_log(start(disk, "/a", "/b"), 1).directory == "/b/orders-1"


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    first = start(OsDisk(), str(tmp_path / "a"))
    with pytest.raises(LogDirectoryError, match="in use by another broker"):
        start(OsDisk(), str(tmp_path / "b"), str(tmp_path / "a"))
    start(OsDisk(), str(tmp_path / "b")).close()  # its lock was given back
    first.close()
    start(OsDisk(), str(tmp_path / "a")).close()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogDirectoryError, match=r"cannot be used: (Not a directory|File exists)"):
        start(OsDisk(), str(tmp_path / "file"))


def test_a_directory_that_was_not_formatted_is_refused(disk: SimulatedDisk) -> None:
    with pytest.raises(LogDirectoryError, match="format it"):
        LogManager.open(disk, ["/a"], node_id=1)
    start(disk, "/a")


def test_a_directory_of_another_node_is_refused(disk: SimulatedDisk) -> None:
    start(disk).close()
    with pytest.raises(LogDirectoryError, match="belongs to node 1, but this is node 2"):
        start(disk, node_id=2)


def test_directories_of_two_clusters_are_refused(disk: SimulatedDisk) -> None:
    start(disk).close()
    disk.make_directory("/b")
    write_meta_properties(disk, "/b", MetaProperties("other", 1))
    with pytest.raises(LogDirectoryError, match="different clusters: cluster, other"):
        start(disk, "/a", "/b")


def test_the_partition_base_is_kept_and_cannot_change(disk: SimulatedDisk) -> None:
    manager = start(disk, partition_base=1)
    assert open_log(manager).directory == "/a/orders-1"
    metadata = manager.open_log(TopicPartition(METADATA_TOPIC, 0), METADATA_TOPIC_ID, LogConfig(), NOW_MS)
    assert metadata.directory == "/a/__cluster_metadata-0"
    manager.close()
    with pytest.raises(LogDirectoryError, match="cannot change to 0"):
        start(disk, partition_base=0)
    assert open_log(start(disk, partition_base=1)).directory == "/a/orders-1"


def test_the_metadata_log_may_have_a_directory_of_its_own(disk: SimulatedDisk) -> None:
    manager = start(disk, "/a", metadata_path="/m")
    metadata = manager.open_log(
        TopicPartition(METADATA_TOPIC, 0), METADATA_TOPIC_ID, LogConfig(), NOW_MS, directory=manager.metadata_directory
    )
    assert metadata.directory == "/m/__cluster_metadata-0"
    assert [open_log(manager, n).directory for n in range(2)] == ["/a/orders-0", "/a/orders-1"]
    assert read_meta_properties(disk, "/m") is not None
    manager.close()
    assert disk.exists("/m/.kafka_cleanshutdown")


def test_a_deleted_partition_leaves_its_name_at_once_and_its_files_later(disk: SimulatedDisk) -> None:
    manager = start(disk)
    log = open_log(manager)
    append(log, b"a")
    slices = log.read(0, 100, 1)
    manager.delete_log(TP, NOW_MS)
    assert manager.get(TP) is None
    names = [path for path in disk.directories if path.startswith("/a/orders-0.")]
    assert len(names) == 1
    assert names[0].endswith("-delete")
    assert len(slices[0].read()) == slices[0].length
    assert open_log(manager, topic_id=bytes(15) + b"x").log_end_offset == 0, "a new topic of that name begins anew"
    manager.remove_deleted_files(NOW_MS + 59_999)
    assert disk.exists(names[0])
    manager.remove_deleted_files(NOW_MS + 60_000)
    assert not disk.exists(names[0])


def test_what_a_crash_left_of_a_deletion_is_removed_later(disk: SimulatedDisk) -> None:
    manager = start(disk)
    open_log(manager)
    manager.delete_log(TP, NOW_MS)
    manager.release()
    again = start(disk)
    assert again.stray_directories() == []
    again.remove_deleted_files(NOW_MS)
    assert [path for path in disk.directories if path.startswith("/a/")] == []


def test_a_directory_of_an_older_topic_is_set_aside(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(open_log(manager), b"old")
    manager.checkpoint_high_watermarks({TP: 1})
    manager.close()
    again = start(disk)
    log = open_log(again, topic_id=bytes(16 * [9]))
    assert log.log_end_offset == 0
    strays = [path for path in disk.directories if path.endswith("-stray")]
    assert len(strays) == 1
    assert again.high_watermark(TP) == 0


def test_a_directory_without_an_id_is_taken_as_it_is(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(open_log(manager, topic_id=ZERO_UUID), b"a")
    assert not disk.exists("/a/orders-0/partition.metadata")
    manager.close()
    assert read_records(open_log(start(disk))) == [(0, b"a")]
    assert disk.exists("/a/orders-0/partition.metadata")


def test_log_starts_and_high_watermarks_are_checkpointed(disk: SimulatedDisk) -> None:
    manager = start(disk)
    log = open_log(manager)
    append(log, b"a", b"b", b"c")
    open_log(manager, 1)
    log.increment_log_start_offset(2)
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_high_watermarks({TP: 3, TopicPartition("elsewhere", 0): 9})
    assert text(disk, "/a/log-start-offset-checkpoint") == "0\n1\norders 0 2\n"
    assert text(disk, "/a/replication-offset-checkpoint") == "0\n1\norders 0 3\n"
    manager.release()
    again = start(disk)
    assert again.high_watermark(TP) == 3
    assert open_log(again).log_start_offset == 2


def test_a_checkpoint_keeps_what_it_says_of_partitions_not_opened_yet(disk: SimulatedDisk) -> None:
    manager = start(disk)
    for partition in range(2):
        append(open_log(manager, partition), b"a")
    manager.checkpoint_high_watermarks({TopicPartition("orders", n): 1 for n in range(2)})
    manager.close()
    again = start(disk)
    open_log(again, 0)
    again.checkpoint_high_watermarks({TP: 1})
    again.checkpoint_recovery_points()
    assert text(disk, "/a/recovery-point-offset-checkpoint").count("orders") == 2
    assert text(disk, "/a/replication-offset-checkpoint").count("orders") == 2


def test_unchanged_checkpoints_are_not_written(disk: SimulatedDisk) -> None:
    manager = start(disk)
    append(open_log(manager), b"a")
    manager.checkpoint_recovery_points()
    disk.syncs.clear()
    manager.checkpoint_recovery_points()
    assert disk.syncs == []


@pytest.mark.parametrize("size", range(20))
def test_a_torn_checkpoint_costs_only_time(disk: SimulatedDisk, size: int) -> None:
    manager = start(disk)
    append(open_log(manager), b"a")
    manager.close()
    disk.open("/a/recovery-point-offset-checkpoint").truncate(size)
    disk.remove("/a/.kafka_cleanshutdown")
    assert read_records(open_log(start(disk))) == [(0, b"a")]


def test_flush_and_roll_by_time(disk: SimulatedDisk) -> None:
    manager = start(disk)
    config = LogConfig(flush_ms=1000, segment_ms=5000)
    log = manager.open_log(TP, TOPIC_ID, config, NOW_MS)
    append(log, b"a")
    list(manager.flush_due_logs(NOW_MS + 999))
    assert log.recovery_point == 0
    list(manager.flush_due_logs(NOW_MS + 1000))
    assert log.recovery_point == 1
    list(manager.roll_due_segments(NOW_MS + 5001))
    assert len(log.segments) == 2


def test_an_offline_directory_gets_no_new_partitions(disk: SimulatedDisk) -> None:
    manager = start(disk, "/a", "/b")
    manager.directories[0].health.fail(OSError(5, "broken"))
    assert {open_log(manager, n).directory.split("/")[1] for n in range(4)} == {"b"}
    manager.directories[1].health.fail(OSError(5, "broken"))
    with pytest.raises(LogDirectoryError, match="every log directory is offline"):
        open_log(manager, 9)
    with pytest.raises(LogDirectoryError):
        manager.close()
    assert not disk.exists("/a/.kafka_cleanshutdown")
    assert not disk.exists("/b/.kafka_cleanshutdown")


def test_a_topic_made_again_inherits_no_offsets_of_the_deleted_one(disk: SimulatedDisk) -> None:
    manager = start(disk)
    old = open_log(manager)
    for _ in range(5):
        append(old, b"old")
    old.flush()
    old.increment_log_start_offset(4)
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks({TP: 5})
    manager.delete_log(TP, NOW_MS)
    assert append(open_log(manager, topic_id=OTHER_ID), b"new") == 0
    assert manager.high_watermark(TP) == 0
    manager.release()
    again = start(disk)
    assert read_records(open_log(again, topic_id=OTHER_ID)) == [(0, b"new")]
    assert again.high_watermark(TP) == 0


def test_a_log_that_is_deleted_between_two_turns_is_not_rolled(disk: SimulatedDisk) -> None:
    """The roll once found no file, and the broker stopped for a broken disk."""
    manager = start(disk)
    deleted = [open_log(manager, partition) for partition in range(2)]
    for log in deleted:
        append(log, b"old")
    later_ms = NOW_MS + LogConfig().segment_ms + 1
    turns = manager.roll_due_segments(later_ms)
    next(turns)
    manager.delete_log(TopicPartition("orders", 1), later_ms)
    list(turns)
    assert deleted[0].log_directory.failure is None
    assert [len(log.segments) for log in deleted] == [2, 1]


CHANGES: dict[str, Callable[[Log], object]] = {
    "append": lambda log: append(log, b"late"),
    "follow": lambda log: log.append_as_follower(batch_at(2)),
    "roll": lambda log: log.roll(NOW_MS),
    "truncate": lambda log: log.truncate_to(1),
    "start over": lambda log: log.truncate_fully_and_start_at(9),
    "delete records": lambda log: log.increment_log_start_offset(1),
    "retire": lambda log: log.retire_segments(NOW_MS),
    "epochs": lambda log: log.replace_epochs([(0, 0)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_deleted_log_does_not_touch_the_files_of_the_next_topic_of_that_name(
    disk: SimulatedDisk, change: Callable[[Log], object]
) -> None:
    manager = start(disk)
    old = open_log(manager)
    for _ in range(2):
        append(old, b"old")
    manager.delete_log(TP, NOW_MS)
    new = open_log(manager, topic_id=OTHER_ID)
    append(new, b"new")
    before = {path: bytes(node.data) for path, node in disk.nodes.items()}
    with pytest.raises(ClosedLogError, match="the log of orders-0 is closed"):
        change(old)
    assert {path: bytes(node.data) for path, node in disk.nodes.items()} == before
    assert new.log_directory.failure is None
    assert read_records(new) == [(0, b"new")]


def batch_at(offset: int) -> bytes:
    return bytes(build_batch([NewRecord(None, b"late", (), 0)], base_offset=offset, leader_epoch=0))


def test_offsets_of_deleted_logs_leave_the_checkpoints_in_one_write(disk: SimulatedDisk) -> None:
    manager = start(disk)
    for partition in range(3):
        append(open_log(manager, partition), b"old")
        manager.get(TopicPartition("orders", partition)).flush()  # type: ignore[union-attr]
    manager.checkpoint_recovery_points()
    for partition in range(2):
        manager.delete_log(TopicPartition("orders", partition), NOW_MS)
    disk.syncs.clear()
    for partition in range(2):
        open_log(manager, partition, topic_id=OTHER_ID)
    assert sum("recovery-point" in path for path in disk.syncs) == 1
    assert text(disk, "/a/recovery-point-offset-checkpoint") == "0\n1\norders 2 1\n"


def test_recovery_is_summed_up(disk: SimulatedDisk) -> None:
    manager = start(disk)
    assert str(manager.recovery) == "no logs yet"
    for partition in range(3):
        append(open_log(manager, partition), b"a")
    assert str(manager.recovery) == "no logs yet", "new logs need no recovery"
    manager.close()
    again = start(disk)
    for partition in range(3):
        open_log(again, partition)
    assert str(again.recovery) == "3 logs opened, none needed recovery"
    append(open_log(again, 0), b"b")
    again.release()
    path = "/a/orders-0/00000000000000000000.log"
    disk.nodes[path].data[-1] ^= 1
    killed = start(disk)
    for partition in range(3):
        open_log(killed, partition)
    assert str(killed.recovery) == "3 logs opened, 3 segments of 3 verified, 1 truncated at an invalid batch"


def test_a_full_directory_keeps_no_other_from_its_checkpoints(disk: SimulatedDisk) -> None:
    manager = start(disk, "/a", "/b")
    for partition in range(2):
        log = open_log(manager, partition)
        append(log, b"x")
        log.flush()

    def full(operation: str, path: str) -> None:
        if operation == "write" and path.startswith("/a/"):
            raise OSError(errno.ENOSPC, "No space left on device")

    disk.fault = full
    with pytest.raises(StorageError, match="no room in log directory /a"):
        manager.checkpoint_recovery_points()
    assert text(disk, "/b/recovery-point-offset-checkpoint").startswith("0\n1\norders ")
    assert all(directory.is_online for directory in manager.directories)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_cannot_be_opened_for_lack_of_descriptors_is_opened_later(
    disk: SimulatedDisk, clean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shortage begins with each open in turn: of the topic id, of the segments and of what is derived from them."""
    monkeypatch.setattr(flusher, "sleep", lambda _: None)
    manager = start(disk, "/a", "/b")
    for partition in range(2):
        log = open_log(manager, partition)
        append(log, b"x")
        append(log, b"y")
    open_log(manager, 1).advance_high_watermark(2)
    open_log(manager, 1).increment_log_start_offset(1)
    manager.checkpoint_log_start_offsets()
    if clean:
        manager.close()
    else:
        manager.release()
    attempts = count()
    opens_left = 0

    def lacking(operation: str, path: str) -> None:
        nonlocal opens_left
        if operation == "open" and "/orders-" in path:
            opens_left -= 1
            if opens_left < 0:
                raise OSError(errno.EMFILE, "Too many open files", path)

    for attempt in attempts:
        disk.fault = None
        again = start(disk, "/a", "/b")
        opens_left, disk.fault = attempt, lacking
        try:
            open_log(again, 1)
        except TemporaryStorageError:
            disk.fault = None
        has_failed = disk.fault is None
        disk.fault = None
        log = open_log(again, 1)
        assert (os.path.dirname(log.directory), log.log_start_offset) == ("/b", 1), f"after {attempt} opens"
        assert read_records(log)[-1] == (1, b"y")
        again.release()
        if not has_failed:
            break
    assert next(attempts) > 3


def test_a_new_log_is_made_later_where_it_was_asked_for(disk: SimulatedDisk) -> None:
    def lacking(operation: str, path: str) -> None:
        if operation == "open" and "/orders-" in path:
            raise OSError(errno.EMFILE, "Too many open files", path)

    manager = start(disk, "/a", "/b")
    manager.preferred[TP] = manager.directories[1]
    disk.fault = lacking
    with pytest.raises(TemporaryStorageError):
        open_log(manager)
    disk.fault = None
    assert open_log(manager).directory == "/b/orders-0"


# ---- a directory that is not there when the broker starts


def broken(path: str) -> Callable[[str, str], None]:
    def fault(operation: str, asked: str) -> None:
        if asked == path or asked.startswith(path + "/"):
            raise OSError(errno.EIO, "Input/output error", asked)

    return fault


@pytest.mark.parametrize("failing", ["make_directory", "lock", "open", "entries"])
def test_a_start_without_one_of_the_directories(disk: SimulatedDisk, failing: str) -> None:
    manager = start(disk, "/a", "/b")
    for partition in range(4):
        append(open_log(manager, partition), b"%d" % partition)
    lost = set(manager.directories[1].logs)
    manager.close(broker_epoch=5)

    def fault(operation: str, path: str) -> None:
        if operation == failing:
            broken("/b")(operation, path)

    disk.fault = fault
    again = start(disk, "/a", "/b")
    assert [directory.is_online for directory in again.directories] == [True, False]
    assert again.directories[1].directory_id is None
    assert again.previous_broker_epoch == -1, "what is in there is as after an unclean stop"
    for partition in range(4):
        wanted = TopicPartition("orders", partition)
        if wanted in lost:
            with pytest.raises(LogDirectoryError, match=r"orders-. is in none of the other directories: .*/b"):
                again.open_log(wanted, TOPIC_ID, LogConfig(), NOW_MS, must_exist=True)
            with pytest.raises(LogDirectoryError):
                again.open_log(wanted, TOPIC_ID, LogConfig(), NOW_MS)  # asked again once the broker serves
        else:
            log = again.open_log(wanted, TOPIC_ID, LogConfig(), NOW_MS, must_exist=True)
            assert read_records(log) == [(0, b"%d" % partition)]
    append(open_log(again, 9), b"new")
    again.checkpoint_recovery_points()
    again.close()
    disk.fault = None
    repaired = start(disk, "/a", "/b")
    assert all(read_records(open_log(repaired, partition)) == [(0, b"%d" % partition)] for partition in range(4))


def test_no_start_without_the_metadata_directory_or_with_none_left(disk: SimulatedDisk) -> None:
    start(disk, "/a", "/b", metadata_path="/m").close()
    disk.fault = broken("/m")
    with pytest.raises(LogDirectoryError, match="log is unavailable: log directory /m cannot be used: Input"):
        start(disk, "/a", "/b", metadata_path="/m")

    def both(operation: str, path: str) -> None:
        broken("/a")(operation, path)
        broken("/b")(operation, path)

    disk.fault = both
    with pytest.raises(LogDirectoryError, match=r"no log directory is usable: .*/a cannot be used.*/b cannot be used"):
        start(disk, "/a", "/b", metadata_path="/m")
    disk.fault = None
    start(disk, "/a", "/b", metadata_path="/m").close()  # nothing was left locked


def test_checkpoints_in_a_thread_allow_new_logs(disk: SimulatedDisk) -> None:
    """Python switches threads in the middle of list(dict.items()) if a garbage collection happens there."""
    manager = start(disk)
    log = open_log(manager)
    (directory,) = manager.directories
    directory.logs |= {TopicPartition("orders", number): log for number in range(10_000)}
    added = count(10_000)

    def open_another(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            directory.logs[TopicPartition("orders", next(added))] = log

    thresholds = gc.get_threshold()
    gc.callbacks.append(open_another)
    gc.set_threshold(100)
    try:
        manager.checkpoint_recovery_points()
        manager.checkpoint_log_start_offsets()
        manager.checkpoint_cleaned_offsets()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(open_another)
    assert disk.exists("/a/recovery-point-offset-checkpoint")


def test_a_start_with_many_logs_tells_how_far_it_is(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_directory, "MANY_LOGS", 20)
    manager = start(disk)
    for partition in range(25):
        open_log(manager, partition)
    manager.close(broker_epoch=1)
    caplog.set_level(logging.INFO)
    again = start(disk)
    for partition in range(25):
        open_log(again, partition)
    lines = [record.getMessage() for record in caplog.records if "opened" in record.getMessage()]
    assert lines == [f"opened {number} of 25 logs in /a" for number in range(2, 25, 2)]
