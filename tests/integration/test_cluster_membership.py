"""Brokers join a running cluster, take partitions, give them back and leave for good."""

import subprocess
from pathlib import Path

import pytest
from clients import CONFLUENT, Message, confluent_consumer
from cluster_processes import SSKAFKA, ClusterProcesses, StartCluster
from confluent_kafka import TopicPartition
from waiting import wait_until

from sskafka.model.properties import format_properties, parse_properties

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]

TIMEOUT_S = 30


def write_properties(cluster: ClusterProcesses, directory: Path, **changes: object) -> Path:
    """Those of broker 1, for another process."""
    stated = parse_properties((cluster.home(1) / "server.properties").read_text())
    stated |= {
        "listeners": "PLAINTEXT://localhost:0",
        "log.dirs": str(directory / "data"),
        "metadata.log.dir": str(directory / "metadata"),
        "process.roles": "broker",
    }
    stated |= {key.replace("_", "."): str(value) for key, value in changes.items()}
    directory.mkdir(parents=True)
    file = directory / "server.properties"
    file.write_text(format_properties(stated))
    return file


def test_a_broker_joins_takes_a_partition_and_leaves(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(1)
    cluster.create_topic("moved", partitions=1, replicas=1)
    CONFLUENT.write(cluster.bootstrap, "moved", [Message(b"value")], "none")
    file = write_properties(cluster, tmp_path / "newcomer", node_id=4)
    with (tmp_path / "newcomer.log").open("wb") as log:
        newcomer = subprocess.Popen([SSKAFKA, "start", str(file)], stdout=log, stderr=log)
    try:
        wait_until(lambda: cluster.live_brokers() == {1, 4}, "the newcomer is seen", TIMEOUT_S)
        run("cluster", "reassign", "moved:0=4", "-b", cluster.bootstrap)
        wait_until(lambda: cluster.partitions("moved")[0].replicas == [4], "the partition has moved", TIMEOUT_S)
        wait_until(lambda: cluster.partitions("moved")[0].leader == 4, "the newcomer leads it", TIMEOUT_S)
        assert [message.value for message in CONFLUENT.read(cluster.bootstrap, "moved", 0, 1)] == [b"value"]
        run("cluster", "reassign", "moved:0=1", "-b", cluster.bootstrap)
        wait_until(lambda: cluster.partitions("moved")[0].leader == 1, "it is back", TIMEOUT_S)
        newcomer.terminate()
        assert newcomer.wait(TIMEOUT_S) == 0
        run("cluster", "unregister", "4", "--yes", "-b", cluster.bootstrap)
        assert "broker 1 is alive" in run("cluster", "unregister", "1", "-b", cluster.bootstrap, exit_code=1)
        assert [message.value for message in CONFLUENT.read(cluster.bootstrap, "moved", 0, 1)] == [b"value"]
    finally:
        newcomer.kill()
        newcomer.wait()


def test_groups_begin_after_one_of_three_brokers_was_stopped_cleanly(start_cluster: StartCluster) -> None:
    """Topics with as many replicas as there are brokers can be created: the one that is away joins when it is back."""
    cluster = start_cluster(3, {"offsets.topic.replication.factor": 3, "offsets.topic.num.partitions": 3})
    cluster.create_topic("read")
    cluster.stop_broker(3)
    wait_until(lambda: cluster.live_brokers() == {1, 2}, "broker 3 is away", TIMEOUT_S)
    consumer = confluent_consumer(cluster.bootstrap, group_id="late", enable_auto_commit=False)
    try:
        wanted = [TopicPartition("read", 0, 7)]
        assert consumer.commit(offsets=wanted, asynchronous=False)[0].error is None
        assert consumer.committed([TopicPartition("read", 0)], TIMEOUT_S)[0].offset == 7
    finally:
        consumer.close()
    states = cluster.partitions("__consumer_offsets").values()
    assert [(sorted(state.replicas), sorted(state.isr)) for state in states] == [([1, 2, 3], [1, 2])] * 3
    cluster.start_broker(3)
    cluster.wait_for_isr("__consumer_offsets", [1, 2, 3])
    assert "could not be created" not in cluster.logs()


def run(*arguments: str, exit_code: int = 0) -> str:
    ended = subprocess.run([SSKAFKA, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == exit_code, ended.stderr
    return ended.stderr
