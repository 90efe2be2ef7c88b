"""Shell completion asks the cluster for the names of topics, groups and brokers."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

import sskafka
from sskafka.cli.commands import app


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with sskafka.Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("bills")
        broker.produce("orders", "3 apples")
        with sskafka.Consumer(broker.bootstrap_servers, group_id="billing") as consumer:
            consumer.subscribe("orders")
            assert consumer.poll(1, timeout_ms=10_000)
            consumer.commit()
        yield broker.bootstrap_servers


def completed(bootstrap: str, words: str) -> list[str]:
    environment = {
        "_SSKAFKA_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "SSKAFKA_BOOTSTRAP": bootstrap,
    }
    return CliRunner().invoke(app, [], env=environment, prog_name="sskafka").stdout.split()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("sskafka topi", ["topic"]),
        ("sskafka topic describe or", ["orders"]),
        ("sskafka topic delete b", ["bills"]),
        ("sskafka group describe b", ["billing"]),
        ("sskafka broker drain ", ["1"]),
        ("sskafka config describe --topic b", ["bills"]),
        ("sskafka config describe --group b", ["billing"]),
        ("sskafka config describe --broker ", ["1"]),
        ("sskafka config get retention.m", ["retention.ms"]),
        ("sskafka topic describe x", []),
    ],
)
def test_names_are_completed(bootstrap: str, words: str, names: list[str]) -> None:
    assert completed(bootstrap, words) == names


def test_without_a_cluster_nothing_is_completed_and_nothing_printed() -> None:
    assert completed("127.0.0.1:1", "sskafka topic describe or") == []
