"""The routes under /api/v1 that show, search, download and store records."""

import io
import json
import socket
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import fastavro
import pytest
from broker_process import BrokerProcess
from clients import TIMEOUT_S, confluent_producer
from http_client import HttpClient, ok
from tests.support.protobuf_orders import descriptor_set, encoded
from waiting import wait_until
from wire_connection import Connection

from sskafka.servers.http.routes.record_scans import SCANS_MAX


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("browsed-broker")
    schemas = tmp_path_factory.mktemp("schemas")
    (schemas / "known-value.shop.Order.desc").write_bytes(descriptor_set().SerializeToString())
    (schemas / "known-key.avsc").write_text('"long"')
    process = BrokerProcess(directory, {"http.listener": "127.0.0.1:0", "console.schema.dir": schemas})
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def create(broker: BrokerProcess, topic: str, partitions: int = 1) -> str:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic, partitions=partitions)
    return topic


def fill(broker: BrokerProcess, topic: str, count: int, partitions: int = 1, **settings: Any) -> None:
    """Write JSON values {"n": 0}, {"n": 1}, ... whose timestamps grow, partition by turns."""
    producer = confluent_producer(broker.bootstrap, **settings)
    for number in range(count):
        producer.produce(
            topic,
            json.dumps({"n": number}),
            key=f"key-{number}",
            partition=number % partitions,
            timestamp=1_700_000_000_000 + number,
            headers=[("trace", b"t-%d" % number)],
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0


def numbers(page: dict[str, Any]) -> list[int]:
    return [json.loads(record["value"]["data"])["n"] for record in page["records"]]


def pages(http: HttpClient, path: str) -> Iterator[dict[str, Any]]:
    cursor = ""
    while cursor is not None:
        page = ok(http.get(f"{path}&cursor={cursor}"))
        yield page
        cursor = page["next_cursor"]


def events(http: HttpClient, path: str) -> list[tuple[str, Any]]:
    with http.http.stream("GET", path) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(parsed(response.iter_lines()))


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.fixture(scope="module")
def numbered(broker: BrokerProcess) -> str:
    topic = create(broker, "numbered", partitions=3)
    fill(broker, topic, 100, partitions=3)
    return f"/api/v1/topics/{topic}/records"


def test_newest_first_over_partitions(http: HttpClient, numbered: str) -> None:
    page = ok(http.get(f"{numbered}?limit=10"))
    assert numbers(page) == list(range(99, 89, -1))
    first = page["records"][0]
    assert (first["partition"], first["offset"], first["timestamp_type"]) == (0, 33, "CreateTime")
    assert (first["key"]["data"], first["value"]["encoding"]) == ("key-99", "json")
    assert [(one["name"], one["value"]["data"]) for one in first["headers"]] == [("trace", "t-99")]
    assert [one["end_offset"] for one in page["partitions"]] == [34, 33, 33]


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("limit", [1, 7, 500])
def test_pages_show_every_record_once(http: HttpClient, numbered: str, order: str, limit: int) -> None:
    if limit == 1:
        order += "&partitions=1"
    found = [number for page in pages(http, f"{numbered}?order={order}&limit={limit}") for number in numbers(page)]
    expected = list(range(1, 100, 3)) if limit == 1 else list(range(100))
    assert found == (expected[::-1] if order.startswith("newest") else expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("order=oldest&from=+2&partitions=0&limit=2", [6, 9]),
        ("order=oldest&from=-2&partitions=0", [96, 99]),
        ("order=oldest&from=30&partitions=1,2&limit=3", [91, 92, 94]),
        ("order=newest&from=2&partitions=0", [3, 0]),
        (f"order=oldest&from={quote('@1700000000095')}", [95, 96, 97, 98, 99]),
        (f"order=newest&limit=2&from={quote('@2023-11-14T22:13:20.050Z')}", [49, 48]),
        ("order=oldest&from=end", []),
        ("order=newest&from=start", []),
    ],
)
def test_positions(http: HttpClient, numbered: str, query: str, expected: list[int]) -> None:
    assert numbers(ok(http.get(f"{numbered}?{query.replace('+', '%2B')}"))) == expected


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("from=never", "not an offset"),
        ("from=1:5", "is a range"),
        ("cursor=x", "not the next_cursor"),
        ("partitions=77", "has no partition 77"),
        ("value_schema={", "value_schema: not JSON"),
        ('value_schema={"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}', "contains itself"),
        ("limit=0", "limit"),
        ("partitions=x", "partitions"),
    ],
)
def test_what_is_wrong_is_named(http: HttpClient, numbered: str, query: str, part: str) -> None:
    status, body = http.get(f"{numbered}?{quote(query, safe='=&')}")
    assert (status // 100, part in body["detail"]) == (4, True), body


def test_markers_and_aborted_transactions_leave_no_gaps_in_pages(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "with-markers")
    producer = confluent_producer(broker.bootstrap, transactional_id="browsed")
    producer.init_transactions(TIMEOUT_S)
    for number in range(12):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"n": number}))
        assert producer.flush(TIMEOUT_S) == 0
        (producer.abort_transaction if number % 3 == 0 else producer.commit_transaction)(TIMEOUT_S)
    path = f"/api/v1/topics/{topic}/records"
    assert sorted(numbers(ok(http.get(path)))) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    committed = [number for page in pages(http, f"{path}?committed=true&limit=3") for number in numbers(page)]
    assert committed == [11, 10, 8, 7, 5, 4, 2, 1]
    marker = ok(http.get(f"/api/v1/topics/{topic}/partitions/0/records/1"), 404)
    assert "is a marker" in marker["detail"]


