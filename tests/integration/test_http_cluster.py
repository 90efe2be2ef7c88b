"""The HTTP servers of three brokers: who accepts, who passes on, and what the lab's `acks: all` waits for."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from cluster_processes import ClusterProcesses
from http_client import HttpClient
from waiting import wait_until

from sskafka.model.properties import parse_properties

STILL_WAITING_S = 0.5
SETTINGS = {
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 30_000,
}
"""A follower that is paused for a moment stays in sync: records wait for it."""


class HttpCluster(ClusterProcesses):
    server_options = ("--http-port", "0", "--no-adr")
    ready_timeout_s = 90

    def http(self, node_id: int) -> HttpClient:
        properties = parse_properties((self.home(node_id) / "server.properties").read_text())
        return HttpClient(properties["http.listener"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpCluster]:
    cluster = HttpCluster(tmp_path_factory.mktemp("cluster"), 3, SETTINGS)
    try:
        cluster.start("--lab")
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def clients(cluster: HttpCluster) -> Iterator[dict[int, HttpClient]]:
    clients = {node_id: cluster.http(node_id) for node_id in cluster.node_ids}
    yield clients
    for client in clients.values():
        client.close()


@pytest.fixture
def leader(clients: dict[int, HttpClient]) -> HttpClient:
    """Broker 1 leads a new cluster."""
    assert clients[1].get("/healthcheck")[1]["leader_broker_id"] == 1
    return clients[1]


def leaders_of(cluster: HttpCluster, topic: str) -> dict[int, int]:
    return {number: state.leader for number, state in cluster.partitions(topic).items()}


@contextmanager
def paused(cluster: HttpCluster, node_id: int) -> Iterator[None]:
    cluster.send(node_id, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.send(node_id, signal.SIGCONT)


def assert_waits(request: "Future[None]") -> None:
    time.sleep(STILL_WAITING_S)  # the time in which nothing must happen
    assert not request.done()


def test_everybody_else_names_the_leader(clients: dict[int, HttpClient], leader: HttpClient) -> None:
    refusal = (421, {"detail": "leader is 1, can't accept"})
    for node_id in (2, 3):
        client = clients[node_id]
        assert client.get("/healthcheck") == (200, {"status": "up", "broker_id": node_id, "leader_broker_id": 1})
        assert client.post("/admin/v1/topics", {"topic_name": "t", "partition_count": 1}) == refusal
        assert client.get("/admin/v1/topics") == refusal
        assert client.delete("/admin/v1/topics/t") == refusal
        assert client.post("/data/v1/produce", {"topic_partition": "t-1", "payload": "x"}) == refusal
        assert client.post("/data/v1/consume", {"topic_partition": "t-1"}) == refusal
        assert client.post("/kraft/v1/fetchMetadata", {}) == refusal
        assert client.get("/readyz") == (200, {"status": "ready"})


def test_the_leader_passes_on_what_others_lead(cluster: HttpCluster, leader: HttpClient) -> None:
    leader.create("spread", 3)
    assert set(leaders_of(cluster, "spread").values()) == {1, 2, 3}
    for number in (1, 2, 3):
        for acks in ("all", "isr", "1", "0"):
            leader.produce(f"spread-{number}", f"{number} {acks}", acks=acks)
        found = wait_until(
            lambda number=number: leader.consume(f"spread-{number}")["records"][3:], "the unacknowledged record arrives"
        )
        assert found[0]["payload"] == f"{number} 0"
        assert [record["payload"] for record in leader.consume(f"spread-{number}")["records"][:3]] == [
            f"{number} {acks}" for acks in ("all", "isr", "1")
        ]


def test_all_waits_for_a_replica_that_is_away_and_for_its_word(cluster: HttpCluster, leader: HttpClient) -> None:
    leader.create("waiting")
    leader.produce("waiting-1", "first", acks="all")
    absent = next(node_id for node_id in (2, 3) if node_id != leaders_of(cluster, "waiting")[0])
    with ThreadPoolExecutor(1) as threads, paused(cluster, absent):
        request = threads.submit(leader.produce, "waiting-1", "second", None, "all")
        assert_waits(request)
        leader.consume("waiting-1", 0, follower_broker_id=str(absent))
        assert_waits(request)
        leader.consume("waiting-1", 1, follower_broker_id="99")
        assert_waits(request)
        found = leader.consume("waiting-1", 1, follower_broker_id=str(absent))
        request.result(10)
    assert found == {"last_offset": 1, "records": []}, "what a follower says moves no watermark"
    wait_until(lambda: leader.consume("waiting-1")["last_offset"] == 1, "the absent replica has it too")


def test_a_wait_ends_with_its_caller(cluster: HttpCluster, clients: dict[int, HttpClient], leader: HttpClient) -> None:
    leader.create("abandoned")
    leading = leaders_of(cluster, "abandoned")[0]
    absent = next(node_id for node_id in (2, 3) if node_id != leading)

    def looks() -> str:
        name = 'kafka_network_requestmetrics_requests_total{request="DescribeQuorum"}'
        return next(line for line in clients[leading].http.get("/metrics").text.splitlines() if line.startswith(name))

    with paused(cluster, absent):
        with pytest.raises(httpx.ReadTimeout):
            leader.http.post(
                "/data/v1/produce", json={"topic_partition": "abandoned-1", "payload": "x"}, timeout=STILL_WAITING_S
            )
        before = looks()
        time.sleep(STILL_WAITING_S)  # a wait that went on would have looked again
        assert looks() == before


def test_a_reader_waits_a_second_for_the_watermark(cluster: HttpCluster, leader: HttpClient) -> None:
    leader.create("reading")
    absent = next(node_id for node_id in (2, 3) if node_id != leaders_of(cluster, "reading")[0])
    with paused(cluster, absent):
        leader.produce("reading-1", "not committed yet", acks="1")
        began = time.monotonic()
        assert leader.consume("reading-1") == {"last_offset": -1, "records": []}
        assert 1 <= time.monotonic() - began < 5
    assert leader.consume("reading-1")["last_offset"] == 0


def test_one_of_the_brokers_is_the_active_controller(clients: dict[int, HttpClient]) -> None:
    name = "kafka_controller_kafkacontroller_activecontrollercount"
    pages = [client.http.get("/metrics").text.splitlines() for client in clients.values()]
    assert sorted(line for page in pages for line in page if line.startswith(name)) == [
        f"{name} 0",
        f"{name} 0",
        f"{name} 1",
    ]


def test_a_topic_has_all_brokers_also_those_that_are_down(cluster: HttpCluster, leader: HttpClient) -> None:
    cluster.kill(3)
    wait_until(lambda: cluster.live_brokers(at=1) == {1, 2}, "broker 3 is fenced")
    leader.create("later")
    status, listed = leader.get("/admin/v1/topics")
    assert status == 200
    replicas = [
        topic["partitions"][0]["replica_brokers"] for topic in listed["topics"] if topic["topic_name"] == "later"
    ]
    assert replicas == [["1", "2", "3"]]
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(leader.produce, "later-1", "for everybody", None, "all")
        assert_waits(request)
        cluster.start_broker(3)
        request.result(30)


def serves(client: HttpClient) -> bool:
    try:
        return client.get("/livez")[0] == 200
    except httpx.TransportError:  # the HTTP process of a broker that was started again is not there yet
        return False


def test_every_broker_shows_the_segments_of_the_others(cluster: HttpCluster, clients: dict[int, HttpClient]) -> None:
    for node_id, client in clients.items():
        wait_until(lambda one=client: serves(one), f"the HTTP server of broker {node_id}")
    cluster.create_topic("everywhere", partitions=1, replicas=2)
    state = cluster.partitions("everywhere")[0]
    (elsewhere,) = set(cluster.node_ids) - set(state.replicas)
    for number in range(3):
        written = {"value": {"text": f"record {number}"}}
        wait_until(lambda it=written: clients[1].post("/api/v1/topics/everywhere/records", it)[0] == 201, "a new topic")
    path = "/api/v1/topics/everywhere/partitions/0/segments"
    for node_id in state.replicas:
        asked = f"{path}?broker={node_id}"
        wait_until(
            lambda at=asked, on=node_id: clients[elsewhere].get(at) == clients[on].get(path), "a follower's records"
        )
        theirs = clients[elsewhere].get(asked)
        assert theirs[0] == 200
        assert theirs[1]["directory"].startswith(str(cluster.home(node_id)))
        batches = f"{path}/0/batches?limit=2&broker="
        wait_until(lambda at=batches, on=node_id: _records(clients[elsewhere].get(f"{at}{on}")[1]) == 2, "the batches")
        assert clients[elsewhere].get(f"{batches}{node_id}") == clients[node_id].get(f"{batches}{node_id}")
        following = clients[elsewhere].get(f"{batches}{node_id}")[1]["next_position"]
        assert _records(clients[elsewhere].get(f"{batches}{node_id}&position={following}")[1]) == 1
        index = f"{path}/0/index?broker={node_id}"
        assert clients[elsewhere].get(index) == clients[node_id].get(index)
        status, answer = clients[elsewhere].get(f"{path}/77/batches?broker={node_id}")
        assert (status, answer["detail"]) == (404, f"everywhere-0 has no such segment on broker {node_id} any more")
    status, answer = clients[state.leader].get(f"{path}?broker={elsewhere}")
    assert (status, answer["detail"]) == (404, f"broker {elsewhere} has no replica of everywhere-0")
    assert clients[1].get(f"{path}?broker=77") == (404, {"detail": "there is no live broker 77"})
    metadata = "/api/v1/topics/__cluster_metadata/partitions/0/segments?broker=3"
    assert clients[1].get(metadata)[1]["broker_id"] == 3


def test_the_lab_is_shown(leader: HttpClient) -> None:
    assert leader.post("/admin/v1/topics", {"topic_name": "journaled", "partition_count": 2})[0] == 201

    def newest() -> dict[str, Any] | None:
        journal = leader.get("/api/v1/lab?limit=1")[1]["journal"]
        return journal[0] if journal and journal[0]["payload"]["topic_name"] == "journaled" else None

    line = wait_until(newest, "the line of the topic")
    assert (line["type"], [one["id"] for one in line["payload"]["partitions"]]) == (
        "create-topic",
        ["journaled-1", "journaled-2"],
    )
    state = leader.get("/api/v1/lab")[1]
    assert (state["leader_id"], state["quorum_state"]["leader_id"]) == (1, 1)
    assert (state["lines"], state["journal"][0]) == (line["offset"] + 1, line)
    assert state["journal_file"].endswith("__cluster_metadata.log")


def _records(page: dict[str, Any]) -> int:
    return sum(batch["records"] for batch in page["batches"])
