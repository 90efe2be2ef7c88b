"""The `sskafka transaction` commands as users run them."""

import json
from subprocess import CompletedProcess

import pytest
from broker_process import StartBroker
from command_line import run_sskafka
from transaction_wire import FIRST, WireProducer, described, stable_end, wait_for_state
from wire_connection import Connection

from sskafka.model.errors import ErrorCode


def sskafka(bootstrap: str, *arguments: str, exit_code: int = 0) -> CompletedProcess[str]:
    ended = run_sskafka("transaction", *arguments, "-b", bootstrap)
    assert ended.returncode == exit_code, ended.stderr
    return ended


def test_transactions_are_listed_described_and_aborted(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)
    producer = WireProducer(connection, topic).initialize()
    producer.write(topic, b"v", partition=1)
    listed = sskafka(bootstrap, "list", "--state", "Ongoing").stdout
    assert listed.split()[:4] == ["TRANSACTIONAL-ID", "PRODUCER-ID", "STATE", "COORDINATOR"]
    assert [topic, str(producer.producer_id), "Ongoing", "1"] in [line.split() for line in listed.splitlines()]
    found = json.loads(sskafka(bootstrap, "list", "--format", "json").stdout)
    assert topic in [item["transactional_id"] for item in found]
    shown = json.loads(sskafka(bootstrap, "describe", topic, "--format", "json").stdout)
    assert (shown["state"], shown["partitions"], shown["producer_epoch"]) == ("Ongoing", [f"{topic}-1"], 0)
    assert shown["open_for_ms"] >= 0
    assert "fenced" in sskafka(bootstrap, "abort", topic).stderr
    assert producer.end() is ErrorCode.PRODUCER_FENCED
    assert described(connection, topic).transaction_state == "Empty"
    text = sskafka(bootstrap, "describe", topic).stdout
    assert "STATE             Empty" in text


def test_what_is_not_there_is_not_made(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    WireProducer(connection, topic).initialize()
    assert f"{topic}-other" in sskafka(bootstrap, "abort", f"{topic}-other", exit_code=1).stderr
    assert described(connection, f"{topic}-other").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    failed = sskafka(bootstrap, "abort", "--topic", topic, "--start-offset", "5", exit_code=1)
    assert "offset 5" in failed.stderr


@pytest.mark.parametrize("arguments", [(), ("id", "--topic", "t", "--start-offset", "0"), ("--topic", "t")])
def test_aborting_needs_either_an_id_or_a_place(bootstrap: str, arguments: tuple[str, ...]) -> None:
    sskafka(bootstrap, "abort", *arguments, exit_code=2)


def test_a_hanging_transaction_is_aborted_where_it_hangs(start_broker: StartBroker) -> None:
    settings = {
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": 1,
        "offsets.topic.num.partitions": 1,
    }
    broker = start_broker(settings)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        producer = WireProducer(connection, "pay", FIRST).initialize()
        assert producer.try_write("orders", b"hanging") is ErrorCode.NONE
        wait_for_state(connection, "pay", "Empty")
        assert stable_end(connection, "orders") == 0
        told = sskafka(broker.bootstrap, "abort", "--topic", "orders", "--start-offset", "0").stderr
        assert f"producer {producer.producer_id} in orders-0" in told
        assert stable_end(connection, "orders") == 2
