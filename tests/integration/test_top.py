"""`sskafka top` while somebody writes and reads."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from typer.testing import CliRunner

import sskafka
from sskafka.cli.commands import app


@contextmanager
def traffic(bootstrap: str) -> Iterator[None]:
    """A producer and a member of a group, on a thread each."""
    ended = threading.Event()

    def write() -> None:
        with sskafka.Producer(bootstrap) as producer:
            while not ended.is_set():
                producer.send("orders", "key", "x" * 1000)

    def read() -> None:
        with sskafka.Consumer(bootstrap, group_id="billing", client_id="reader") as consumer:
            consumer.subscribe("orders")
            while not ended.is_set():
                consumer.poll(100, timeout_ms=100)
                consumer.commit()

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_rates_of_topics_groups_and_clients(sskafka_broker: sskafka.Broker) -> None:
    sskafka_broker.create_topic("orders")
    command = ["top", "-b", sskafka_broker.bootstrap_servers, "--interval"]
    with traffic(sskafka_broker.bootstrap_servers):
        found = CliRunner().invoke(app, [*command, "2", "--iterations", "3", "--output", "jsonl"])
        shown = CliRunner().invoke(app, [*command, "0.5", "--iterations", "1"])
    assert found.exit_code == 0, found.stderr
    assert len(found.stdout.splitlines()) == 3
    last = json.loads(found.stdout.splitlines()[-1])
    orders = next(rate for rate in last["topics"] if rate["topic"] == "orders")
    assert orders["records_per_s"] > 0
    assert orders["bytes_per_s"] > 500 * orders["records_per_s"] * 0.5
    assert next(rate for rate in last["groups"] if rate["name"] == "billing")["records_per_s"] > 0
    assert any(rate["name"] == "reader" for rate in last["clients"])
    assert shown.stdout.splitlines()[1].split() == ["TOPIC", "RECORDS/S", "BYTES/S"]
