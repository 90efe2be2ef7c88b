"""The routes under /api/v1 that show a cluster."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from broker_process import BrokerProcess, StartBroker
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from confluent_kafka import TopicPartition
from group_fixtures import GROUP_SETTINGS
from http_client import HttpClient, ok
from waiting import wait_until
from wire_connection import Connection

from sskafka.client.cluster import Cluster
from sskafka.model.version import __version__
from sskafka.runtime.clock import SystemClock
from sskafka.servers.http.history.sampler import HistorySampler
from sskafka.servers.http.history.series import History, LagPoint
from sskafka.servers.http.routes.events import STREAMS_MAX


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {**GROUP_SETTINGS, "http.listener": "127.0.0.1:0"}
    settings |= {"ssl.key.password": "secret-password"}
    process = BrokerProcess(tmp_path_factory.mktemp("inspected-broker"), settings)
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def test_a_healthy_broker(broker: BrokerProcess, http: HttpClient) -> None:
    health = ok(http.get("/api/v1/cluster"))
    (own,) = health["brokers"]
    assert (own["node_id"], own["is_controller"], own["is_fenced"]) == (1, True, False)
    assert own["disk_total_bytes"] > own["disk_usable_bytes"] > 0
    assert health["quorum"]["leader_id"] == 1
    assert health["quorum"]["voters"] == [{"node_id": 1, "lag": 0}]
    assert (health["offline"], health["attention"]) == (0, [])


def test_pages_of_topics(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        for number in range(5):
            connection.create_topic(f"paged-{number}", partitions=number + 1)
    first = ok(http.get("/api/v1/topics?search=paged&limit=2"))
    assert [(topic["name"], topic["partitions"]) for topic in first["topics"]] == [("paged-0", 1), ("paged-1", 2)]
    names, after = [], ""
    while after is not None:
        page = ok(http.get(f"/api/v1/topics?search=paged&limit=2&after={after}"))
        names += [topic["name"] for topic in page["topics"]]
        after = page["next_name"]
    assert names == [f"paged-{number}" for number in range(5)]


def test_a_topic_and_its_settings(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("described", partitions=2, retention_ms=1234567)
    confluent_send(confluent_producer(broker.bootstrap), "described", [Message(b"1"), Message(b"2")], 1)
    topic = ok(http.get("/api/v1/topics/described"))
    assert [(one["leader"], one["isr"], one["high_watermark"]) for one in topic["partitions"]] == [
        (1, [1], 0),
        (1, [1], 2),
    ]
    (changed,) = topic["configs"]
    assert (changed["name"], changed["value"]) == ("retention.ms", "1234567")
    every = {one["name"]: one for one in ok(http.get("/api/v1/topics/described/configs"))["configs"]}
    assert every["cleanup.policy"]["source"] == "DEFAULT_CONFIG"
    assert every["cleanup.policy"]["documentation"]


def test_settings_of_a_broker_without_secrets(broker: BrokerProcess, http: HttpClient) -> None:
    body = http.http.get("/api/v1/brokers/1/configs").text
    configs = {one["name"]: one for one in json.loads(body)["configs"]}
    assert configs["node.id"]["value"] == "1"
    assert "secret-password" not in body


@pytest.mark.parametrize(
    "path", ["/api/v1/topics/nope", "/api/v1/topics/nope/configs", "/api/v1/groups/nope", "/api/v1/brokers/77/configs"]
)
def test_what_does_not_exist_is_not_found(http: HttpClient, path: str) -> None:
    status, answer = http.get(path)
    assert (status, "nope" in answer["detail"] or "77" in answer["detail"]) == (404, True), answer


def test_a_group_with_its_lag(broker: BrokerProcess, http: HttpClient) -> None:
    confluent_send(confluent_producer(broker.bootstrap), "lagging", [Message(b"%d" % n) for n in range(5)], 0)
    consumer = confluent_consumer(
        broker.bootstrap, group_id="team", auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.subscribe(["lagging"])
    message = wait_until(lambda: consumer.poll(0.1), "a record", TIMEOUT_S)
    consumer.commit(message=message, asynchronous=False)
    assert [group["group_id"] for group in ok(http.get("/api/v1/groups"))["groups"]] == ["team"]
    group = ok(http.get("/api/v1/groups/team"))
    assert (group["state"], group["lag"]) == ("Stable", 4)
    (member,) = group["members"]
    assert member["partitions"] == ["lagging-0"]
    (partition,) = group["partitions"]
    assert (partition["committed"], partition["log_end_offset"], partition["lag"]) == (1, 5, 4)
    assert partition["lag_ms"] >= 0
    consumer.close()


def test_transactions(broker: BrokerProcess, http: HttpClient) -> None:
    producer = confluent_producer(broker.bootstrap, transactional_id="shop")
    producer.init_transactions(TIMEOUT_S)
    assert "shop" in [one["transactional_id"] for one in ok(http.get("/api/v1/transactions"))["transactions"]]


def test_counters_of_the_brokers(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("counted")
    before = ok(http.get("/api/v1/load"))
    confluent_send(confluent_producer(broker.bootstrap), "counted", [Message(b"x" * 1000)] * 7)
    after = ok(http.get("/api/v1/load"))
    (first,), (then,) = before["brokers"], after["brokers"]
    assert then["messages_in"] - first["messages_in"] == 7
    assert then["bytes_in"] - first["bytes_in"] > 0
    assert then["uptime_ms"] > first["uptime_ms"] > 0
    assert (then["node_id"], then["version"]) == (1, __version__)
    assert min(then["cores"], then["cpu_ms"], then["memory_bytes"], then["connections"]) > 0
    produced = next(one for one in after["requests"] if one["name"] == "Produce")
    assert sum(produced["latency_buckets"]) == produced["requests"] > 0


def test_elections_of_the_quorum(broker: BrokerProcess, http: HttpClient) -> None:
    (newest, *_) = ok(http.get("/api/v1/quorum/elections?limit=1"))["elections"]
    quorum = ok(http.get("/api/v1/cluster"))["quorum"]
    assert (newest["leader_id"], newest["leader_epoch"]) == (1, quorum["leader_epoch"])
    assert 0 <= time.time() * 1000 - newest["time_ms"] < 3_600_000


def test_settings_of_topics(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("with-settings", retention_ms=5000)
        connection.create_topic("without-settings")
    own = ok(http.get("/api/v1/configs/topics?name=with-settings&name=without-settings&name=missing"))["topics"]
    retention = {"name": "retention.ms", "value": "5000"}
    assert own == [{"topic": "with-settings", "configs": [retention]}, {"topic": "without-settings", "configs": []}]
    table = {one["name"]: one for one in ok(http.get("/api/v1/settings/topics"))["settings"]}
    assert table["cleanup.policy"]["choices"] == ["compact", "delete"]
    assert all(one["documentation"] for one in table.values())


def test_who_reads_a_topic(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("read", partitions=2)
    confluent_send(confluent_producer(broker.bootstrap), "read", [Message(b"1"), Message(b"2"), Message(b"3")], 1)
    consumer = confluent_consumer(
        broker.bootstrap, group_id="readers-of-it", client_id="the-reader", auto_offset_reset="earliest"
    )
    consumer.subscribe(["read"])
    message = wait_until(lambda: consumer.poll(1), "a record is read", TIMEOUT_S)
    consumer.commit(message=message, asynchronous=False)
    found = ok(http.get("/api/v1/topics/read/consumers"))
    (group,) = found["groups"]
    assert (group["group_id"], group["partitions"], group["lag"], found["is_complete"]) == ("readers-of-it", 1, 2, True)
    assert "the-reader" in {reader["client_id"] for reader in found["readers"]}
    consumer.close()
    load = ok(http.get("/api/v1/topics/read/load"))
    assert (load["messages_in"], load["log_bytes"] > 0) == (3, True)
    (listed,) = ok(http.get("/api/v1/topics?search=read&limit=1"))["topics"]
    assert (listed["messages_in"], listed["log_bytes"]) == (3, load["log_bytes"])
    replicas = ok(http.get("/api/v1/topics/read/replicas"))["replicas"]
    assert [(one["partition"], one["log_end_offset"], one["lag"], one["is_leader"]) for one in replicas] == [
        (0, 0, 0, True),
        (1, 3, 0, True),
    ]
    assert replicas[1]["copies"][0]["log_bytes"] == load["log_bytes"]
    for route in ("replicas", "load", "consumers"):
        assert http.get(f"/api/v1/topics/missing/{route}")[0] == 404


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_events_show_a_change(broker: BrokerProcess, http: HttpClient) -> None:
    with http.http.stream("GET", "/api/v1/events?interval_ms=500") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = events(response.iter_lines())
        name, before = next(stream)
        assert name == "health"
        with Connection(broker.bootstrap) as connection:
            connection.create_topic("shown-at-once")
        assert next(stream)[0] == "load"
        assert any(after["topics"] > before["topics"] for name, after in stream if name == "health")


def test_events_are_for_a_limited_number_of_clients(start_broker: StartBroker) -> None:
    address = start_broker({"http.listener": "127.0.0.1:0"}).http
    client = httpx.Client(
        base_url=f"http://{address}", timeout=30, trust_env=False, limits=httpx.Limits(max_connections=STREAMS_MAX + 1)
    )
    responses, streams = [], []
    try:
        for _ in range(STREAMS_MAX):
            request = client.build_request("GET", "/api/v1/events?interval_ms=60000")
            responses.append(client.send(request, stream=True))
            streams.append(responses[-1].iter_lines())  # kept, because it closes the response with its end
            assert next(streams[-1]) == "event: health"
        refused = client.get("/api/v1/events")
        assert refused.status_code == 503
    finally:
        for response in responses:
            response.close()
        client.close()


PAGE = Path(__file__).resolve().parents[2] / "docs" / "http.md"


def test_the_limit_of_streams_is_documented() -> None:
    assert f"at most {STREAMS_MAX} clients" in PAGE.read_text()


def test_the_last_minutes_of_the_cluster(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("remembered", partitions=1)
    assert ok(http.get("/api/v1/history/topics/remembered"))["points"] == []
    producer = confluent_producer(broker.bootstrap)

    def produced() -> list[dict[str, Any]]:
        confluent_send(producer, "remembered", [Message(b"x" * 1000)])
        points: list[dict[str, Any]] = ok(http.get("/api/v1/history/load"))["points"]
        return [point for point in points if point["bytes_in"] and point["produce_p99_ms"] and point["requests"]]

    assert wait_until(produced, "a point with traffic")[0]["other_p99_ms"] is not None
    history = ok(http.get("/api/v1/history/load"))
    assert history["newest"]["brokers"][0]["messages_in"] > 0
    assert [point["time_ms"] for point in history["points"]] == sorted(
        {point["time_ms"] for point in history["points"]}
    )
    topic = "/api/v1/history/topics/remembered"
    wait_until(lambda: produced() and ok(http.get(topic))["points"], "points of a topic that was looked at")
    assert ok(http.get(topic))["newest"]["messages_in"] > 0
    assert http.get("/api/v1/history/topics/absent")[0] == 404
    assert http.get("/api/v1/history/groups/absent")[0] == 404


def test_samples_of_a_group_that_somebody_looks_at(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("sampled", partitions=1)
    confluent_send(confluent_producer(broker.bootstrap), "sampled", [Message(b"x")] * 5)
    consumer = confluent_consumer(broker.bootstrap, group_id="a/sampled group")
    consumer.commit(offsets=[TopicPartition("sampled", 0, 2)], asynchronous=False)
    consumer.close()
    assert ok(http.get("/api/v1/history/groups/a%2Fsampled%20group")) == {"points": []}

    async def sample() -> tuple[LagPoint, ...]:
        history = History()
        history.groups.look("a/sampled group", int(time.time() * 1000))
        history.groups.look("absent", int(time.time() * 1000))
        async with Cluster(broker.bootstrap) as cluster:
            await HistorySampler(history, cluster, SystemClock()).sample_groups()
        return history.groups.look("a/sampled group", 0)

    (point,) = asyncio.run(sample())
    assert point.lag == 3
    assert point.lag_ms is not None
