"""`sskafka group` against a broker with real consumers: lag, timeline, readers that commit nothing, reset, delete."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from broker_process import BrokerProcess
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from command_line import run_sskafka
from confluent_kafka import Consumer, TopicPartition
from group_fixtures import group_broker
from waiting import wait_until
from wire_connection import Connection

__all__ = ["group_broker"]

Run = Callable[..., Any]


@pytest.fixture
def numbers(group_broker: BrokerProcess, topic: str) -> str:
    with Connection(group_broker.bootstrap) as connection:
        connection.create_topic(topic, 2)
    producer = confluent_producer(group_broker.bootstrap)
    for partition in range(2):
        confluent_send(producer, topic, [Message(b"%d" % number) for number in range(10)], partition)
    return topic


@pytest.fixture
def group(group_broker: BrokerProcess) -> Run:
    """Runs a command of `sskafka group`; its JSON, or its text when it fails."""

    def call(*arguments: str, code: int = 0, as_json: bool = True) -> Any:
        form = ("--format", "json") if as_json else ()
        done = run_sskafka("group", *arguments, "-b", group_broker.bootstrap, *form)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if as_json and code == 0 else done.stdout + done.stderr

    return call


def member(broker: BrokerProcess, group_id: str, topic: str) -> Consumer:
    consumer = confluent_consumer(
        broker.bootstrap,
        group_id=group_id,
        auto_offset_reset="earliest",
        client_id="reader-1",
        enable_auto_commit=False,
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.1) is not None or bool(consumer.assignment()), "an assignment", TIMEOUT_S)
    return consumer


def test_lag_is_told_in_records_and_in_time(group_broker: BrokerProcess, numbers: str, group: Run) -> None:
    consumer = member(group_broker, numbers, numbers)
    consumer.commit(offsets=[TopicPartition(numbers, 0, 4), TopicPartition(numbers, 1, 10)], asynchronous=False)
    shown = group("describe", numbers)
    assert (shown["state"], shown["kind"], len(shown["members"])) == ("Stable", "classic", 1)
    lags = {item["partition"]: item for item in shown["partitions"]}
    assert (lags[0]["committed"], lags[0]["log_end"], lags[0]["lag"]) == (4, 10, 6)
    assert lags[0]["lag_ms"] > 0
    assert (lags[1]["lag"], lags[1]["lag_ms"]) == (0, 0)
    assert shown["members"][0]["client_id"] == "reader-1"
    text = group("describe", numbers, as_json=False)
    assert "6 records" in text
    assert any(listed["group_id"] == numbers for listed in group("list"))
    consumer.close()


def test_the_timeline_says_who_came_and_went_and_why(group_broker: BrokerProcess, numbers: str, group: Run) -> None:
    consumer = member(group_broker, numbers, numbers)
    consumer.close()
    events = group("timeline", numbers)
    kinds = [event["event"] for event in events]
    assert kinds.index("joined") < kinds.index("rebalance-completed") < kinds.index("left")
    assert next(event for event in events if event["event"] == "joined")["client_id"] == "reader-1"
    assert all(event["duration_ms"] >= 0 for event in events if event["event"] == "rebalance-completed")
    assert "rebalance-completed" in group("describe", numbers, "--timeline", as_json=False)


def test_readers_that_commit_nothing_have_a_lag_too(group_broker: BrokerProcess, numbers: str, group: Run) -> None:
    consumer = confluent_consumer(group_broker.bootstrap, group_id="-", client_id="spark-like")
    consumer.assign([TopicPartition(numbers, 0, 0)])
    wait_until(lambda: (found := consumer.poll(0.1)) is not None and found.offset() == 9, "the last record", TIMEOUT_S)

    def positions() -> dict[str, Any] | None:
        found = [item for item in group("readers", numbers) if item["client_id"] == "spark-like"]
        return found[0] if found and found[0]["fetch_lag"] == 0 else None

    shown = wait_until(positions, "a fetch behind the last record", TIMEOUT_S)
    assert (shown["partition"], shown["fetched"], shown["log_end"]) == (0, 10, 10)
    consumer.close()


def test_offsets_are_reset_only_when_told_to(group_broker: BrokerProcess, numbers: str, group: Run) -> None:
    consumer = member(group_broker, numbers, numbers)
    consumer.commit(offsets=[TopicPartition(numbers, 0, 4), TopicPartition(numbers, 1, 10)], asynchronous=False)
    assert "has 1 members" in group("reset-offsets", numbers, "--to", "start", code=1)
    consumer.close()
    plan = group("reset-offsets", numbers, "--shift-by", "-3")
    assert [(item["before"], item["after"]) for item in plan] == [(4, 1), (10, 7)]
    assert [item["committed"] for item in group("describe", numbers)["partitions"]] == [4, 10]
    group("reset-offsets", numbers, "--to", "start", "-t", f"{numbers}:1", "--execute")
    assert [item["committed"] for item in group("describe", numbers)["partitions"]] == [4, 0]
    assert "either --to or --shift-by" in group("reset-offsets", numbers, code=2)


def test_what_is_not_there_is_said_with_the_way_on(numbers: str, group: Run) -> None:
    assert "`sskafka group list`" in group("timeline", "no-such-group", code=1)
    assert "`sskafka group list`" in group("describe", "no-such-group", code=1)
    assert "there is no topic 'misspelled'" in group("readers", "misspelled", code=1)
    assert "use --to in place of --shift-by" in group("reset-offsets", "new", "--shift-by", "1", "-t", numbers, code=1)


def test_resets_that_make_no_sense_are_wrong_usage(numbers: str, group: Run) -> None:
    assert "is not TOPIC or TOPIC:0,1" in group("reset-offsets", "new", "--to", "start", "-t", f"{numbers}:x", code=2)
    assert "is a range" in group("reset-offsets", "new", "--to", "1:5", "-t", numbers, code=2)


def test_a_group_is_deleted_only_when_told_to(group_broker: BrokerProcess, numbers: str, group: Run) -> None:
    consumer = member(group_broker, numbers, numbers)
    consumer.commit(offsets=[TopicPartition(numbers, 0, 1)], asynchronous=False)
    consumer.close()
    assert "would be deleted" in group("delete", numbers, "--dry-run", as_json=False)
    assert "--yes" in group("delete", numbers, as_json=False, code=2)
    assert group("describe", numbers)["state"] == "Empty"
    assert numbers in [one["group"] for one in group("describe", f"{numbers[:-1]}?")]
    assert [one["group_id"] for one in group("list", f"*{numbers[1:]}")] == [numbers]
    assert "deleted" in group("delete", numbers, "--yes", as_json=False)
    assert "GROUP_ID_NOT_FOUND" in group("describe", numbers, code=1)
