"""The routes under /api/v1 that show metadata and log files."""

from collections.abc import Iterator
from typing import Any

import pytest
from broker_process import BrokerProcess
from clients import Message, confluent_producer, confluent_send
from http_client import HttpClient, ok
from waiting import wait_until
from wire_connection import Connection

SETTINGS = {"http.listener": "127.0.0.1:0", "metadata.max.idle.interval.ms": 200}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("log-files"), SETTINGS)
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def test_the_tree_of_metadata(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("in-the-tree", partitions=2, retention_ms=1234567)
    root = ok(http.get("/api/v1/metadata"))
    assert {"brokers", "config", "controller"} <= {child["name"] for child in root["children"]}
    topic = ok(http.get("/api/v1/metadata?path=/brokers/topics/in-the-tree"))
    assert topic["data"]["partitions"] == {"0": [1], "1": [1]}
    state = ok(http.get("/api/v1/metadata?path=/brokers/topics/in-the-tree/partitions/1/state"))
    assert (state["data"]["leader"], state["children"]) == (1, [])
    settings = ok(http.get("/api/v1/metadata?path=/config/topics/in-the-tree"))
    assert settings["data"]["config"] == {"retention.ms": "1234567"}
    first = ok(http.get("/api/v1/metadata?path=/brokers&limit=1"))
    assert ([child["name"] for child in first["children"]], first["left_out"]) == (["ids"], 2)
    rest = ok(http.get("/api/v1/metadata?path=/brokers&after=ids"))
    assert [child["name"] for child in rest["children"]] == ["seqid", "topics"]
    assert http.get("/api/v1/metadata?path=/nowhere") == (404, {"detail": "Node does not exist: /nowhere"})


def test_the_newest_records_of_the_metadata_log(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("recorded", partitions=1)

    def newest() -> list[dict[str, Any]]:
        return ok(http.get("/api/v1/metadata/records?limit=500"))["records"]

    wait_until(lambda: any((one["data"] or {}).get("name") == "recorded" for one in newest()), "the topic's record")
    records = newest()
    assert [one["offset"] for one in records] == sorted((one["offset"] for one in records), reverse=True)
    assert "NO_OP_RECORD" not in {one["type"] for one in records}
    (change, *_) = [one for one in records if one["is_control"] and one["type"] == "LeaderChange"]
    assert change["data"]["leaderId"] == 1
    paged, before = [], 2**63 - 1
    while before is not None:
        page = ok(http.get(f"/api/v1/metadata/records?limit=3&before={before}"))
        paged += page["records"]
        before = page["next_before"]
    assert paged[-len(records) :] == records
    with_no_op = "/api/v1/metadata/records?limit=500&no_op=true"
    wait_until(lambda: "NO_OP_RECORD" in {one["type"] for one in ok(http.get(with_no_op))["records"]}, "a no-op record")


def test_segments_batches_and_index_entries(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("segmented", partitions=1, segment_bytes=20_000)
    producer = confluent_producer(broker.bootstrap, enable_idempotence=True, compression_type="lz4")
    for number in range(100):
        confluent_send(producer, "segmented", [Message(b"%d" % number * 300), Message(b"second")])
    path = "/api/v1/topics/segmented/partitions/0/segments"
    found = ok(http.get(path))
    assert (found["broker_id"], found["left_out"]) == (1, 0)
    assert found["directory"].endswith("segmented-0")
    assert [segment["is_active"] for segment in found["segments"]][:1] == [True]
    records, position, codecs = 0, 0, set()
    oldest = found["segments"][-1]["base_offset"]
    while position is not None:
        page = ok(http.get(f"{path}/{oldest}/batches?position={position}&limit=10"))
        assert page["problem"] is None
        codecs |= {batch["compression"] for batch in page["batches"]}
        assert all(batch["is_valid"] and batch["producer_id"] is not None for batch in page["batches"])
        records += sum(batch["records"] for batch in page["batches"])
        position = page["next_position"]
    assert "lz4" in codecs  # librdkafka leaves small batches uncompressed, so a page may have none
    newer = found["segments"][-2]["base_offset"] if len(found["segments"]) > 1 else 200
    assert records == newer - oldest
    assert ok(http.get(f"{path}/{oldest}/index?limit=500"))["next_entry"] is None


def test_what_this_broker_does_not_have(http: HttpClient) -> None:
    for path in (
        "absent/partitions/0/segments",
        "..%2F..%2Fetc/partitions/0/segments",
        "__cluster_metadata/partitions/0/segments/77/batches",
    ):
        status, answer = http.get(f"/api/v1/topics/{path}")
        assert status == 404, answer
    assert ok(http.get("/api/v1/topics/__cluster_metadata/partitions/0/segments"))["segments"]
