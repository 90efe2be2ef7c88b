"""`pipeline dlq`: looking at dead letters and sending them back."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka import Broker
from sskafka.cli.commands import app
from sskafka.client.cluster import Cluster
from sskafka.client.producer import ProducerEngine
from sskafka.pipelines.shipped.reading import committed_records

FILE = "name: orders\nsources:\n  a: {topic: orders, schema: id long}\nsinks: [{console: {}}]\n"
LETTERS = 3


async def bury(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster, ProducerEngine(cluster) as producer:
        await (await producer.send("orders", b"alive"))
        for number in range(LETTERS):
            where = {"topic": "orders", "partition": "0", "offset": str(number), "error": "the value is not JSON"}
            headers = [(f"dlq.{name}", value.encode()) for name, value in where.items()]
            await (await producer.send("orders-dead-letters", f"v{number}".encode(), key=b"k", headers=headers))


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({"offsets.topic.num.partitions": 1}) as broker:
        asyncio.run(bury(broker.bootstrap_servers))
        yield broker.bootstrap_servers


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "orders.yaml"
    path.write_text(FILE)
    return str(path)


def dlq(*arguments: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["pipeline", "dlq", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_letters_are_shown_then_sent_back_each_once(bootstrap: str, file: str) -> None:
    shown, talk = dlq(file, "-n", "2", "-b", bootstrap)
    assert shown.splitlines()[1].split()[:2] == ["orders-0", "0"]
    assert "there are more: -n 0 shows all" in talk
    letters = [json.loads(line) for line in dlq(file, "--format", "json", "-b", bootstrap)[0].splitlines()]
    assert [(one["offset"], one["error"], one["key"], one["value"]) for one in letters] == [
        (number, "the value is not JSON", "k", f"v{number}") for number in range(LETTERS)
    ]

    talk = dlq(file, "--replay", "-n", "2", "-b", bootstrap)[1]
    assert talk.splitlines() == ["2 records were sent back", "more are waiting: -n 0 sends all"]
    talk = dlq(file, "--replay", "-b", bootstrap)[1]
    assert talk.splitlines() == ["1 records were sent back", "none is left"]
    records = list(committed_records(bootstrap, "orders"))
    assert sorted(records, key=str) == sorted(
        [(None, b"alive"), *((b"k", f"v{n}".encode()) for n in range(3))], key=str
    )
    assert len(dlq(file, "--all", "--format", "json", "-b", bootstrap)[0].splitlines()) == LETTERS
    assert len(dlq(file, "-b", bootstrap)[0].splitlines()) == 1, "nothing waits: the heading alone"


def test_a_pipeline_that_has_none_yet(bootstrap: str, file: str) -> None:
    assert dlq(file, "--name", "another", "-b", bootstrap)[0].splitlines() == ["FROM  OFFSET  ERROR  VALUE"]