HOSTILE = {
    "html": b"<script>alert(1)</script><img src=x onerror=alert(2)>",
    "bytes": b"\xff\xfe\x00\x01",
    "large": b"x" * 900_000,
    "bidi": "\u202eevil\u2066".encode(),
    "nested": b"[" * 100_000,
    "number": b'{"n": 9007199254740993}',
}


def test_hostile_values(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "hostile")
    producer = confluent_producer(broker.bootstrap)
    for name, value in HOSTILE.items():
        producer.produce(topic, value, key=name, headers=[("h", b"\xff"), ("h", None)])
    assert producer.flush(TIMEOUT_S) == 0
    shown = {one["key"]["data"]: one for one in ok(http.get(f"/api/v1/topics/{topic}/records"))["records"]}
    assert shown["html"]["value"]["data"] == HOSTILE["html"].decode()
    assert shown["bytes"]["value"]["data"] == b64encode(HOSTILE["bytes"]).decode()
    assert (len(shown["large"]["value"]["data"]), shown["large"]["value"]["size_bytes"]) == (4096, 900_000)
    assert shown["large"]["value"]["is_truncated"]
    assert shown["number"]["value"]["data"] == HOSTILE["number"].decode()
    assert [one["value"]["encoding"] for one in shown["html"]["headers"]] == ["base64", "null"]
    text = quote('value matches "a[ab]{40}c"')
    _, end = events(http, f"/api/v1/topics/{topic}/records/search?filter={text}")[-1]
    assert (end["looked_at"], end["matched"], end["cut"]) == (len(HOSTILE), 0, 1), "one value is too long"
    one = f"/api/v1/topics/{topic}/partitions/0/records/{shown['large']['offset']}"
    assert len(ok(http.get(one))["value"]["data"]) == 900_000
    raw = http.http.get(f"{one}/value")
    assert (raw.content, raw.headers["content-type"]) == (HOSTILE["large"], "application/octet-stream")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert raw.headers["x-content-type-options"] == "nosniff"


def test_a_record_that_is_not_there(http: HttpClient, numbered: str) -> None:
    detail = ok(http.get(f"{numbered.removesuffix('/records')}/partitions/0/records/9999"), 404)["detail"]
    assert "has the offsets from 0 to 33" in detail


SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_avro_by_a_schema_of_the_request(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "avro-orders")
    producer = confluent_producer(broker.bootstrap)
    for number in range(5):
        value = io.BytesIO()
        fastavro.schemaless_writer(value, SCHEMA, {"id": number})
        producer.produce(topic, b"\0\0\0\0\x01" * (number % 2) + value.getvalue())
    assert producer.flush(TIMEOUT_S) == 0
    path = f"/api/v1/topics/{topic}/records"
    schema = f"value_schema={quote(json.dumps(SCHEMA))}"
    values = [one["value"] for one in ok(http.get(f"{path}?order=oldest&{schema}"))["records"]]
    assert [(one["encoding"], json.loads(one["data"])) for one in values] == [("avro", {"id": n}) for n in range(5)]
    found = events(http, f"{path}/search?{schema}&filter={quote('value.id >= 3')}")
    assert [json.loads(data["value"]["data"])["id"] for name, data in found if name == "record"] == [3, 4]


def test_protobuf_by_a_schema_of_the_request(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "protobuf-orders")
    producer = confluent_producer(broker.bootstrap)
    for number in range(1, 6):
        producer.produce(topic, b"\0\0\0\0\x01\0" * (number % 2) + encoded(id=number, customer="Zoë"))
    producer.produce(topic, b"\x00\xff hostile")
    assert producer.flush(TIMEOUT_S) == 0
    path = f"/api/v1/topics/{topic}/records"
    as_stored = ok(http.get(f"{path}?order=oldest"))["records"][0]["value"]
    assert as_stored["encoding"] == "base64"
    files = b64encode(descriptor_set().SerializeToString()).decode()
    schema = f"value_schema={quote(json.dumps({'protobuf': files}))}"
    *values, hostile = (one["value"] for one in ok(http.get(f"{path}?order=oldest&{schema}"))["records"])
    shown = [(one["encoding"], json.loads(one["data"])) for one in values]
    assert shown == [("protobuf", {"id": n, "customer": "Zoë"}) for n in range(1, 6)]
    assert (hostile["encoding"], hostile["size_bytes"]) == ("base64", 10)
    assert "schema registry" in hostile["problem"]
    found = events(http, f"{path}/search?{schema}&filter={quote('value.id >= 4')}")
    assert [json.loads(data["value"]["data"])["id"] for name, data in found if name == "record"] == [4, 5]
    status, answer = http.get(f"{path}?value_schema={quote(json.dumps({'protobuf': files, 'message': 'No'}))}")
    assert (status, "value_schema: " in answer["detail"], "no message 'No'" in answer["detail"]) == (400, True, True)


def test_schemas_that_the_broker_has(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "known")
    producer = confluent_producer(broker.bootstrap)
    producer.produce(topic, encoded(id=7, lines=["a"]), key=b"\x0a")
    assert producer.flush(TIMEOUT_S) == 0
    (record,) = ok(http.get(f"/api/v1/topics/{topic}/records"))["records"]
    assert (record["key"]["encoding"], record["key"]["data"]) == ("avro", "5")
    assert record["value"]["encoding"] == "protobuf"
    assert json.loads(record["value"]["data"]) == {"id": 7, "lines": [{"sku": "a"}]}
    own_schema = quote(json.dumps("string"))
    (own,) = ok(http.get(f"/api/v1/topics/{topic}/records?value_schema={own_schema}"))["records"]
    assert own["value"]["problem"] is not None, "the schema of the request comes first"
    assert ok(http.get(f"/api/v1/topics/{topic}/schemas")) == {
        "key": {"encoding": "avro", "name": "", "problem": None},
        "value": {"encoding": "protobuf", "name": "shop.Order", "problem": None},
    }
    assert ok(http.get(f"/api/v1/topics/{create(broker, 'unknown')}/schemas")) == {"key": None, "value": None}
    assert http.get("/api/v1/topics/absent/schemas")[0] == 404


def search(http: HttpClient, path: str, text: str, more: str = "") -> tuple[list[int], dict[str, Any]]:
    found = events(http, f"{path}/search?filter={quote(text)}{more}")
    assert found[-1][0] == "end", found[-1]
    return sorted(json.loads(one["value"]["data"])["n"] for name, one in found if name == "record"), found[-1][1]


