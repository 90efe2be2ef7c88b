"""What the Java client says when a login, a certificate or an ACL ends while it works."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from benchmarks.apache_kafka import TOOL_SECONDS_MAX, KafkaLibs
from broker_process import BrokerProcess
from confluent_kafka import Producer
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, AdminClient, ResourceType
from confluent_kafka.admin import ResourcePatternType as Pattern
from programs import JavaTools
from tests.support.certificates import Certificates

import sskafka
from sskafka.model.properties import format_properties

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
def consuming(kafka_libs: KafkaLibs, tmp_path: Path) -> Iterator[Any]:
    """Starts the console consumer as a user; ends it with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(properties: dict[str, str]) -> "subprocess.Popen[str]":
        file = tmp_path / "client.properties"
        file.write_text(format_properties(properties))
        where = ("--bootstrap-server", properties["bootstrap.servers"], "--command-config", str(file))
        what = ("--topic", "orders", "--from-beginning", "--group", "g")
        command = kafka_libs.java(CONSUMER, *where, *what)
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_consumer_whose_acl_is_removed_ends_with_an_authorization_exception(consuming: Any) -> None:
    rules = [{"allow_principal": "alice", "consumer": True, "topic": "orders", "group": "g"}]
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    with sskafka.Broker({"super.users": "User:admin"}, tls=True, sasl=users, acls=rules) as broker:
        as_admin = {**broker.login("admin").librdkafka(), "log_level": 0}
        producer, admin = Producer(as_admin), AdminClient(as_admin)
        producer.produce("orders", b"first")
        assert producer.flush(30) == 0
        consumer = consuming(broker.login("alice").kafka())
        assert "first\n" in iter(consumer.stdout.readline, "")
        of_topic = AclBindingFilter(
            ResourceType.TOPIC,
            "orders",
            Pattern.LITERAL,
            "User:alice",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        (removed,) = admin.delete_acls([of_topic]).values()
        assert len(removed.result(30)) == 2
        producer.produce("orders", b"second")
        assert producer.flush(30) == 0
        said = consumer.communicate(timeout=TOOL_SECONDS_MAX)[0]
    assert "TopicAuthorizationException" in said
    assert "second" not in said


def test_an_expired_certificate_of_a_broker_is_an_ssl_handshake_exception(java: JavaTools, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    expired = certificates.issue("expired.pem", "localhost", is_expired=True)
    settings = {"listeners": "PLAINTEXT://localhost:0,SSL://localhost:0", **certificates.server_settings(expired)}
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n")
    broker = BrokerProcess(tmp_path / "broker", settings)
    try:
        broker.start()
        where = ("--bootstrap-server", broker.bootstrap.split(",")[1], "--command-config", str(file))
        assert "SSL handshake failed" in java.fail(TOPICS, *where, "--list")
    finally:
        broker.close()
