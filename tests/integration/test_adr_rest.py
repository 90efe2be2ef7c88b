"""ADR-0011 over REST, on a broker without the binary server."""

import base64
from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess
from http_client import HttpClient

from sskafka.records.partitioner import partition_for_key


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("adr-rest"), {"http.listener": "127.0.0.1:0", "num.partitions": 3})
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def produce(http: HttpClient, topic: str, data: bytes, key: str | None = None) -> tuple[int, int]:
    body = {"data": encoded(data)} if key is None else {"key": key, "data": encoded(data)}
    status, answer = http.post(f"/topics/{topic}/produce", body)
    assert (status, answer["error"]) == (200, None)
    assert answer.keys() == {"partition", "offset", "error"}
    return answer["partition"], answer["offset"]


def test_there_and_back(http: HttpClient, topic: str) -> None:
    partition = partition_for_key(b"k", 3)
    assert produce(http, topic, b"\x00\xff", "k") == (partition, 0)
    assert produce(http, topic, b"", "k") == (partition, 1)
    assert http.get(f"/topics/{topic}/consume?partition={partition}&offset=0&batchSize=1") == (
        200,
        {"messages": [{"offset": 0, "data": encoded(b"\x00\xff")}], "nextOffset": 1, "error": None},
    )
    assert http.get(f"/topics/{topic}/consume?partition={partition}&offset=1") == (
        200,
        {"messages": [{"offset": 1, "data": ""}], "nextOffset": 2, "error": None},
    )
    for offset in (2, 1000):
        empty = {"messages": [], "nextOffset": offset, "error": None}
        assert http.get(f"/topics/{topic}/consume?partition={partition}&offset={offset}") == (200, empty)
    assert http.post("/admin/flush", {}) == (204, None)


def test_messages_without_a_key_are_spread(http: HttpClient, topic: str) -> None:
    places = [produce(http, topic, b"x") for _ in range(9)]
    assert places == [(number % 3, number // 3) for number in range(9)]
    assert produce(http, topic, b"x", "") == (0, 3), "an empty key is none"


def test_without_a_partition_the_fullest_is_read_and_named(http: HttpClient, topic: str) -> None:
    for number in range(4):
        produce(http, topic, b"%d" % number, "k")
    full = partition_for_key(b"k", 3)
    status, answer = http.get(f"/topics/{topic}/consume?offset=2")
    assert (status, answer["partition"], answer["nextOffset"]) == (200, full, 4)
    assert [message["offset"] for message in answer["messages"]] == [2, 3]
    assert http.get(f"/topics/{topic}/consume?offset=50")[1]["partition"] == 0, "all are at their end"


def test_refusals(http: HttpClient, topic: str) -> None:
    assert http.get(f"/topics/{topic}/consume?partition=0") == (
        404,
        {"messages": [], "nextOffset": 0, "error": f"there is no topic {topic!r}"},
    )
    produce(http, topic, b"x")
    status, answer = http.get(f"/topics/{topic}/consume?partition=0&offset=-1")
    assert (status, answer["error"]) == (400, "the offset -1 is negative")
    status, answer = http.get(f"/topics/{topic}/consume?partition=3")
    assert status == 404
    assert "has no partition 3" in answer["error"]
    status, answer = http.post("/topics/no%20good/produce", {"data": ""})
    assert (status, answer["partition"], answer["offset"]) == (400, -1, -1)
    status, answer = http.post(f"/topics/{topic}/produce", {"data": encoded(b"x" * 2_000_000)})
    assert status == 400
    assert "bytes" in answer["error"]
    assert http.post(f"/topics/{topic}/produce", {"data": "?"})[0] == 422
    surrogate = http.http.post(f"/topics/{topic}/produce", content=b'{"data": "", "key": "\\ud800"}')
    assert surrogate.status_code in {400, 422}
