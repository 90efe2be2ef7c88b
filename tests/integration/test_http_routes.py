"""Every route of the HTTP server, its statuses and bodies, on one real broker."""

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from broker_process import BrokerProcess
from confluent_kafka import Producer
from http_client import HttpClient

NO_SUCH_TOPIC = {"detail": "there is no topic nosuchtopic"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("http-broker")
    settings = {
        "http.listener": "127.0.0.1:0",
        "lab.api": "true",
        "metadata.log.dir": directory / "metadata",
        "log.dir.partition.base": 1,
    }
    broker = BrokerProcess(directory, settings)
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


@pytest.fixture
def topic(new_topic: Callable[[str], str]) -> str:
    """The lab's topics have no dashes."""
    return new_topic("t").replace("-", "_")


# ---- /healthcheck


def test_the_broker_is_up(http: HttpClient) -> None:
    assert http.get("/healthcheck") == (200, {"status": "up", "broker_id": 1, "leader_broker_id": 1})


# ---- /admin/v1/topics


def test_a_topic_is_created_once(http: HttpClient, topic: str) -> None:
    body = {"topic_name": topic, "partition_count": 2}
    partitions = [{"id": f"{topic}-1", "replica_brokers": ["1"]}, {"id": f"{topic}-2", "replica_brokers": ["1"]}]
    assert http.post("/admin/v1/topics", body) == (201, {"topic_name": topic, "partitions": partitions})
    assert http.post("/admin/v1/topics", body) == (409, {"detail": f"topic {topic} already exists"})


def test_topics_are_listed_in_the_order_of_their_making(http: HttpClient, new_topic: Callable[[str], str]) -> None:
    names = [new_topic(label).replace("-", "_") for label in ("zebra", "ape")]
    for name in names:
        http.create(name)
    status, answer = http.get("/admin/v1/topics")
    assert status == 200
    listed = [topic for topic in answer["topics"] if topic["topic_name"] in names]
    assert listed == [
        {"topic_name": name, "partitions": [{"id": f"{name}-1", "replica_brokers": ["1"]}]} for name in names
    ]


def test_a_deleted_topic_is_gone(http: HttpClient, topic: str) -> None:
    http.create(topic)
    http.produce(f"{topic}-1", "of the first life")
    assert http.delete(f"/admin/v1/topics/{topic}") == (204, None)
    assert http.delete(f"/admin/v1/topics/{topic}") == (404, {"detail": f"topic {topic} does not exist"})
    assert topic not in str(http.get("/admin/v1/topics"))
    gone = (404, {"detail": f"there is no topic {topic}"})
    assert http.post("/data/v1/consume", {"topic_partition": f"{topic}-1"}) == gone
    http.create(topic)
    assert http.consume(f"{topic}-1") == {"last_offset": -1, "records": []}


@pytest.mark.parametrize("name", ["", "with-dash", "white space", ".", "__consumer_offsets", "x" * 250])
def test_names_that_cannot_be(http: HttpClient, name: str) -> None:
    status, answer = http.post("/admin/v1/topics", {"topic_name": name, "partition_count": 1})
    assert status == 400
    assert answer["detail"]


# ---- /data/v1


def test_records_are_read_as_they_were_stored(http: HttpClient, topic: str) -> None:
    http.create(topic, 3)
    for number in (1, 2, 3):
        http.produce(f"{topic}-1", f"message {number}", f"msg{number}", "all")
    records = [{"offset": number, "key": f"msg{number + 1}", "payload": f"message {number + 1}"} for number in range(3)]
    assert http.consume(f"{topic}-1", max_batch_size=2) == {"last_offset": 1, "records": records[:2]}
    assert http.consume(f"{topic}-1", 1) == {"last_offset": 2, "records": records[2:]}
    assert http.consume(f"{topic}-1", 2) == {"last_offset": 2, "records": []}, "caught up"
    assert http.consume(f"{topic}-1", 99) == {"last_offset": 99, "records": []}, "beyond the end"
    assert http.consume(f"{topic}-2") == {"last_offset": -1, "records": []}, "empty"


@pytest.mark.parametrize("acks", ["all", "isr", "1", "0", 1, 0])
def test_every_kind_of_acknowledgement(http: HttpClient, topic: str, acks: object) -> None:
    http.create(topic)
    http.produce(f"{topic}-1", "payload", "key", acks)
    found = http.consume(f"{topic}-1", max_wait_ms=5000)
    assert [record["payload"] for record in found["records"]] == ["payload"]


def test_acks_is_all_when_nothing_is_said(http: HttpClient, topic: str) -> None:
    http.create(topic)
    assert http.post("/data/v1/produce", {"topic_partition": f"{topic}-1", "payload": "x"}) == (204, None)


def test_batches_keep_their_order(http: HttpClient, topic: str) -> None:
    http.create(topic)
    records = [{"key": None, "payload": str(number)} for number in range(5000)]
    body = {"topic_partition": f"{topic}-1", "records": records, "acks": "1"}
    assert http.post("/data/v1/produce", body) == (204, None)
    found = http.consume(f"{topic}-1", max_batch_size=10_000)
    assert [record["payload"] for record in found["records"]] == [str(number) for number in range(5000)]
    assert found["last_offset"] == 4999
    assert all(record["key"] is None for record in found["records"])


def test_bytes_that_are_no_text_travel_as_base64(http: HttpClient, broker: BrokerProcess, topic: str) -> None:
    http.create(topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, key=b"\xff", value=b"\x00\xff")
    producer.produce(topic, key="schlüssel".encode(), value=None)
    assert producer.flush(10) == 0
    body = {"payload": "AP8=", "payload_base64": True, "key": "plain"}
    assert http.post("/data/v1/produce", {"topic_partition": f"{topic}-1", **body}) == (204, None)
    assert http.consume(f"{topic}-1")["records"] == [
        {"offset": 0, "key": "/w==", "payload": "AP8=", "key_base64": True, "payload_base64": True},
        {"offset": 1, "key": "schlüssel", "payload": None},
        {"offset": 2, "key": "plain", "payload": "AP8=", "payload_base64": True},
    ]


def test_a_long_poll_returns_with_the_first_record(http: HttpClient, broker: BrokerProcess, topic: str) -> None:
    http.create(topic)
    found: list[object] = []

    def poll() -> None:
        waiting = HttpClient(broker.http)
        found.append(waiting.consume(f"{topic}-1", max_wait_ms=20_000))
        waiting.close()

    began = time.monotonic()
    thread = threading.Thread(target=poll)
    thread.start()
    http.produce(f"{topic}-1", "news")
    thread.join()
    assert found == [{"last_offset": 0, "records": [{"offset": 0, "key": None, "payload": "news"}]}]
    assert time.monotonic() - began < 15


def test_a_long_poll_without_records_ends_in_time(http: HttpClient, topic: str) -> None:
    http.create(topic)
    began = time.monotonic()
    assert http.consume(f"{topic}-1", max_wait_ms=300) == {"last_offset": -1, "records": []}
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("route", ["produce", "consume"])
def test_topics_and_partitions_that_do_not_exist(http: HttpClient, topic: str, route: str) -> None:
    http.create(topic, 2)

    def ask(partition: str) -> tuple[int, object]:
        return http.post(f"/data/v1/{route}", {"topic_partition": partition, "payload": "x", "acks": "1"})

    assert ask("nosuchtopic-1") == (404, NO_SUCH_TOPIC)
    assert ask(f"{topic}-3") == (404, {"detail": f"there is no partition {topic}-3: topic {topic} has 2"})
    assert ask(f"{topic}-0")[0] == ask(topic)[0] == ask("__consumer_offsets-1")[0] == 404


def test_a_record_that_is_too_large_is_refused(http: HttpClient, topic: str) -> None:
    http.create(topic)
    body = {"topic_partition": f"{topic}-1", "payload": "x" * 2_000_000, "acks": "1"}
    status, answer = http.post("/data/v1/produce", body)
    assert status == 413
    assert "bytes" in answer["detail"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/admin/v1/topics", {"topic_name": "t"}, "partition_count"),
        ("/admin/v1/topics", {"topic_name": "t", "partition_count": 0}, "partition_count"),
        ("/admin/v1/topics", {"topic_name": 5, "partition_count": 1}, "topic_name"),
        ("/admin/v1/topics", [], "body"),
        ("/data/v1/produce", {"topic_partition": "t-1"}, "payload or records"),
        ("/data/v1/produce", {"topic_partition": "t-1", "payload": "x", "records": [{"payload": "y"}]}, "either"),
        ("/data/v1/produce", {"topic_partition": "t-1", "payload": "x", "acks": "some"}, "acks"),
        ("/data/v1/produce", {"topic_partition": "t-1", "payload": "!", "payload_base64": True}, "base64"),
        ("/data/v1/produce", {"topic_partition": "t-1", "payload": "ä", "payload_base64": True}, "base64"),
        ("/data/v1/produce", {"topic_partition": "t-1", "payload": "\ud800"}, "not text"),
        ("/data/v1/produce", {"topic_partition": "t-1", "records": [{"payload": "x", "key": "\udfff"}]}, "not text"),
        ("/data/v1/produce", {"topic_partition": "t-1", "records": []}, "records"),
        ("/data/v1/consume", {"topic_partition": "t-1", "last_offset": -2}, "last_offset"),
        ("/data/v1/consume", {"topic_partition": "t-1", "max_batch_size": 0}, "max_batch_size"),
        ("/data/v1/consume", {"topic_partition": "t-1", "follower_broker_id": "me"}, "follower_broker_id"),
        ("/kraft/v1/voteRequest", {"candidate_id": "2"}, "candidate_epoch"),
        ("/kraft/v1/beginQuorumEpoch", {"leader_id": "\ud800", "leader_epoch": 1}, "broker id"),
    ],
)
def test_bodies_that_make_no_sense_are_explained(http: HttpClient, path: str, body: object, said: str) -> None:
    status, answer = http.post(path, body)
    assert status == 422
    assert said in answer["detail"]


