"""`sskafka top` while somebody writes and reads."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.testing import CliRunner
from waiting import wait_until

import sskafka
from sskafka.cli.commands import app

BUSY_WITHIN_S = 60
"""How long the group may take to join and commit on a busy machine."""


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

    def last_rates() -> dict[str, dict[str, dict[str, Any]]]:
        found = CliRunner().invoke(app, [*command, "1", "--iterations", "2", "--output", "jsonl"])
        assert found.exit_code == 0, found.stderr
        assert len(found.stdout.splitlines()) == 2
        last = json.loads(found.stdout.splitlines()[-1])
        return {
            "topics": {rate["topic"]: rate for rate in last["topics"]},
            "groups": {rate["name"]: rate for rate in last["groups"]},
            "clients": {rate["name"]: rate for rate in last["clients"]},
        }

    def everybody_is_busy() -> bool:
        rates = last_rates()
        orders, billing = (rates[kind].get(name, {}) for kind, name in (("topics", "orders"), ("groups", "billing")))
        records_per_s = orders.get("records_per_s", 0)
        has_bytes = orders.get("bytes_per_s", 0) >= 250 * records_per_s > 0  # on a busy machine one is counted later
        return has_bytes and billing.get("records_per_s", 0) > 0 and "reader" in rates["clients"]

    with traffic(sskafka_broker.bootstrap_servers):
        wait_until(everybody_is_busy, "the topic, the group and the client have rates", BUSY_WITHIN_S)
        shown = CliRunner().invoke(app, [*command, "0.5", "--iterations", "1"])
    assert shown.stdout.splitlines()[1].split() == ["TOPIC", "RECORDS/S", "BYTES/S"]
