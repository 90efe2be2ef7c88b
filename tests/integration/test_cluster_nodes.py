"""Nodes that are only controllers or only brokers, that come, go, and are not let in."""

import json
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartFailedError
from http_client import HttpClient
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.ids import parse_uuid
from sskafka.model.properties import parse_properties
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CONTROLLER_ID = 9
QUICK = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300}

pytestmark = pytest.mark.usefixtures("_ours")

StartNode = Callable[..., BrokerProcess]


@pytest.fixture
def port() -> int:
    """Of the controller: voters are known by address before they are there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        number: int = server.getsockname()[1]
        return number


@pytest.fixture
def node(tmp_path: Path, port: int) -> Iterator[StartNode]:
    """A broker of the cluster whose controller is node 9, made and not started."""
    with ExitStack() as cleanup:

        def make(node_id: int, settings: Mapping[str, object] | None = None, name: str = "") -> BrokerProcess:
            is_controller = node_id == CONTROLLER_ID
            listener = f"CONTROLLER://127.0.0.1:{port}" if is_controller else "PLAINTEXT://127.0.0.1:0"
            process = BrokerProcess(
                tmp_path / (name or f"node-{node_id}"),
                {
                    "node.id": node_id,
                    "process.roles": "controller" if is_controller else "broker",
                    "listeners": listener,
                    "controller.listener.names": "CONTROLLER",
                    "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{port}",
                    **QUICK,
                    **(settings or {}),
                },
            )
            cleanup.callback(process.close)
            return process

        yield make


def create(at: BrokerProcess, name: str, replicas: int = 1) -> int:
    with Connection(at.bootstrap) as connection:
        request = CreateTopicsRequest(topics=[CreatableTopic(name, 2, replicas)], timeout_ms=10_000)
        (topic,) = connection.call(request, version=7).topics
    code: int = topic.error_code
    return code


def knows(at: BrokerProcess, name: str) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    with Connection(at.bootstrap) as connection:
        (topic,) = connection.call(request, version=12).topics
    return topic.error_code == 0 and len(topic.partitions) == 2


def live_brokers(at: BrokerProcess) -> set[int]:
    with Connection(at.bootstrap) as connection:
        return {broker.broker_id for broker in connection.call(DescribeClusterRequest(), version=0).brokers}


def directory_id(broker: BrokerProcess) -> bytes:
    properties = parse_properties((broker.data_directory / "meta.properties").read_text())
    return parse_uuid(properties["directory.id"])


def test_brokers_pass_on_what_only_the_controller_can_do(node: StartNode) -> None:
    controller = node(CONTROLLER_ID).start()
    brokers = [node(number).start() for number in (1, 2)]
    for number, broker in enumerate(brokers):
        assert create(broker, f"topic-{number}", replicas=2) == 0
        assert knows(broker, f"topic-{number}"), "who was told that it exists finds it where it asked"
    for broker in brokers:
        for number in (0, 1):
            wait_until(lambda b=broker, n=number: knows(b, f"topic-{n}"), "every broker knows every topic")
    topics = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
    for asked in (controller, *brokers):
        with Connection(asked.bootstrap) as connection:
            (topic,) = connection.call(DescribeQuorumRequest(topics=topics), version=2).topics
        assert topic.partitions[0].leader_id == CONTROLLER_ID
        assert [voter.replica_id for voter in topic.partitions[0].current_voters] == [CONTROLLER_ID]
        assert {observer.replica_id for observer in topic.partitions[0].observers} == {1, 2}
        directories = {observer.replica_id: observer.replica_directory_id for observer in topic.partitions[0].observers}
        assert directories == {number: directory_id(broker) for number, broker in enumerate(brokers, 1)}


def test_a_topic_that_a_broker_creates_has_the_numbers_of_that_broker(node: StartNode) -> None:
    node(CONTROLLER_ID).start()
    brokers = [node(1, {"num.partitions": 5}).start(), node(2, {"default.replication.factor": 2}).start()]
    wait_until(lambda: live_brokers(brokers[0]) == {1, 2}, "both brokers are unfenced")
    for number, broker, partitions, replicas in ((1, brokers[0], 5, 1), (2, brokers[1], 1, 2)):
        with Connection(broker.bootstrap) as connection:
            created = connection.auto_create_topic(f"auto-{number}")
        assert len(created.partitions) == partitions
        assert {len(partition.replica_nodes) for partition in created.partitions} == {replicas}


def test_a_controller_that_was_killed_comes_back_and_its_brokers_go_on(node: StartNode) -> None:
    controller = node(CONTROLLER_ID).start()
    broker = node(1).start()
    assert create(broker, "before") == 0
    controller.kill()
    assert knows(broker, "before"), "a broker answers what it knows without a controller"
    controller.start()
    assert create(broker, "after") == 0
    wait_until(lambda: knows(broker, "after"), "the broker knows the new topic")
    assert knows(broker, "before")


def test_brokers_may_start_before_their_controller(node: StartNode) -> None:
    broker = node(1)
    broker.launch()
    node(CONTROLLER_ID).start()
    broker.bootstrap = broker._first_line().split("bootstrap=")[1].split()[0]
    assert live_brokers(broker) == {1}


def test_a_node_of_another_cluster_is_refused(node: StartNode) -> None:
    node(CONTROLLER_ID).start()
    stranger = node(1, {"cluster.id": "MkU3OEVBNTcwNTJENDM2Qg"})
    stranger.launch()
    assert stranger.wait() == 1
    assert "belongs to cluster MkU3OEVBNTcwNTJENDM2Qg, but nodes 9 belong to another cluster" in stranger.log


def test_a_second_broker_with_a_live_id_is_refused(node: StartNode) -> None:
    node(CONTROLLER_ID).start()
    first = node(1).start()
    second = node(1, name="twin")
    second.launch()
    assert second.wait() == 1
    assert "another broker with the id 1 is registered, and it is alive" in second.log
    assert first.is_running
    assert live_brokers(first) == {1}
    assert create(first, "still-there") == 0


def test_a_killed_broker_may_come_back_at_once(node: StartNode) -> None:
    node(CONTROLLER_ID).start()
    broker = node(1).start()
    assert create(broker, "t") == 0
    broker.kill()
    broker.start()
    wait_until(lambda: knows(broker, "t"), "the topic is there")


def test_a_stopped_broker_hands_over_and_one_that_hangs_is_fenced(node: StartNode) -> None:
    node(CONTROLLER_ID).start()
    brokers = {number: node(number).start() for number in (1, 2, 3)}
    assert create(brokers[1], "t", replicas=3) == 0
    assert brokers[3].stop() == 0
    assert live_brokers(brokers[1]) == {1, 2}, "it took its leave: nobody had to wait for its session to end"
    brokers[2].send_signal(signal.SIGSTOP)
    wait_until(lambda: live_brokers(brokers[1]) == {1}, "the silent broker is fenced")
    brokers[2].send_signal(signal.SIGCONT)
    wait_until(lambda: live_brokers(brokers[1]) == {1, 2}, "it is back")


def test_every_node_keeps_the_readable_journal(node: StartNode, tmp_path: Path) -> None:
    processes = {
        number: node(number, {"metadata.log.dir": tmp_path / f"metadata-{number}"}) for number in (CONTROLLER_ID, 1, 2)
    }
    for process in processes.values():
        process.start()
    assert create(processes[1], "first") == 0
    assert create(processes[2], "second") == 0
    journals = [tmp_path / f"metadata-{number}" / "__cluster_metadata.log" for number in processes]
    wait_until(lambda: all(journal.read_text().count("\n") == 2 for journal in journals), "all have both lines")
    assert len({journal.read_text() for journal in journals}) == 1
    state = json.loads((tmp_path / f"metadata-{CONTROLLER_ID}" / "quorum-state").read_text())
    assert state == {"leader_id": CONTROLLER_ID, "leader_epoch": 1, "voted_id": CONTROLLER_ID}


def test_a_controller_is_watched_over_http(node: StartNode) -> None:
    controller = node(CONTROLLER_ID, {"http.listener": "127.0.0.1:0"}).start()
    assert controller.http
    http = HttpClient(controller.http)
    try:
        wait_until(lambda: http.get("/readyz") == (200, {"status": "ready"}), "it leads")
        assert http.get("/livez") == (200, {"status": "alive"})
        assert http.get("/healthcheck")[1] == {"status": "up", "broker_id": 9, "leader_broker_id": 9}
        metrics = http.http.get("/metrics").text
        assert "kafka_controller_kafkacontroller_activecontrollercount 1" in metrics
        assert "process_cpu_seconds_total" in metrics
        assert http.get("/admin/v1/topics")[0] == 404, "it serves no records"
        assert "/data/v1/produce" not in http.get("/openapi.json")[1]["paths"]
    finally:
        http.close()
    assert controller.stop() == 0
    assert "Traceback" not in controller.log


def test_a_controller_without_a_leader_is_not_ready(node: StartNode, port: int) -> None:
    voters = f"{CONTROLLER_ID}@127.0.0.1:{port},10@127.0.0.1:1"
    controller = node(CONTROLLER_ID, {"http.listener": "127.0.0.1:0", "controller.quorum.voters": voters}).start()
    http = HttpClient(controller.http)
    try:
        assert http.get("/livez")[0] == 200
        assert http.get("/readyz") == (503, {"detail": "the quorum has no leader"})
    finally:
        http.close()


def test_a_controller_has_no_listener_for_records(node: StartNode) -> None:
    with pytest.raises(StartFailedError, match=r"adr.listener.*only a controller"):
        node(CONTROLLER_ID, {"adr.listener": "127.0.0.1:0"}).start()