def test_search(http: HttpClient, numbered: str) -> None:
    found, end = search(http, numbered, 'value.n > 90 and headers.trace contains "9" and not key == "key-95"')
    assert found == [91, 92, 93, 94, 96, 97, 98, 99]
    assert (end["looked_at"], end["matched"], end["end"], end["left"]) == (100, 8, "end", 0)
    assert end["positions"] == {"0": 34, "1": 33, "2": 33}


@pytest.mark.parametrize(
    ("more", "reason", "looked_at"),
    [
        ("&max_matches=5", "max_matches", 5),
        ("&max_records=40", "max_records", 40),
        ("&from=end", "end", 0),
        ("&until=10", "end", 30),
        ("&from=5&until=10&partitions=0", "end", 5),
        ("&from=10&until=5", "end", 0),
    ],
)
def test_a_search_ends_with_its_budget(http: HttpClient, numbered: str, more: str, reason: str, looked_at: int) -> None:
    _, end = search(http, numbered, "value.n >= 0", more)
    assert (end["end"], end["looked_at"]) == (reason, looked_at)


def test_the_error_of_a_filter_names_the_column(http: HttpClient, numbered: str) -> None:
    for route in ("search", "download"):
        detail = ok(http.get(f"{numbered}/{route}?filter={quote('value.n = 5')}"), 400)["detail"]
        assert detail == "filter: column 9: unexpected '='; write =="
    checked = ok(http.get(f"/api/v1/filters/check?filter={quote('value.n =')}"))
    assert (checked["column"], ok(http.get("/api/v1/filters/check?filter=value"))["column"]) == (9, None)


def test_a_live_tail_shows_new_records_and_stops_with_its_client(broker: BrokerProcess, http: HttpClient) -> None:
    topic = create(broker, "tailed")
    path = f"/api/v1/topics/{topic}/records"
    fill(broker, topic, 3)
    with http.http.stream("GET", f"{path}/search?follow=true&filter={quote('value.n > 0')}") as response:
        stream = parsed(response.iter_lines())
        assert next(stream)[0] == "progress"  # it has found the end of the log
        fill(broker, topic, 3)
        matches = (data for name, data in stream if name == "record")
        assert [next(matches)["offset"] for _ in range(2)] == [4, 5]


def test_a_live_tail_leaves_out_what_nobody_could_read(broker: BrokerProcess, http: HttpClient) -> None:
    topic, count = create(broker, "fast"), 20_000
    with http.http.stream("GET", f"/api/v1/topics/{topic}/records/search?follow=true") as response:
        stream = parsed(response.iter_lines())
        assert next(stream)[0] == "progress"
        fill(broker, topic, count, linger_ms=5)
        shown = 0
        for name, data in stream:
            shown += name == "record"
            if name == "progress" and data["positions"] == {"0": count}:
                break
    assert data["looked_at"] - data["matched"] == 0
    assert shown + data["not_shown"] == count
    assert data["not_shown"] > data["matched"]


def test_scans_are_bounded_and_end_with_their_clients(broker: BrokerProcess) -> None:
    create(broker, "many-tails")
    path = "/api/v1/topics/many-tails/records/search?follow=true"
    clients, streams = [HttpClient(broker.http) for _ in range(SCANS_MAX + 1)], []
    try:
        for client in clients[:-1]:
            response = client.http.send(client.http.build_request("GET", path), stream=True)
            streams.append((response, response.iter_lines()))
            assert next(streams[-1][1]) == "event: progress"
        detail = ok(clients[-1].get(path), 503)["detail"]
        assert f"{SCANS_MAX} searches are running" in detail
        streams.pop()[0].close()
        clients[-2].close()
        for _ in range(100):
            with clients[-1].http.stream("GET", path) as response:
                if response.status_code == 200:
                    break
        assert response.status_code == 200
    finally:
        for response, _ in streams:
            response.close()
        for client in clients:
            client.close()


