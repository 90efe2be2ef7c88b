"""The property files that SSKafka writes, as Java's tools and kcat read them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import KCAT_SECONDS_MAX, JavaTools

import sskafka
from sskafka.model.properties import format_properties

PASSWORD = 'quo"ted \\ secret'


@pytest.fixture(scope="module")
def secure_broker() -> Iterator[sskafka.Broker]:
    with sskafka.Broker({"super.users": "User:admin"}, tls=True, sasl={"admin": PASSWORD}, acls=[]) as broker:
        yield broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_javas_tools_log_in(secure_broker: sskafka.Broker, java: JavaTools, tmp_path: Path, mechanism: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(format_properties(secure_broker.login("admin", mechanism).kafka()))
    at = ("--bootstrap-server", secure_broker.bootstrap_servers, "--command-config", str(file))
    topic = f"of-{mechanism.lower()}"
    java.run("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic, *at)
    assert topic in java.run("org.apache.kafka.tools.TopicCommand", "--list", *at).split()


def test_kcat_logs_in(secure_broker: sskafka.Broker, kcat_program: str, tmp_path: Path) -> None:
    file = tmp_path / "librdkafka.properties"
    properties = secure_broker.login("admin").librdkafka()
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))  # kcat has no escapes
    command = [kcat_program, "-F", str(file), "-L", "-m", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=KCAT_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
    assert secure_broker.bootstrap_servers in done.stdout
