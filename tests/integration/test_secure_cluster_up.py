"""`sskafka cluster up --secure`: one command to a cluster with TLS, SASL and ACLs."""

import json
import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import httpx
import pytest
from confluent_kafka.admin import AdminClient
from waiting import wait_until

from sskafka.model.properties import parse_properties

pytestmark = pytest.mark.long

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 60
STOP_TIMEOUT_S = 60


@contextmanager
def cluster_up(directory: Path, *options: str) -> Iterator[str]:
    """Yield the READY line; stop the cluster and check that it printed no password."""
    ports = ("--kafka-port", "0", "--http-port", "0")
    command = [SSKAFKA, "cluster", "up", "-n", "2", "--dir", str(directory), *ports, *options]
    log = directory.with_suffix(".stderr")
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("READY"), log.read_text()
            yield line
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=STOP_TIMEOUT_S)[0]
    told = log.read_text() + line + rest
    for file in directory.glob("broker-*/broker.log"):
        told += file.read_text()
    for secret in secrets_of(directory):
        assert secret not in told


def secrets_of(directory: Path) -> list[str]:
    admin = parse_properties((directory / "librdkafka.properties").read_text())["sasl.password"]
    jaas = parse_properties((directory / "broker-1" / "server.properties").read_text())
    broker = jaas["listener.name.sasl_ssl.plain.sasl.jaas.config"].split('password="')[1].split('"')[0]
    assert min(len(admin), len(broker)) > 20
    return [admin, broker]


def sskafka(*arguments: str, stdin: str = "", exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    ended = subprocess.run(
        [SSKAFKA, *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == exit_code, ended.stderr
    return ended


def test_one_command_makes_a_closed_cluster(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    client = directory / "client.properties"
    as_admin = ("--command-config", str(client))
    with cluster_up(directory, "--secure") as line:
        bootstrap = line.split("bootstrap=")[1].split()[0]
        assert parse_properties(client.read_text())["bootstrap.servers"] == bootstrap
        sskafka("topic", "create", "orders", "-p", "3", "-r", "2", *as_admin)
        sskafka("user", "add", "alice", "--password-file", "-", *as_admin, stdin="alice-secret\n")
        sskafka("acl", "add", "--allow-principal", "alice", "--producer", "--topic", "orders", *as_admin)
        librdkafka = parse_properties((directory / "librdkafka.properties").read_text())
        assert "orders" in AdminClient({**librdkafka, "log_level": 0}).list_topics(timeout=TIMEOUT_S).topics
        alice = {**librdkafka, "sasl.username": "alice", "sasl.password": "alice-secret"}
        assert produced(alice, "orders") is None
        refused = produced(alice, "payments")
        assert refused is not None
        assert refused.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
        addresses, ca = line.split("http=")[1].split()[0].split(","), directory / "certs" / "ca.pem"
        produce_over_http(addresses, ca)
        assert statuses_of_segments(addresses, ca) == {403}
        sskafka("acl", "add", "--allow-principal", "alice", "--operation", "describe", "--cluster", *as_admin)
        wait_until(lambda: statuses_of_segments(addresses, ca) == {200}, "every broker shows the files of both")
        assert sskafka("topic", "list", "-b", bootstrap, "-X", "request.timeout.ms=2000", exit_code=1).stderr
        private = [*directory.glob("broker-*/server.properties"), *directory.glob("certs/broker-*.pem")]
        for path in (*private, client, directory / "librdkafka.properties", directory / "certs" / "ca-key.pem"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    with cluster_up(directory):  # started again: the same users, without --secure
        topics = json.loads(sskafka("topic", "list", "--format", "json", *as_admin).stdout)
        assert [topic["name"] for topic in topics] == ["orders"]


def produce_over_http(addresses: list[str], ca: Path) -> None:
    """Through the HTTP server of the lab's leader, to partitions that either broker leads."""
    context = ssl.create_default_context(cafile=str(ca))

    def statuses(password: str) -> list[list[int]]:
        answers = []
        for address in addresses:
            bodies = [{"topic_partition": f"orders-{number}", "payload": "v", "acks": "all"} for number in (1, 2, 3)]
            login = ("alice", password)
            with httpx.Client(base_url=f"https://{address}", verify=context, auth=login, trust_env=False) as client:
                answers.append([client.post("/data/v1/produce", json=body, timeout=30).status_code for body in bodies])
        return sorted(answers)

    assert statuses("alice-secret") == [[204] * 3, [421] * 3]
    assert statuses("wrong") == [[401] * 3] * 2


def statuses_of_segments(addresses: list[str], ca: Path) -> set[int]:
    """Ask each broker for the log files of each broker, as Alice."""
    context, login = ssl.create_default_context(cafile=str(ca)), ("alice", "alice-secret")
    path = "/api/v1/topics/orders/partitions/0/segments?broker="
    found = set()
    for address in addresses:
        with httpx.Client(base_url=f"https://{address}", verify=context, auth=login, trust_env=False) as client:
            found |= {client.get(f"{path}{node_id}", timeout=30).status_code for node_id in (1, 2)}
    return found


def produced(properties: dict[str, str], topic: str) -> confluent_kafka.KafkaError | None:
    outcomes: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({**properties, "message.timeout.ms": 30_000, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return outcomes[0]
