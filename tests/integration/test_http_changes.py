"""The routes under /api/v1 that move and delete groups, and show and abort transactions."""

from collections.abc import Iterator
from typing import Any

import pytest
from broker_process import BrokerProcess
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from group_fixtures import GROUP_SETTINGS
from http_client import HttpClient, ok
from waiting import wait_until
from wire_connection import Connection


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(
        tmp_path_factory.mktemp("changed-broker"), {**GROUP_SETTINGS, "http.listener": "127.0.0.1:0"}
    )
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def committed(http: HttpClient, group: str) -> list[tuple[str, int, int]]:
    found = ok(http.get(f"/api/v1/groups/{group}"))["partitions"]
    return [(one["topic"], one["partition"], one["committed"]) for one in found]


def make_group(broker: BrokerProcess, group: str, topic: str) -> None:
    """Make a group without members that has committed offset 4 of 10 records."""
    confluent_send(confluent_producer(broker.bootstrap), topic, [Message(b"%d" % n) for n in range(10)], 0)
    consumer = confluent_consumer(broker.bootstrap, group_id=group, auto_offset_reset="earliest")
    consumer.subscribe([topic])
    for _ in range(4):
        message = wait_until(lambda: consumer.poll(0.1), "a record", TIMEOUT_S)
    consumer.commit(message=message, asynchronous=False)
    consumer.close()


def test_a_reset_is_a_plan_until_it_is_executed(broker: BrokerProcess, http: HttpClient) -> None:
    make_group(broker, "moved/1", "moved-topic")  # a slash is part of the id
    path = "/api/v1/groups/moved%2F1/offsets"
    plan = ok(http.post(path, {"to": "start"}))
    moved = [{"topic": "moved-topic", "partition": 0, "before": 4, "after": 0}]
    assert plan == {"executed": False, "partitions": moved}
    assert committed(http, "moved%2F1") == [("moved-topic", 0, 4)]
    assert ok(http.post(path, {"shift_by": -3, "execute": True}))["partitions"][0]["after"] == 1
    assert committed(http, "moved%2F1") == [("moved-topic", 0, 1)]
    assert ok(http.post(path, {"to": "99999", "topics": ["moved-topic:0"], "execute": True}))["executed"]
    assert committed(http, "moved%2F1") == [("moved-topic", 0, 10)]


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        ({}, 422, "either to or shift_by"),
        ({"to": "start", "shift_by": 1}, 422, "either to or shift_by"),
        ({"to": "never"}, 400, "not an offset"),
        ({"to": "1:2"}, 400, "is a range"),
        ({"to": "start", "topics": ["x:y"]}, 400, "is not TOPIC or TOPIC:0,1"),
        ({"to": "start", "topics": ["unknown-topic"]}, 404, "no topic"),
        ({"to": "start"}, 400, "has committed nothing"),
    ],
)
def test_resets_that_make_no_sense(http: HttpClient, body: Any, status: int, part: str) -> None:
    detail = ok(http.post("/api/v1/groups/without-offsets/offsets", body), status)["detail"]
    assert part in detail


def test_a_group_with_members_is_neither_moved_nor_deleted(broker: BrokerProcess, http: HttpClient) -> None:
    make_group(broker, "busy", "busy-topic")
    consumer = confluent_consumer(broker.bootstrap, group_id="busy")
    consumer.subscribe(["busy-topic"])
    wait_until(lambda: consumer.poll(0.1), "a record", TIMEOUT_S)
    for answer in (http.post("/api/v1/groups/busy/offsets", {"to": "end"}), http.delete("/api/v1/groups/busy")):
        assert "has 1 members" in ok(answer, 409)["detail"]
    timeline = ok(http.get("/api/v1/groups/busy/timeline"))
    assert timeline == ok(http.get("/groups/v1/groups/busy/timeline"))
    assert {"joined"} <= {event["event"] for event in timeline["events"]}
    consumer.close()
    ok(http.delete("/api/v1/groups/busy"), 204)
    ok(http.get("/api/v1/groups/busy"), 404)
    ok(http.delete("/api/v1/groups/busy"), 404)


def test_an_open_transaction_is_shown_with_its_age_and_aborted(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("in-transaction", partitions=2)
    name = "shop/orders 1"  # a slash is part of the id, not of the path
    producer = confluent_producer(broker.bootstrap, transactional_id=name)
    producer.init_transactions(TIMEOUT_S)
    assert ok(http.get("/api/v1/transactions?open=true"))["transactions"] == []
    producer.begin_transaction()
    producer.produce("in-transaction", b"open", partition=1)
    assert producer.flush(TIMEOUT_S) == 0
    (shown,) = ok(http.get("/api/v1/transactions?open=true&search=shop"))["transactions"]
    assert (shown["transactional_id"], shown["state"], shown["partitions"]) == (name, "Ongoing", ["in-transaction-1"])
    assert 0 <= shown["open_for_ms"] < 60_000
    assert shown["timeout_ms"] == 60_000
    details = ok(http.get("/api/v1/transactions/shop%2Forders%201"))
    assert (details["producer_id"], details["coordinator"]) == (shown["producer_id"], 1)
    (writer,) = ok(http.get("/api/v1/topics/in-transaction/partitions/1/producers"))["producers"]
    assert (writer["producer_id"], writer["transaction_start_offset"]) == (shown["producer_id"], 0)
    aborted = ok(http.post("/api/v1/transactions/shop%2Forders%201/abort", None))
    assert aborted["fenced_below_epoch"] > writer["producer_epoch"]
    assert ok(http.get("/api/v1/transactions?open=true"))["transactions"] == []
    path = "/api/v1/topics/in-transaction/records?committed=true"
    assert ok(http.get(path))["records"] == []


def test_a_hanging_transaction_is_aborted_in_its_partition(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("hanging")
    producer = confluent_producer(broker.bootstrap, transactional_id="hanger")
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("hanging", b"open")
    assert producer.flush(TIMEOUT_S) == 0
    path = "/api/v1/topics/hanging/partitions/0/producers"
    assert "has no open transaction" in ok(http.post(f"{path}/abort", {"start_offset": 77}), 409)["detail"]
    ok(http.post(f"{path}/abort", {"start_offset": 0}))
    (writer,) = ok(http.get(path))["producers"]
    assert writer["transaction_start_offset"] is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/api/v1/transactions/nope"),
        ("post", "/api/v1/transactions/nope/abort"),
        ("get", "/api/v1/topics/nope/partitions/0/producers"),
        ("get", "/api/v1/topics/nope/records"),
        ("get", "/api/v1/topics/nope/records/search"),
        ("get", "/api/v1/topics/nope/records/download"),
    ],
)
def test_what_does_not_exist_is_not_found(http: HttpClient, method: str, path: str) -> None:
    answer = http.get(path) if method == "get" else http.post(path, {})
    assert "nope" in ok(answer, 404)["detail"]
