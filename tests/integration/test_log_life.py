"""Retention and compaction in a running broker, through stops, kill -9, full disks and cleaners that die."""

import os
import resource
import signal
import time
from pathlib import Path

import pytest
from broker_process import StartBroker
from waiting import wait_until
from whole_partitions import read_from, state_of
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import Record
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

QUICK = {
    "log.retention.check.interval.ms": 50,
    "log.cleaner.backoff.ms": 50,
    "log.segment.delete.delay.ms": 0,
    "log.segment.bytes": 20_000,
}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01}
KEYS = 40
EARLIEST = -2


def produce(
    connection: Connection, topic: str, count: int, first: int = 0, value_bytes: int = 50
) -> dict[bytes, bytes]:
    """Records in batches of 20 over a few keys; the last value of each key."""
    last: dict[bytes, bytes] = {}
    for start in range(first, first + count, 20):
        records = [_record(number, value_bytes) for number in range(start, start + 20)]
        assert connection.produce(topic, build_batch(records)).error_code == 0
        last |= {record.key: record.value for record in records if record.key is not None and record.value is not None}
    return last


def _record(number: int, value_bytes: int) -> NewRecord:
    value = b"%d" % number
    return NewRecord(b"key-%d" % (number % KEYS), value.ljust(value_bytes, b"."), (), int(time.time() * 1000))


def read(connection: Connection, topic: str) -> list[Record]:
    return read_from(connection, topic, earliest(connection, topic))


def earliest(connection: Connection, topic: str) -> int:
    topics = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=EARLIEST)])]
    found = connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), version=7).topics[0].partitions[0]
    assert found.error_code == 0
    return int(found.offset)


