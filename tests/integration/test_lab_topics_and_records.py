"""Exercises 4.1.1 to 4.1.4 and 4.2.1 to 4.2.9 of the lab but for its scripts, on five brokers that all run."""

from collections.abc import Iterator

import httpx
import pytest
from lab_cluster import REPLICAS, LabCluster, consume_body, partition_list, record_body, running_lab, topic_body
from waiting import wait_until

SEGMENT_BYTES = 20_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabCluster]:
    environment = {"MAX_SEGMENT_SIZE_BYTES": str(SEGMENT_BYTES)}
    with running_lab(tmp_path_factory.mktemp("lab"), environment=environment) as cluster:
        yield cluster


def records(*payloads: str, first_offset: int = 0) -> list[dict[str, object]]:
    return [
        {"offset": offset, "key": f"k{offset}", "payload": payload}
        for offset, payload in enumerate(payloads, first_offset)
    ]


def fill(lab: LabCluster, topic_partition: str, payloads: list[str]) -> None:
    body = {
        "topic_partition": topic_partition,
        "acks": "1",
        "records": [{"key": f"k{number}", "payload": payload} for number, payload in enumerate(payloads)],
    }
    assert lab.call("POST", lab.leader(), "/data/v1/produce", body).status == 204


# -- 4.1 control plane


def test_every_broker_is_up_and_knows_the_leader(lab: LabCluster) -> None:
    """Broker 1 leads unless the machine stands still for seconds: then the others elect a leader without it."""
    leader = lab.leader()
    answers = [lab.call("GET", node_id, "/healthcheck") for node_id in lab.node_ids]
    assert answers == [
        (200, {"status": "up", "broker_id": number, "leader_broker_id": leader}) for number in range(1, 6)
    ]


def test_the_leader_creates_a_topic_once(lab: LabCluster) -> None:
    body = topic_body("created", 3)
    created = lab.call("POST", lab.leader(), "/admin/v1/topics", body)
    assert created == (201, {"topic_name": "created", "partitions": partition_list("created", 3)})
    assert lab.call("POST", lab.leader(), "/admin/v1/topics", body) == (409, {"detail": "topic created already exists"})


@pytest.mark.parametrize("name", ["with-dash", "", "two words", "ä", "."])
def test_a_name_that_no_topic_may_have(lab: LabCluster, name: str) -> None:
    answer = lab.call("POST", lab.leader(), "/admin/v1/topics", topic_body(name, 1))
    assert answer.status == 400
    assert answer.body["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/admin/v1/topics", topic_body("refused", 1)),
        ("GET", "/admin/v1/topics", None),
        ("DELETE", "/admin/v1/topics/refused", None),
        ("POST", "/data/v1/produce", record_body("refused-1", "k", "p")),
        ("POST", "/data/v1/consume", consume_body("refused-1")),
        (
            "POST",
            "/kraft/v1/fetchMetadata",
            {"last_offset": -1, "last_offset_epoch": -1, "max_batch_size": 1, "follower_broker_id": "2"},
        ),
    ],
)
def test_whoever_does_not_lead_says_who_does(lab: LabCluster, method: str, path: str, body: object) -> None:
    leader = lab.leader()
    for follower in lab.others(leader):
        assert lab.call(method, follower, path, body) == (421, {"detail": f"leader is {leader}, can't accept"})


def test_every_broker_writes_topics_into_its_metadata_log(lab: LabCluster) -> None:
    lab.create("journaled", 2)
    assert lab.call("DELETE", lab.leader(), "/admin/v1/topics/journaled").status == 204
    for node_id in lab.node_ids:
        wait_until(lambda at=node_id: "delete-topic" in lab.journal(at)[-1], f"broker {node_id} has both lines")
        created, deleted = (line.split(" ", 3) for line in lab.journal(node_id)[-2:])
        assert created[2] == "create-topic"
        assert '"topic_name":"journaled","partition_count":2' in created[3]
        assert deleted[2:] == ["delete-topic", '{"topic_name":"journaled"}']
        assert int(deleted[0]) == int(created[0]) + 1
    assert len({tuple(lab.journal(node_id)) for node_id in lab.node_ids}) == 1


def test_the_leader_lists_topics(lab: LabCluster) -> None:
    for name, count in (("listed", 4), ("alsolisted", 1)):
        lab.create(name, count)
    status, body = lab.call("GET", lab.leader(), "/admin/v1/topics")
    assert status == 200
    listed = {topic["topic_name"]: topic["partitions"] for topic in body["topics"]}
    assert listed["listed"] == partition_list("listed", 4)
    assert listed["alsolisted"] == partition_list("alsolisted", 1)
    assert list(listed)[-2:] == ["listed", "alsolisted"], "in the order of their creation"
    assert list(body) == ["topics"]
    assert not any(name.startswith("__") for name in listed)


def test_a_deleted_topic_is_gone_and_can_be_made_again(lab: LabCluster) -> None:
    lab.create("deleted")
    lab.produce("deleted-1", "k", "lost with its topic")
    assert lab.call("DELETE", lab.leader(), "/admin/v1/topics/deleted") == (204, None)
    assert "deleted" not in lab.topic_names()
    assert lab.call("DELETE", lab.leader(), "/admin/v1/topics/deleted").status == 404
    assert lab.produce("deleted-1", "k", "p").status == 404
    lab.create("deleted")
    assert lab.payloads("deleted-1") == []