LONE_SURROGATE = b'{"topic_name": "\\ud800", "partition_count": 1}'


@pytest.mark.parametrize("data", [b"{", b"", b"\xff", b"[" * 100_000, LONE_SURROGATE])
def test_bodies_that_are_no_json_are_refused(http: HttpClient, data: bytes) -> None:
    response = http.http.post("/admin/v1/topics", content=data)
    assert response.status_code in {400, 422}
    assert response.json()["detail"]


@pytest.mark.parametrize("content_type", ["application-json", "text/plain", None])
def test_bodies_are_json_whatever_the_content_type(http: HttpClient, topic: str, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    data = f'{{"topic_name": "{topic}", "partition_count": 1}}'.encode()
    assert http.http.post("/admin/v1/topics", content=data, headers=headers).status_code == 201


def test_pages_of_other_sites_and_other_names_are_refused(http: HttpClient) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        response = http.http.post("/data/v1/consume", json={"topic_partition": "t-1"}, headers=headers)
        assert response.status_code == 403
        assert not [name for name in response.headers if name.startswith("access-control")]


# ---- /kraft/v1 (votes are in test_http_votes: they unseat the leader)


def test_the_journal_is_read_from_where_the_caller_is(http: HttpClient, topic: str) -> None:
    http.create(topic, 2)
    assert http.delete(f"/admin/v1/topics/{topic}") == (204, None)
    whole = http.post("/kraft/v1/fetchMetadata", {"last_offset": -1, "last_offset_epoch": -1, "max_batch_size": 9999})
    records = whole[1]["records"]
    assert [record["offset"] for record in records] == list(range(len(records)))
    created, deleted = records[-2:]
    assert (created["action"], deleted["action"]) == ("create-topic", "delete-topic")
    partitions = [{"id": f"{topic}-{number}", "replica_brokers": ["1"]} for number in (1, 2)]
    assert created["payload"] == {"topic_name": topic, "partitions": partitions}
    assert deleted["payload"] == {"topic_name": topic}
    last = {"last_offset": created["offset"], "last_offset_epoch": created["epoch"], "follower_broker_id": "2"}
    assert http.post("/kraft/v1/fetchMetadata", last) == (200, {"records": [deleted]})
    first = {"last_offset": -1, "last_offset_epoch": -1, "max_batch_size": 1}
    assert http.post("/kraft/v1/fetchMetadata", first) == (200, {"records": records[:1]})
    beyond = {"last_offset": deleted["offset"] + 5, "last_offset_epoch": deleted["epoch"]}
    parted = {"diverging_epoch": deleted["epoch"], "diverging_offset": deleted["offset"], "records": []}
    assert http.post("/kraft/v1/fetchMetadata", beyond) == (200, parted)


# ---- documentation


def test_the_api_describes_itself(http: HttpClient) -> None:
    status, document = http.get("/openapi.json")
    assert status == 200
    assert {"/healthcheck", "/admin/v1/topics", "/data/v1/produce", "/data/v1/consume"} <= document["paths"].keys()
    assert "/kraft/v1/voteRequest" in document["paths"]


def test_the_docs_page_loads_nothing_from_elsewhere(http: HttpClient) -> None:
    page = http.http.get("/docs")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    assert "//" not in page.text.replace("// A body", ""), "no address of another host"
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_unknown_paths_and_methods(http: HttpClient) -> None:
    assert http.get("/nowhere") == (404, {"detail": "Not Found"})
    assert http.get("/data/v1/produce") == (405, {"detail": "Method Not Allowed"})


# ---- files


def test_partition_directories_and_journal_are_where_the_lab_looks(
    http: HttpClient, broker: BrokerProcess, topic: str
) -> None:
    http.create(topic, 2)
    http.produce(f"{topic}-2", "a record")
    log = broker.data_directory / f"{topic}-2" / "00000000000000000000.log"
    assert b"a record" in log.read_bytes()
    assert not (broker.data_directory / f"{topic}-0").exists()
    journal = (broker.directory / "metadata" / "__cluster_metadata.log").read_text()
    offset, epoch, action, payload = journal.splitlines()[-1].split(" ", 3)
    assert (action, topic in payload) == ("create-topic", True)
    assert int(offset) == len(journal.splitlines()) - 1
    assert int(epoch) > 0
    assert (broker.directory / "metadata" / "quorum-state").exists()


def test_clients_that_go_away_are_noticed(http: HttpClient, broker: BrokerProcess, topic: str) -> None:
    http.create(topic)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"http://{broker.http}/data/v1/consume",
            json={"topic_partition": f"{topic}-1", "max_wait_ms": 60_000},
            timeout=0.3,
            trust_env=False,
        )
    http.produce(f"{topic}-1", "still served")
    assert http.consume(f"{topic}-1")["last_offset"] == 0


def test_maximums_above_the_servers_own_are_lowered(http: HttpClient, topic: str) -> None:
    http.post("/admin/v1/topics", {"topic_name": topic, "partition_count": 1})
    http.post("/data/v1/produce", {"topic_partition": f"{topic}-1", "payload": "x"})
    found = http.consume(f"{topic}-1", max_batch_size=10**12, max_wait_ms=10**12)
    assert [record["payload"] for record in found["records"]] == ["x"]