def cleaners_of(pid: int) -> list[int]:
    """The broker's child processes."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_compaction(connection: Connection, topic: str, records_max: int) -> list[Record]:
    def compacted() -> list[Record] | None:
        records = read(connection, topic)
        return records if len(records) <= records_max else None

    return wait_until(compacted, f"{topic} is compacted to {records_max} records")


# ---- retention


def test_retention_by_size_and_by_time_survives_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker(QUICK)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("sized", retention_bytes=50_000)
        connection.create_topic("aged", retention_ms=300, segment_ms=200)
        produce(connection, "sized", 4000)
        produce(connection, "aged", 500)
        wait_until(lambda: earliest(connection, "sized") > 2000, "old segments go by size")
        wait_until(lambda: earliest(connection, "aged") == 500, "an idle partition is rolled and retired by time")
        starts = earliest(connection, "sized"), earliest(connection, "aged")
        kept = read(connection, "sized")
        directory = broker.data_directory / "sized-0"
        wait_until(lambda: not list(directory.glob("*.deleted")), "the files are removed")
        assert sum(path.stat().st_size for path in directory.glob("*.log")) < 75_000
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        assert (earliest(connection, "sized"), earliest(connection, "aged")) == starts
        assert read(connection, "sized") == kept
        assert connection.produce("aged", build_batch([NewRecord(b"k", b"v")])).base_offset == 500


# ---- compaction


def test_a_topic_is_compacted_while_it_is_written_and_stays_so(start_broker: StartBroker) -> None:
    broker = start_broker(QUICK)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("table", **COMPACTED)
        last = produce(connection, "table", 6000)
        records = wait_for_compaction(connection, "table", 600)
        assert state_of(records) == last
        last |= produce(connection, "table", 400, first=6000)
        assert state_of(read(connection, "table")) == last
        refused = connection.produce("table", build_batch([NewRecord(None, b"no key")]))
        assert refused.error_code == ErrorCode.INVALID_RECORD
        checkpoint = broker.data_directory / "cleaner-offset-checkpoint"
        wait_until(lambda: checkpoint.exists() and "table 0 " in checkpoint.read_text(), "it is written down")
        version, count, line = checkpoint.read_text().splitlines()
        assert (version, count) == ("0", "1")
        assert 5000 < int(line.split()[2]) <= 6400
        wait_until(lambda: not cleaners_of(broker.pid), "a cleaner without work ends")
    for unclean in (False, True):
        broker.restart(unclean=unclean)
        with Connection(broker.bootstrap) as connection:
            assert state_of(read(connection, "table")) == last
    assert "Traceback" not in broker.log


def test_last_values_keep_their_offsets_and_tombstones_go_in_time(start_broker: StartBroker) -> None:
    """As a client sees it: produce keyed records and tombstones, wait for the cleaner, read."""
    broker = start_broker(QUICK)
    written: dict[bytes, tuple[int, bytes | None]] = {}  # by key: where its last record is, and its value

    def write(connection: Connection, key: bytes, value: bytes | None) -> None:
        batch = build_batch([NewRecord(key, value, (), int(time.time() * 1000))])
        answer = connection.produce("accounts", batch)
        assert answer.error_code == 0
        written[key] = (answer.base_offset, value)

    with Connection(broker.bootstrap) as connection:
        connection.create_topic("accounts", **COMPACTED, delete_retention_ms=2_000)
        for number in range(200):
            write(connection, b"key-%d" % (number % KEYS), b"%d" % number)
        for number in range(0, KEYS, 2):
            write(connection, b"key-%d" % number, None)
        tombstones = {key: place for key, place in written.items() if place[1] is None}
        assert len(tombstones) == KEYS // 2

        def left() -> dict[bytes, list[tuple[int, bytes | None]]]:
            """By key: its records. More is written, for only what lies before the newest segment is compacted."""
            for number in range(20):
                write(connection, b"filling", b"%d" % number + b"." * 1_000)
            found: dict[bytes, list[tuple[int, bytes | None]]] = {}
            for record in read(connection, "accounts"):
                assert record.key is not None
                found.setdefault(record.key, []).append((record.offset, record.value))
            return found

        def is_compacted() -> bool:
            return all(len(records) == 1 for key, records in left().items() if key != b"filling")

        def are_tombstones_gone() -> bool:
            return not left().keys() & tombstones.keys()

        wait_until(is_compacted, "one record a key is left")
        wait_until(are_tombstones_gone, "delete.retention.ms is over")
        records = left()
        kept = {key: place for key, place in written.items() if key not in tombstones and key != b"filling"}
        assert {key: found for key, found in records.items() if key != b"filling"} == {
            key: [place] for key, place in kept.items()
        }
        gone_offset, next_offset = 0, min(offset for offset, _ in kept.values())
        assert read_from(connection, "accounts", gone_offset)[0].offset == next_offset, (
            "who asks for less goes on there"
        )
        broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        found = {record.key: (record.offset, record.value) for record in read(connection, "accounts")}
        assert found.items() >= kept.items()
        assert not found.keys() & tombstones.keys()


def test_kill_while_compacting_leaves_a_log_that_can_be_read(start_broker: StartBroker) -> None:
    """With a throttle that makes a round take some seconds; the cleaner goes with its broker."""
    broker = start_broker({**QUICK, "log.cleaner.io.max.bytes.per.second": 400_000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("table", **COMPACTED)
        last = produce(connection, "table", 5000)
        directory = broker.data_directory / "table-0"
        (cleaner,) = wait_until(lambda: cleaners_of(broker.pid), "a cleaner runs")
        wait_until(lambda: list(directory.glob("*.cleaned")), "it writes")
    broker.kill()
    wait_until(lambda: not is_running(cleaner), "the cleaner is gone")
    assert list(directory.glob("*.cleaned"))
    broker.settings.pop("log.cleaner.io.max.bytes.per.second")
    broker.start()
    assert not list(directory.glob("*.swap"))
    with Connection(broker.bootstrap) as connection:
        assert state_of(read(connection, "table")) == last
        assert state_of(wait_for_compaction(connection, "table", 600)) == last


def test_a_cleaner_that_is_killed_is_replaced(start_broker: StartBroker) -> None:
    broker = start_broker({**QUICK, "log.cleaner.io.max.bytes.per.second": 800_000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("table", **COMPACTED)
        last = produce(connection, "table", 4000)
        (cleaner,) = wait_until(lambda: cleaners_of(broker.pid), "a cleaner runs")
        os.kill(cleaner, signal.SIGKILL)
        assert state_of(wait_for_compaction(connection, "table", 600)) == last
    assert "will retry" in broker.log
    assert broker.stop() == 0


def test_a_topic_may_be_deleted_while_it_is_compacted(start_broker: StartBroker) -> None:
    """The cleaner opens files of a directory that has another name by then. That is no failure of the disk."""
    broker = start_broker({**QUICK, "log.cleaner.io.max.bytes.per.second": 400_000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("table", **COMPACTED)
        connection.create_topic("other", **COMPACTED)
        produce(connection, "table", 5000)
        wait_until(lambda: list((broker.data_directory / "table-0").glob("*.cleaned")), "the cleaner writes")
        connection.delete_topic("table")
        wait_until(lambda: "table-0 was deleted or moved while" in broker.log, "the cleaner has noticed")
        last = produce(connection, "other", 1000)
        assert state_of(wait_for_compaction(connection, "other", 600)) == last
    assert "is offline" not in broker.log
    assert broker.stop() == 0


def test_a_log_that_cannot_be_read_is_left_alone_and_holds_up_no_other(start_broker: StartBroker) -> None:
    broker = start_broker({**QUICK, "log.cleaner.backoff.ms": 1000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("broken", **COMPACTED)
        connection.create_topic("whole", **COMPACTED)
        produce(connection, "broken", 2000)
        _flip_a_byte(broker.data_directory / "broken-0" / f"{0:020d}.log")
        last = produce(connection, "whole", 2000)
        assert state_of(wait_for_compaction(connection, "whole", 600)) == last
        wait_until(lambda: "broken-0 cannot be compacted" in broker.log, "the log line says so")
        assert connection.produce("broken", build_batch([NewRecord(b"k", b"v")])).error_code == 0
    assert broker.log.count("broken-0 cannot be compacted") == 1


def _flip_a_byte(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(500)
        byte = file.read(1)[0]
        file.seek(500)
        file.write(bytes([byte ^ 1]))


def test_a_full_disk_in_the_middle_of_a_compaction(start_broker: StartBroker) -> None:
    """A limit on the size of files: the cleaner's are the first to reach it."""
    broker = start_broker({**QUICK, "log.segment.bytes": 400_000, "log.cleaner.backoff.ms": 500})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("table", **COMPACTED)
        last = {b"big-%d" % n: bytes([65 + n]) * 40_000 for n in range(8)}
        before = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
        for key, value in last.items():
            assert connection.produce("table", build_batch([NewRecord(key, value)])).error_code == 0
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (200_000, before[1]))
        last |= produce(connection, "table", 40, value_bytes=4000)  # ends up in the next segment
        wait_until(lambda: "table-0 cannot be compacted for now" in broker.log, "the cleaner finds no room")
        assert state_of(read(connection, "table")) == last
        wait_until(lambda: not list((broker.data_directory / "table-0").glob("*.cleaned")), "nothing is left of it")
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, before)
        wait_until(lambda: "table-0 compacted up to" in broker.log, "there is room again")
        assert broker.log.count("table-0 cannot be compacted for now") == 1
        assert state_of(read(connection, "table")) == last
    assert broker.stop() == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_workers(start_broker: StartBroker, workers: int) -> None:
    broker = start_broker({**QUICK, "log.cleaner.threads": workers})
    with Connection(broker.bootstrap) as connection:
        for topic in ("one", "two", "three"):
            connection.create_topic(topic, **COMPACTED)
            produce(connection, topic, 1000)
        if workers == 0:
            assert cleaners_of(broker.pid) == []
            assert len(read(connection, "one")) == 1000
        else:
            for topic in ("one", "two", "three"):
                wait_for_compaction(connection, topic, 600)
