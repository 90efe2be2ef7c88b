"""Several log directories: replicas move between them, and one that fails takes only its own replicas with it."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker, StartFailedError
from test_full_disk import namespace_command
from waiting import wait_until
from wire_connection import Connection, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import iter_headers
from sskafka.records.record import decode_records
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sskafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sskafka.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC = "spread"


def move(connection: Connection, path: object, *, topic: str = TOPIC, partition: int = 0) -> int:
    wanted = AlterReplicaLogDir(str(path), [AlterReplicaLogDirTopic(topic, [partition])])
    response = connection.call(AlterReplicaLogDirsRequest([wanted]), version=2)
    return int(response.results[0].partitions[0].error_code)


def homes(connection: Connection, topic: str = TOPIC) -> dict[int, list[tuple[str, bool]]]:
    """Of each partition: the directories that it is in, and whether as a copy."""
    found: dict[int, list[tuple[str, bool]]] = {}
    for result in connection.call(DescribeLogDirsRequest(topics=None), version=4).results:
        for described in result.topics:
            for part in described.partitions if described.name == topic else ():
                found.setdefault(part.partition_index, []).append((result.log_dir, part.is_future_key))
    return found


@contextmanager
def load(bootstrap: str, partition: int = 0) -> Iterator[list[bytes]]:
    """Writes as fast as answers come; what was acknowledged."""
    acknowledged: list[bytes] = []
    is_over = threading.Event()

    def write() -> None:
        with Connection(bootstrap) as connection:
            while not is_over.is_set():
                value = b"%06d" % len(acknowledged) + b"." * 500
                assert connection.produce(TOPIC, values_batch(value), partition).error_code == 0
                acknowledged.append(value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        writer.join()


def read_all(connection: Connection, count: int, partition: int = 0) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        fetched = values_in(connection.fetch(TOPIC, len(values), partition))
        assert fetched, f"{len(values)} of {count} records"
        values += fetched
    return values


def test_a_replica_moves_under_load_and_nothing_is_lost(start_broker: StartBroker, tmp_path: Path) -> None:
    first, second = tmp_path / "disk-1", tmp_path / "disk-2"
    broker = start_broker({"log.dirs": f"{first},{second}", "log.segment.bytes": 200_000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(TOPIC)
        ((home, _),) = homes(connection)[0]
        other = str(second if home == str(first) else first)
        with load(broker.bootstrap) as acknowledged:
            wait_until(lambda: len(acknowledged) > 1000, "there is something to move")
            assert move(connection, other) == 0
            wait_until(lambda: homes(connection)[0] == [(other, False)], "the replica has moved")
            seen = len(acknowledged)
            wait_until(lambda: len(acknowledged) > seen + 300, "writing goes on")
        assert read_all(connection, len(acknowledged)) == acknowledged
        assert move(connection, other) == 0, "it is there already"
        assert move(connection, tmp_path / "nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert move(connection, second, partition=7) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert move(connection, second, topic="no/topic") == ErrorCode.INVALID_TOPIC_EXCEPTION
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        assert homes(connection)[0] == [(other, False)]
        assert read_all(connection, len(acknowledged)) == acknowledged
    assert "Traceback" not in broker.log


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def two_brokers(tmp_path: Path, start_broker: StartBroker) -> tuple[BrokerProcess, BrokerProcess]:
    """The first is the controller too; the second has two directories."""
    port = free_port()
    common = {
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
        "replica.high.watermark.checkpoint.interval.ms": 100,
        "broker.heartbeat.interval.ms": 200,
    }
    one = start_broker({**common, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}, directory=tmp_path / "one")
    disks = f"{tmp_path / 'disk-1'},{tmp_path / 'disk-2'}"
    two = start_broker(
        {
            **common,
            "process.roles": "broker",
            "node.id": 2,
            "log.dirs": disks,
            "metadata.log.dir": tmp_path / "metadata",
        },
        directory=tmp_path / "two",
    )
    return one, two


def create_on_second(connection: Connection) -> None:
    """Two partitions, led by broker 2; they go to different directories."""
    assignments = [CreatableReplicaAssignment(index, [2, 1]) for index in (0, 1)]
    topic = CreatableTopic(TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments)
    (result,) = connection.call(CreateTopicsRequest(topics=[topic]), version=7).topics
    assert result.error_code == 0, result


def leader_and_isr(connection: Connection, partition: int) -> tuple[int, list[int]]:
    found = {part.partition_index: part for part in connection.topic_metadata(TOPIC).partitions}
    return (found[partition].leader_id, sorted(found[partition].isr_nodes)) if partition in found else (-1, [])


def test_a_failed_directory_moves_leadership_and_the_rest_serves(
    two_brokers: tuple[BrokerProcess, BrokerProcess], tmp_path: Path
) -> None:
    one, two = two_brokers
    with Connection(one.bootstrap) as connection, Connection(two.bootstrap) as second:
        create_on_second(connection)
        for partition in (0, 1):
            wait_until(lambda p=partition: leader_and_isr(connection, p) == (2, [1, 2]), "broker 2 leads")
            wait_until(lambda p=partition: second.fetch(TOPIC, 0, p).error_code == 0, "and knows it")
            for n in range(20):
                assert second.produce(TOPIC, values_batch(b"%d" % n), partition).error_code == 0
        where = {partition: Path(places[0][0]) for partition, places in homes(second).items()}
        assert where[0] != where[1]
        where[0].rename(tmp_path / "pulled out")
        wait_until(lambda: leader_and_isr(connection, 0) == (1, [1]), "the other replica leads")
        assert leader_and_isr(connection, 1) == (2, [1, 2])
        assert values_in(connection.fetch(TOPIC, 0, 0)) == [b"%d" % n for n in range(20)]
        wait_until(lambda: connection.produce(TOPIC, values_batch(b"x"), 0).error_code == 0, "and takes records")
        assert second.produce(TOPIC, values_batch(b"x"), 1).error_code == 0
        refused = second.produce(TOPIC, values_batch(b"x"), 0).error_code
        assert refused in {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER}
        results = second.call(DescribeLogDirsRequest(topics=None), version=4).results
        codes = {Path(result.log_dir): result.error_code for result in results}
        assert (codes[where[0]], codes[where[1]]) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert f"log directory {where[0]} is offline" in two.log
    assert "Traceback" not in two.log


def reassign(connection: Connection, partition: int, replicas: list[int]) -> None:
    wanted = ReassignableTopic(TOPIC, [ReassignablePartition(partition, replicas)])
    answer = connection.call(AlterPartitionReassignmentsRequest(topics=[wanted]), version=1)
    assert answer.responses[0].partitions[0].error_code == 0, answer


def replicas_of(connection: Connection, partition: int) -> list[int]:
    found = {part.partition_index: part for part in connection.topic_metadata(TOPIC).partitions}
    return found[partition].replica_nodes


@pytest.mark.parametrize("since", ["run time", "start"])
def test_a_replica_that_leaves_and_comes_back_needs_no_offline_directory(
    two_brokers: tuple[BrokerProcess, BrokerProcess], tmp_path: Path, since: str
) -> None:
    """The replica starts over in a working directory; after a repair, the old copy is found and set aside."""
    one, two = two_brokers
    with Connection(one.bootstrap) as connection:
        create_on_second(connection)
        with Connection(two.bootstrap) as second:
            for partition in (0, 1):
                wait_until(lambda p=partition: leader_and_isr(connection, p) == (2, [1, 2]), "broker 2 leads")
                wait_until(lambda p=partition: second.fetch(TOPIC, 0, p).error_code == 0, "and knows it")
            assert second.produce(TOPIC, values_batch(b"old"), 0).error_code == 0
            where = {partition: Path(places[0][0]) for partition, places in homes(second).items()}
        if since == "start":
            two.stop()
        where[0].rename(tmp_path / "away")
        if since == "start":
            where[0].write_text("this is no directory")
            two.start()
        wait_until(lambda: leader_and_isr(connection, 0) == (1, [1]), "the other replica leads")
        reassign(connection, 0, [1])
        wait_until(lambda: replicas_of(connection, 0) == [1], "it has left")
        wait_until(lambda: connection.produce(TOPIC, values_batch(b"new"), 0).error_code == 0, "records are taken")
        reassign(connection, 0, [2, 1])
        wait_until(lambda: leader_and_isr(connection, 0)[1] == [1, 2], "it is back and in sync")
        with Connection(two.bootstrap) as second:
            assert homes(second)[0] == [(str(where[1]), False)]
        two.stop()
        where[0].unlink(missing_ok=True)
        (tmp_path / "away").rename(where[0])
        two.start()
        wait_until(lambda: leader_and_isr(connection, 0)[1] == [1, 2], "in sync after the repair")
        with Connection(two.bootstrap) as second:
            assert homes(second)[0] == [(str(where[1]), False)]
    assert stored_values(where[1] / f"{TOPIC}-0") == [b"old", b"new"]
    assert "Traceback" not in two.log


def test_a_start_without_one_of_the_directories(
    two_brokers: tuple[BrokerProcess, BrokerProcess], tmp_path: Path
) -> None:
    """The broker serves the other directories, other brokers lead the failed replicas, which return after a repair."""
    one, two = two_brokers
    with Connection(one.bootstrap) as connection:
        create_on_second(connection)
        with Connection(two.bootstrap) as second:
            for partition in (0, 1):
                wait_until(lambda p=partition: leader_and_isr(connection, p) == (2, [1, 2]), "broker 2 leads")
                wait_until(lambda p=partition: second.fetch(TOPIC, 0, p).error_code == 0, "and knows it")
                for n in range(20):
                    assert second.produce(TOPIC, values_batch(b"%d" % n), partition).error_code == 0
            where = {partition: Path(places[0][0]) for partition, places in homes(second).items()}
        two.stop()
        where[0].rename(tmp_path / "away")
        where[0].write_text("this is no directory")
        two.start()
        assert f"log directory {where[0]} cannot be used" in two.log
        wait_until(lambda: leader_and_isr(connection, 1)[1] == [1, 2], "the other directory's replica is in sync")
        assert leader_and_isr(connection, 0) == (1, [1])
        assert connection.produce(TOPIC, values_batch(b"x"), 0).error_code == 0
        with Connection(two.bootstrap) as second:
            results = second.call(DescribeLogDirsRequest(topics=None), version=4).results
            codes = {Path(result.log_dir): result.error_code for result in results}
            assert (codes[where[0]], codes[where[1]]) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
            assert homes(second) == {1: [(str(where[1]), False)]}, "nothing is begun anew"
            later = CreatableTopic("later", -1, -1, [CreatableReplicaAssignment(0, [2])])
            assert connection.call(CreateTopicsRequest(topics=[later]), version=7).topics[0].error_code == 0
            wait_until(lambda: homes(second, "later") == {0: [(str(where[1]), False)]}, "new ones have a place")
        two.stop()
        where[0].unlink()
        (tmp_path / "away").rename(where[0])
        two.start()
        wait_until(lambda: leader_and_isr(connection, 0)[1] == [1, 2], "it is back and has caught up")
        with Connection(two.bootstrap) as second:
            assert homes(second)[0] == [(str(where[0]), False)]
    assert stored_values(where[0] / f"{TOPIC}-0") == [b"%d" % n for n in range(20)] + [b"x"]
    assert "Traceback" not in two.log


def test_no_start_without_the_directory_of_the_metadata(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker({"log.dirs": f"{tmp_path / 'disk-1'},{tmp_path / 'disk-2'}"})
    broker.stop()
    (tmp_path / "disk-1").rename(tmp_path / "away")
    (tmp_path / "disk-1").write_text("this is no directory")
    with pytest.raises(StartFailedError):
        broker.start()
    assert f"the metadata log is unavailable: log directory {tmp_path / 'disk-1'} cannot be used" in broker.log
    assert "Traceback" not in broker.log


@pytest.mark.skipif(
    namespace_command() != ("unshare", "--mount") or shutil.which("nsenter") is None, reason="nobody may mount here"
)
def test_a_directory_that_becomes_read_only(start_broker: StartBroker, tmp_path: Path) -> None:
    """What was acknowledged is there when it can be written again; meanwhile the other directory serves."""
    disk, data = tmp_path / "disk-2", tmp_path / "disk-1"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=50m tmpfs "$0" && exec "$@"'
    broker = start_broker(
        {"log.dirs": f"{data},{disk / 'data'}", "metadata.log.dir": tmp_path / "metadata"},
        wrapper=("unshare", "--mount", "sh", "-c", script, str(disk)),
    )
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(TOPIC, 2)
        where = {partition: Path(places[0][0]) for partition, places in homes(connection).items()}
        (victim,) = [partition for partition, path in where.items() if path == disk / "data"]
        for partition in (0, 1):
            for n in range(20):
                assert connection.produce(TOPIC, values_batch(b"%d" % n), partition).error_code == 0
        remount(broker, disk, "ro")
        codes = write_until_refused(connection, victim)
        assert codes[-1] == ErrorCode.KAFKA_STORAGE_ERROR
        for n in range(20, 40):
            assert connection.produce(TOPIC, values_batch(b"%d" % n), 1 - victim).error_code == 0
        assert read_all(connection, 40, 1 - victim) == [b"%d" % n for n in range(40)]
        # As after a restart with the directory repaired; here it is another process on a copy.
        saved = tmp_path / "saved"
        shutil.copytree(f"/proc/{broker.pid}/root{disk}/data/{TOPIC}-{victim}", saved / f"{TOPIC}-{victim}")
    assert "is offline" in broker.log
    assert "Traceback" not in broker.log
    acknowledged = [b"%d" % n for n in range(20)] + [b"x"] * (len(codes) - 1)
    assert stored_values(saved / f"{TOPIC}-{victim}") == acknowledged


def remount(broker: BrokerProcess, disk: Path, mode: str) -> None:
    """Files that are open for writing keep a file system from becoming read-only, so it is covered instead."""
    command = f"mount --bind -o {mode} {disk} {disk} && mount -o remount,bind,{mode} {disk}"
    subprocess.run(["nsenter", "-t", str(broker.pid), "-m", "sh", "-c", command], check=True, capture_output=True)


def write_until_refused(connection: Connection, partition: int) -> list[int]:
    """Writes go through the files that are open until the broker needs a new one: the answers."""
    codes: list[int] = []

    def is_refused() -> bool:
        codes.append(connection.produce(TOPIC, values_batch(b"x"), partition).error_code)
        return codes[-1] != 0

    wait_until(is_refused, "writing is refused")
    return codes


def stored_values(directory: Path) -> list[bytes | None]:
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    return [
        record.value for position, header in iter_headers(data) for record in decode_records(data, header, position)
    ]


def test_a_cordoned_directory_gets_no_new_replicas(start_broker: StartBroker, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    broker = start_broker({"log.dirs": f"{first},{second}", "cordoned.log.dirs": str(first)})
    with Connection(broker.bootstrap) as connection:
        assert cordoned(connection) == {str(first): True, str(second): False}
        connection.create_topic("fenced", 4)
        assert set(homes(connection, "fenced")[0]) == {(str(second), False)}
        assert {path for places in homes(connection, "fenced").values() for path, _ in places} == {str(second)}
        assert move(connection, first, topic="fenced") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        set_cordoned(connection, str(second))
        wait_until(lambda: cordoned(connection) == {str(first): False, str(second): True}, "the setting is taken over")
        connection.create_topic("elsewhere", 4)
        assert {path for places in homes(connection, "elsewhere").values() for path, _ in places} == {str(first)}


def test_a_broker_whose_directories_are_all_cordoned_gets_no_new_replicas(start_broker: StartBroker) -> None:
    with Connection(start_broker({"broker.heartbeat.interval.ms": 200}).bootstrap) as connection:
        set_cordoned(connection, "*")

        def is_refused() -> bool:
            wanted = CreatableTopic("nowhere", num_partitions=1, replication_factor=1)
            (result,) = connection.call(CreateTopicsRequest([wanted], validate_only=True), version=7).topics
            return bool(result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR)

        wait_until(is_refused, "the controller has heard of it")
        set_cordoned(connection, "")
        wait_until(lambda: not is_refused(), "the broker takes replicas again")


def cordoned(connection: Connection) -> dict[str, bool]:
    results = connection.call(DescribeLogDirsRequest(topics=None), version=5).results
    return {result.log_dir: result.is_cordoned for result in results}


def set_cordoned(connection: Connection, value: str) -> None:
    change = AlterableConfig("cordoned.log.dirs", 0, value)
    resource = AlterConfigsResource(4, "1", [change])
    (result,) = connection.call(IncrementalAlterConfigsRequest([resource]), version=1).responses
    assert result.error_code == ErrorCode.NONE, result.error_message