# -- 4.2 data plane


def test_produced_records_are_in_the_partition_log_in_order(lab: LabCluster) -> None:
    lab.create("produced", 3)
    for number, text in enumerate(("my new message!", "my second message!", "my third message!"), 1):
        assert lab.produce("produced-1", f"msg{number}", text) == (204, None)
    (log,) = lab.partition_files(lab.leader(), "produced-1", ".log")
    assert log.name == "00000000000000000000.log"
    lines = ["0 msg1 my new message!", "1 msg2 my second message!", "2 msg3 my third message!"]
    assert lab.stored_lines(lab.leader(), "produced-1") == lines
    assert lab.stored_lines(lab.leader(), "produced-2") == []


@pytest.mark.parametrize("topic_partition", ["unknown-1", "counted-3", "counted-0", "counted"])
def test_there_is_no_such_partition(lab: LabCluster, topic_partition: str) -> None:
    if "counted" not in lab.topic_names():
        lab.create("counted", 2)
    produced, consumed = lab.produce(topic_partition, "k", "p"), lab.consume(topic_partition)
    assert (produced.status, consumed.status) == (404, 404)
    assert produced.body["detail"]
    assert consumed.body["detail"]


def test_records_are_consumed_behind_an_offset_up_to_a_number(lab: LabCluster) -> None:
    lab.create("consumed", 2)
    for number, payload in enumerate(("first", "second", "third")):
        lab.produce("consumed-1", f"k{number}", payload)
    all_three = records("first", "second", "third")
    assert lab.consume("consumed-1", -1, 2) == (200, {"last_offset": 1, "records": all_three[:2]})
    assert lab.consume("consumed-1", 1, 2) == (200, {"last_offset": 2, "records": all_three[2:]})
    assert lab.consume("consumed-1") == (200, {"last_offset": 2, "records": all_three})
    assert lab.consume("consumed-1", 2) == (200, {"last_offset": 2, "records": []})
    assert lab.consume("consumed-2") == (200, {"last_offset": -1, "records": []})


def test_a_record_needs_no_key(lab: LabCluster) -> None:
    lab.create("keyless")
    body = {"topic_partition": "keyless-1", "payload": "this is my new message!", "acks": "all"}
    assert lab.call("POST", lab.leader(), "/data/v1/produce", body).status == 204
    assert lab.payloads("keyless-1") == ["this is my new message!"]


@pytest.mark.parametrize("acks", ["all", "1", "0", "isr"])
def test_records_are_read_after_every_kind_of_acknowledgement(lab: LabCluster, acks: str) -> None:
    lab.create(f"acks{acks}")
    assert lab.produce(f"acks{acks}-1", "k", "p", acks) == (204, None)
    wait_until(lambda: lab.payloads(f"acks{acks}-1") == ["p"], "the record is there")


def test_bodies_are_json_whatever_their_header_says(lab: LabCluster) -> None:
    lab.create("headers")
    for content_type in ("application-json", "application/x-www-form-urlencoded", "text/plain"):
        answer = httpx.post(
            f"http://{lab.http_address(lab.leader())}/data/v1/produce",
            content='{"topic_partition": "headers-1", "key": "k", "payload": "p", "acks": "1"}',
            headers={"Content-Type": content_type},
            trust_env=False,
        )
        assert answer.status_code == 204, content_type
    assert lab.payloads("headers-1") == ["p", "p", "p"]


def test_every_broker_has_a_copy_of_every_partition(lab: LabCluster) -> None:
    lab.create("copied", 3)
    for number in (1, 2, 3):
        lab.produce(f"copied-{number}", "key", f"for partition {number}")
    for node_id in lab.node_ids:  # acks=all has waited for all of them
        for number in (1, 2, 3):
            assert lab.stored_lines(node_id, f"copied-{number}") == [f"0 key for partition {number}"]


def test_a_long_log_has_segments_in_binary_with_an_index(lab: LabCluster) -> None:
    lab.create("segmented")
    payloads = [f"{number:04}" * 250 for number in range(120)]
    for begin in range(0, 120, 4):
        fill(lab, "segmented-1", payloads[begin : begin + 4])
    logs = lab.partition_files(lab.leader(), "segmented-1", ".log")
    first_offsets = [int(file.stem) for file in logs]
    assert len(logs) >= 4
    assert all(file.stat().st_size <= SEGMENT_BYTES for file in logs)
    for file, first_offset in zip(logs, first_offsets, strict=True):
        assert file.name == f"{first_offset:020}.log"
        head = file.read_bytes()[:17]
        assert (int.from_bytes(head[:8], "big"), head[16]) == (first_offset, 2), "offset first, then Kafka's format 2"
    assert all(file.with_suffix(".index").stat().st_size >= 8 for file in logs[:-1]), "entries of 8 bytes"
    for begin in (*first_offsets, 57, 119):
        answer = lab.consume("segmented-1", begin - 1, 1)
        assert answer.body["records"][0]["offset"] == begin
        assert answer.body["records"][0]["payload"] == payloads[begin]


def test_replicas_are_named_everywhere_as_text(lab: LabCluster) -> None:
    """Only /healthcheck has numbers."""
    lab.create("named")
    topics = lab.call("GET", lab.leader(), "/admin/v1/topics").body["topics"]
    assert {tuple(part["replica_brokers"]) for topic in topics for part in topic["partitions"]} == {tuple(REPLICAS)}
