"""`sskafka cluster up` as users see it: its one line, its files, its signals and its complaints."""

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from clients import CONFLUENT, Message
from cluster_processes import SSKAFKA, ClusterProcesses, StartCluster
from waiting import wait_until

from sskafka.cli.stop_signals import ECHO_S
from sskafka.model.properties import parse_properties

pytestmark = pytest.mark.usefixtures("_ours")

TIMEOUT_S = 30


def failure(*arguments: str, exit_code: int = 1) -> str:
    """What `cluster up` says that cannot do what it is asked for."""
    ended = subprocess.run(
        [SSKAFKA, "cluster", "up", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == exit_code, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("count", [1, 3])
def test_start_use_stop_and_start_again(start_cluster: StartCluster, count: int) -> None:
    cluster = start_cluster(count)
    assert len(cluster.bootstrap.split(",")) == count
    assert cluster.live_brokers() == set(cluster.node_ids)
    controllers = {cluster.controller(at) for at in cluster.node_ids}
    assert len(controllers) == 1
    cluster.create_topic("kept", partitions=2, replicas=count)
    CONFLUENT.write(cluster.bootstrap, "kept", [Message(b"value")], "none")
    pids = {node_id: cluster.pid(node_id) for node_id in cluster.node_ids}
    bootstrap = cluster.bootstrap
    assert cluster.stop() == 0, cluster.logs()
    for node_id in cluster.node_ids:
        assert not (cluster.home(node_id) / "broker.pid").exists()
        assert (cluster.home(node_id) / "data" / ".kafka_cleanshutdown").exists()
    cluster.start()
    assert cluster.bootstrap == bootstrap, "the ports stay when none are asked for"
    assert {node_id: cluster.pid(node_id) for node_id in cluster.node_ids}.items().isdisjoint(pids.items())
    assert [message.value for message in CONFLUENT.read(cluster.bootstrap, "kept", 0, 1)] == [b"value"]
    assert cluster.stop(signal.SIGINT) == 130, cluster.logs()
    assert "Traceback" not in cluster.logs()


def test_a_broker_that_dies_is_reported_and_the_others_go_on(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    cluster.create_topic("shared", partitions=3)
    victim = cluster.node_ids[2]
    cluster.kill(victim)
    wait_until(lambda: f"broker {victim} " in cluster.up_log, "the death is reported")
    assert "SIGKILL" in cluster.up_log
    assert f"sskafka start {cluster.home(victim) / 'server.properties'}" in cluster.up_log
    cluster.wait_for_brokers([1, 2])
    CONFLUENT.write(cluster.bootstrap, "shared", [Message(b"value")], "none")
    cluster.start_broker(victim)
    cluster.wait_for_isr("shared", [1, 2, 3])
    assert cluster.stop() == 0, cluster.logs()


def test_when_no_broker_is_left_the_command_ends(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    parent = cluster._parent
    assert parent is not None
    cluster.kill(1)
    assert parent.wait(TIMEOUT_S) == 1
    assert "all brokers have exited" in cluster.up_log


def test_a_second_signal_waits_for_nobody(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    parent = cluster._parent
    assert parent is not None
    pid = cluster.pid(1)
    cluster.send(1, signal.SIGSTOP)  # a broker that cannot stop
    parent.send_signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in cluster.up_log, "the first signal is taken")
    assert parent.poll() is None
    time.sleep(ECHO_S)  # what comes earlier is taken for an echo of the first
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(TIMEOUT_S) == 1
    assert not Path(f"/proc/{pid}").exists()


def test_a_signal_before_the_cluster_is_ready(tmp_path: Path) -> None:
    cluster = ClusterProcesses(tmp_path / "cluster", 3)
    parent = cluster.launch()
    try:
        wait_until(lambda: "starting 3 brokers" in cluster.up_log, "the brokers are being started")
        parent.send_signal(signal.SIGTERM)
        parent.communicate(timeout=TIMEOUT_S)
    finally:
        parent.kill()
        parent.wait()
    assert not any(cluster.is_running(node_id) for node_id in cluster.node_ids)


@pytest.mark.parametrize("option", ["--kafka-port", "--http-port"])
def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = failure("-n", "1", "--dir", str(tmp_path / "cluster"), "--kafka-port", "0", option, str(port))
    assert f"port {port}" in message
    assert f"{option} N" in message
    assert not (tmp_path / "cluster").exists()


def test_a_running_cluster_is_not_started_twice(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    message = failure("--dir", str(cluster.directory))
    assert f"process {cluster.pid(1)}" in message
    assert cluster.live_brokers() == {1}


@pytest.mark.parametrize("key", ["node.id", "listeners", "log.dirs"])
def test_what_differs_between_brokers_cannot_be_set_for_all(tmp_path: Path, key: str) -> None:
    message = failure("--dir", str(tmp_path / "cluster"), "--set", f"{key}=1", exit_code=2)
    assert key in message


def test_a_broker_that_cannot_start_is_shown_with_its_log(tmp_path: Path) -> None:
    data = tmp_path / "cluster" / "broker-2" / "data"
    data.parent.mkdir(parents=True)
    data.write_text("not a directory")
    message = failure("-n", "2", "--dir", str(tmp_path / "cluster"), "--kafka-port", "0", "--no-http", "--no-adr")
    assert "broker 2" in message
    assert str(data) in message


def test_settings_reach_every_broker_and_stay(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1, {"num.partitions": 7})
    stated = parse_properties((cluster.home(1) / "server.properties").read_text())
    assert stated["num.partitions"] == "7"
    began = time.monotonic()
    assert cluster.stop() == 0
    assert time.monotonic() - began < 10


def test_topics_from_a_file_are_there_once_and_stay_as_they_are(start_cluster: StartCluster, tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('[{"name": "orders", "partitions": 3, "replication_factor": 2}, {"name": "logs"}]')
    cluster = start_cluster(3, {"topics.file": file, "num.partitions": 2, "default.replication.factor": 3})
    for name in ("orders", "logs"):
        wait_until(lambda topic=name: cluster.partitions(topic), f"{name} is made")
    orders = cluster.partitions("orders")
    assert {len(state.replicas) for state in orders.values()} == {2}
    assert [len(cluster.partitions(name)) for name in ("orders", "logs")] == [3, 2]
    file.write_text('[{"name": "orders", "partitions": 9}, {"name": "later", "partitions": 1}]')
    cluster.restart()
    wait_until(lambda: cluster.partitions("later"), "what is new in the file is made")
    assert [state.replicas for state in cluster.partitions("orders").values()] == [o.replicas for o in orders.values()]


def test_a_file_of_topics_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('[{"name": "no name of a topic"}]')
    arguments = ("-n", "1", "--dir", str(tmp_path / "cluster"), "--kafka-port", "0", "--no-http", "--no-adr")
    assert "no name of a topic" in failure(*arguments, "--set", f"topics.file={file}")


def test_broker_1_leads_a_new_cluster_of_the_lab(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, None, "--lab")
    assert cluster.controller() == 1
    cluster.create_topic("lab", partitions=1)
    assert (cluster.home(1) / "data" / "lab-1").is_dir()