def test_clients_that_are_gone_at_once_leave_no_scan_behind(broker: BrokerProcess) -> None:
    create(broker, "abandoned")
    path = "/api/v1/topics/abandoned/records/search?follow=true"
    host, port = broker.http.split(":")
    for _ in range(3 * SCANS_MAX):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def all_have_ended() -> bool:
        clients = [HttpClient(broker.http) for _ in range(SCANS_MAX)]
        try:
            requests = [(client.http, client.http.build_request("GET", path)) for client in clients]
            return all(one.send(request, stream=True).status_code == 200 for one, request in requests)
        finally:
            for client in clients:
                client.close()

    wait_until(all_have_ended, "all scans have ended", TIMEOUT_S)


def test_download_as_json_lines(http: HttpClient, numbered: str) -> None:
    response = http.http.get(f"{numbered}/download?filter={quote('value.n < 50')}")
    assert response.headers["content-type"].startswith("application/x-ndjson")
    assert response.headers["content-disposition"] == 'attachment; filename="numbered.jsonl"'
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert sorted(json.loads(line["value"]["data"])["n"] for line in lines) == list(range(50))
    limited = http.http.get(f"{numbered}/download?limit=7")
    assert len(limited.text.splitlines()) == 7


def test_produce_and_send_again(broker: BrokerProcess, http: HttpClient) -> None:
    create(broker, "written", partitions=2)
    create(broker, "written-again")
    given = {
        "key": {"text": "Zoë"},
        "value": {"base64": b64encode(b"\xff\x00").decode()},
        "headers": [{"name": "a", "value": {"text": "1"}}, {"name": "b"}],
        "partition": 1,
        "timestamp_ms": 1_700_000_000_000,
    }
    stored = ok(http.post("/api/v1/topics/written/records", given), 201)
    assert stored == {"topic": "written", "partition": 1, "offset": 0, "timestamp_ms": 1_700_000_000_000}
    copied = ok(
        http.post(
            "/api/v1/topics/written/partitions/1/records/0/copies", {"topic": "written-again", "keep_timestamp": True}
        ),
        201,
    )
    assert (copied["topic"], copied["partition"], copied["offset"]) == ("written-again", 0, 0)
    before = ok(http.get("/api/v1/topics/written/partitions/1/records/0"))
    after = ok(http.get("/api/v1/topics/written-again/partitions/0/records/0"))
    assert {**after, "partition": 1} == before
    assert (before["key"]["data"], before["value"]["data"], before["timestamp_ms"]) == (
        "Zoë",
        "/wA=",
        1_700_000_000_000,
    )
    assert [(one["name"], one["value"]["encoding"]) for one in before["headers"]] == [("a", "text"), ("b", "null")]


def test_a_tombstone_must_be_meant(broker: BrokerProcess, http: HttpClient) -> None:
    create(broker, "with-tombstones")
    path = "/api/v1/topics/with-tombstones/records"
    assert http.post(path, {"key": {"text": "k"}})[0] == 422
    ok(http.post(path, {"key": {"text": "k"}, "value": None}), 201)
    (record,) = ok(http.get(path))["records"]
    assert record["value"]["encoding"] == "null"


@pytest.fixture(scope="module")
def picky(broker: BrokerProcess) -> str:
    return create(broker, "picky")


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"value": {"text": "a", "base64": "YQ=="}}, 422),
        ({"value": {"base64": "?"}}, 422),
        ({"value": {}}, 422),
        ({"value": {"text": "a"}, "partition": 9}, 404),
        ({"value": {"text": "x" * 1_100_000}}, 413),
    ],
)
def test_what_cannot_be_stored(http: HttpClient, picky: str, given: Any, status: int) -> None:
    assert http.post(f"/api/v1/topics/{picky}/records", given)[0] == status


def test_other_sites_store_nothing(broker: BrokerProcess, http: HttpClient) -> None:
    create(broker, "guarded")
    answer = http.http.post(
        "/api/v1/topics/guarded/records", json={"value": {"text": "a"}}, headers={"Origin": "http://evil.example"}
    )
    assert answer.status_code == 403
    assert ok(http.get("/api/v1/topics/guarded/records"))["records"] == []
