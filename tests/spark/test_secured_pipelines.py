"""Pipelines at a broker with TLS, SASL and ACLs, by the command line. Nothing that they write contains the password."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import sskafka
import sskafka.coordination.transaction_coordinator  # on the broker's loop, pytest would take long to rewrite it
from sskafka.model.properties import format_properties
from sskafka.pipelines.shipped.reading import committed_records

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 240
SPARK_LOG = "SSKAFKA_SPARK_LOG"
PASSWORD = "geheim-4711-nirgends"
ORDERS = 30
FILE = """\
name: secured
kafka: {kafka}
sources:
  orders: {{topic: orders, schema: 'id long not null, city string'}}
sinks:
  - parquet: {{path: out}}
  - topic: {{topic: copies, partitions: 1}}
transform:
  sql: select id, city from orders where not ({failing} and id = 7 and raise_error('an order too many') is null)
lineage: file:{lineage}
"""
FAILING = "failing.yaml"
LOUD = [
    word
    for setting in ("log.level=INFO", "eventLog.enabled=true", "eventLog.compress=false", "eventLog.dir=events")
    for word in ("--conf", f"spark.{setting}")
]
"""Spark says and records as much as it can."""
ALLOWED: list[dict[str, object]] = [
    {"operation": ["Read"], "topic": "orders"},
    {"operation": ["Create", "Read", "Write"], "topic": "copies"},
    {"operation": ["Create", "Read", "Write"], "topic": "secured-dead-letters"},
    {"operation": ["Create", "Read", "Write"], "topic": "sskafka-pipeline-events"},
    {"operation": ["Create", "Read", "Write"], "topic": "sskafka-spark-commits"},
    {"operation": ["Read", "Describe", "Delete"], "group": "secured", "resource_pattern_type": "prefixed"},
    {"operation": ["Write", "TwoPhaseCommit"], "transactional_id": "secured", "resource_pattern_type": "prefixed"},
]
"""What docs/security.md says that a pipeline needs."""


class Secured(NamedTuple):
    broker: Any
    directory: Path
    """Where the pipeline runs, and where everything is that it writes."""

    def run(self, *arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Run `sskafka pipeline`; keep what it says, the log of Spark and temporary files beside the rest."""
        number = len(list(self.directory.glob("said-*")))
        places = {SPARK_LOG: str(self.directory / f"spark-{number}.log"), "TMPDIR": str(self.directory)}
        command = [SSKAFKA, "pipeline", *arguments, "-b", self.broker.bootstrap_servers]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=self.directory,
            env=os.environ | places,
            check=False,
        )
        (self.directory / f"said-{number}").write_text(ended.stdout + ended.stderr)
        assert ended.returncode == exit_code, ended.stderr
        return ended


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    settings = {"super.users": "User:admin", "transaction.state.log.num.partitions": 1}
    acls = [{"allow_principal": "etl", **rule} for rule in ALLOWED]
    users = {"admin": "admin-secret", "etl": PASSWORD}
    with sskafka.Broker(settings, directory=str(directory / "broker"), tls=True, sasl=users, acls=acls) as broker:
        admin = AdminClient(broker.login("admin").librdkafka())
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(20)
        (directory / "events").mkdir()
        yield Secured(broker, directory)


def write_orders(secured: Secured) -> None:
    producer = Producer(secured.broker.login("admin").librdkafka())
    for number in range(ORDERS):
        producer.produce("orders", json.dumps({"id": number, "city": "Rome"}), str(number))
    producer.produce("orders", b"no JSON")
    assert producer.flush(30) == 0


def write_file(secured: Secured, name: str, kafka: dict[str, str]) -> None:
    fields = {"kafka": json.dumps(kafka), "lineage": secured.directory / "lineage.json"}
    failing = "true" if name == FAILING else "false"
    (secured.directory / name).write_text(FILE.format(failing=failing, **fields))


def files_with(directory: Path, text: str) -> list[str]:
    return [
        str(file.relative_to(directory))
        for file in sorted(directory.rglob("*"))
        if file.is_file() and text.encode() in file.read_bytes()
    ]


def test_a_bundled_pipeline_is_checked_at_a_secured_broker(secured: Secured, tmp_path: Path) -> None:
    client_file = tmp_path / "admin.properties"
    client_file.write_text(format_properties(secured.broker.login("admin").kafka()))
    checked = secured.run("check", "sessions", "-n", "100", "--command-config", str(client_file))
    assert "sessions: every row is as expected" in checked.stdout
    secured.run("generate", "sessions", "-n", "100", "--command-config", str(client_file))
    assert files_with(secured.directory, "admin-secret") == []


def test_a_secured_pipeline_tells_no_password(secured: Secured, tmp_path: Path) -> None:
    properties = secured.broker.login("etl").kafka()
    del properties["bootstrap.servers"]
    client_file = tmp_path / "client.properties"  # outside of the directory that is searched
    client_file.write_text(format_properties(properties))
    by_file = ("--command-config", str(client_file))
    write_orders(secured)
    write_file(secured, FAILING, {})
    secured.run("plan", FAILING, "-X", "default.api.timeout.ms=2000", exit_code=1)  # without a login
    waiting = json.loads(secured.run("plan", FAILING, "--format", "json", *by_file).stdout)["backlog"]
    assert [one["records"] for one in waiting] == [ORDERS + 1] * 2
    failed = secured.run("run", FAILING, "--once", *LOUD, *by_file, exit_code=1)
    assert "an order too many" in failed.stderr
    (secured.directory / FAILING).unlink()

    login = {f"sasl.{name}": text for name, text in (("username", "etl"), ("password", PASSWORD))}
    login |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    login["ssl.ca.location"] = properties["ssl.truststore.location"]
    write_file(secured, "secured.yaml", login)
    planned = secured.run("plan", "secured.yaml", "--spark", "--format", "json")
    assert [column["name"] for column in json.loads(planned.stdout)["schema"]] == ["id", "city"]
    secured.run("run", "secured.yaml", "--once", *LOUD)
    copies = [
        json.loads(value or b"") for _, value in committed_records(secured.broker.bootstrap_servers, "copies", login)
    ]
    assert sorted(copy["id"] for copy in copies) == list(range(ORDERS))
    status = json.loads(secured.run("status", "secured", "--history", "--format", "json", *by_file).stdout)
    assert [run["state"] for run in status] == ["done", "failed"]
    assert "no JSON" in secured.run("dlq", "secured.yaml").stdout
    filled = secured.run("run", "secured.yaml", "--from", "earliest", "--to", "latest", *LOUD)
    assert f"written {ORDERS} to parquet, {ORDERS} to topic" in filled.stderr
    assert "nothing to settle" in secured.run("recover", "secured.yaml").stderr
    assert "would" in secured.run("reset", "secured.yaml").stdout
    client_file.write_text(format_properties(properties).replace(PASSWORD, f"{PASSWORD}-wrong"))
    assert "invalid credentials" in secured.run("status", *by_file, exit_code=1).stderr
    (secured.directory / "secured.yaml").unlink()
    assert files_with(secured.directory, "SparkListenerApplicationStart")  # the events of Spark are there
    assert any(name.startswith("spark-") for name in files_with(secured.directory, " INFO "))  # and its log
    assert files_with(secured.directory, PASSWORD) == []
