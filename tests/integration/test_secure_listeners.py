"""Real clients with every security protocol and mechanism, and the errors of clients that fail to authenticate."""

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider
from secure_broker import MECHANISMS, PASSWORD, SecureBroker
from tests.support.certificates import Certificates
from waiting import wait_until

WAYS = [
    ("SSL", ""),
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
]
pytestmark = pytest.mark.usefixtures("_ours")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    started = SecureBroker(tmp_path_factory.mktemp("secure"))
    try:
        started.start()
        started.add_scram_users()
        yield started
    finally:
        started.close()


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_confluent_kafka(broker: SecureBroker, protocol: str, mechanism: str, topic: str) -> None:
    config = broker.librdkafka(protocol, mechanism)
    producer = Producer(config)
    producer.produce(topic, b"x" * 100_000)
    producer.produce(topic, b"small")
    assert producer.flush(20) == 0
    consumer = Consumer({**config, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(values) < 2 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    assert values == [b"x" * 100_000, b"small"]


def context_of(broker: SecureBroker) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(broker.certificates.ca))


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_aiokafka(broker: SecureBroker, protocol: str, mechanism: str, topic: str) -> None:
    class Tokens(AbstractTokenProvider):
        async def token(self) -> str:
            return broker.token()

    options: dict[str, Any] = {"bootstrap_servers": broker.at(protocol), "security_protocol": protocol}
    options["ssl_context"] = context_of(broker) if protocol.endswith("SSL") else None
    if mechanism == "OAUTHBEARER":
        options |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": Tokens()}
    elif mechanism:
        options |= {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}

    async def run() -> bytes | None:
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            record = await asyncio.wait_for(consumer.getone(), 20)
            value: bytes | None = record.value
            return value

    assert asyncio.run(run()) == b"hello"


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_kafka_python(broker: SecureBroker, protocol: str, mechanism: str, topic: str) -> None:
    class Tokens(KafkaPythonTokenProvider):
        def token(self) -> str:
            return broker.token()

    options: dict[str, Any] = {"bootstrap_servers": broker.at(protocol), "security_protocol": protocol}
    if protocol.endswith("SSL"):
        options["ssl_context"] = context_of(broker)
    if mechanism == "OAUTHBEARER":
        options |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": Tokens()}
    elif mechanism:
        options |= {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
    producer = KafkaProducer(**options)
    producer.send(topic, b"hello").get(20)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **options)
    assert next(iter(consumer)).value == b"hello"
    consumer.close()


def error_of(config: dict[str, Any]) -> str:
    """What librdkafka reports first when it cannot connect."""
    errors: list[str] = []
    client = AdminClient({**config, "error_cb": lambda error: errors.append(str(error))})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    wait_until(lambda: bool(client.poll(0.1) or errors), "no error was reported")
    return errors[0]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_an_authentication_error(broker: SecureBroker, mechanism: str) -> None:
    text = error_of(broker.librdkafka("SASL_SSL", mechanism, "wrong"))
    assert "_AUTHENTICATION" in text
    assert "invalid" in text.lower()


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1_000_000}, {"iss": "https://other.example"}, {"aud": "other"}, {"nbf": 4_000_000_000}, {"sub": None}],
    ids=str,
)
def test_wrong_tokens_are_refused(broker: SecureBroker, claims: dict[str, Any]) -> None:
    claims = {name: value for name, value in claims.items() if value is not None}
    token = broker.token(**claims) if claims else broker.token(sub="")
    config = broker.librdkafka("SASL_SSL", "OAUTHBEARER") | {"oauth_cb": lambda _: (token, time.time() + 600)}
    assert "_AUTHENTICATION" in error_of(config)


def test_unsecured_tokens_are_refused(broker: SecureBroker) -> None:
    import jwt

    token = jwt.encode({"sub": "alice", "iss": "https://issuer.example", "aud": "kafka", "exp": 2**31}, None, "none")
    config = broker.librdkafka("SASL_PLAINTEXT", "OAUTHBEARER") | {"oauth_cb": lambda _: (token, time.time() + 600)}
    assert "_AUTHENTICATION" in error_of(config)


def test_a_client_without_the_authority_does_not_connect(broker: SecureBroker, tmp_path: Path) -> None:
    other = Certificates(tmp_path)
    assert "certificate verify failed" in error_of(broker.librdkafka("SSL") | {"ssl.ca.location": str(other.ca)})


@pytest.mark.parametrize("is_expired", [True, False], ids=["expired", "of another authority"])
def test_bad_client_certificates_are_refused(broker: SecureBroker, tmp_path: Path, is_expired: bool) -> None:
    issuer = broker.certificates if is_expired else Certificates(tmp_path)
    path = str(issuer.issue(f"bad-{is_expired}.pem", "a@example.com", common_name="mallory", is_expired=is_expired))
    text = error_of(broker.librdkafka("SSL") | {"ssl.certificate.location": path, "ssl.key.location": path})
    assert ("certificate expired" if is_expired else "unknown ca") in text


def serial_of(address: str, ca: Path) -> Any:
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context(cafile=str(ca))
    import socket

    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname=host) as s,
    ):
        certificate: Any = s.getpeercert()
        return certificate["serialNumber"]


@pytest.mark.parametrize(
    ("listener", "protocol", "said"),
    [
        ("SSL", "PLAINTEXT", "a listener with TLS needs security.protocol"),
        ("PLAINTEXT", "SSL", "closed the connection during the TLS handshake; is it a listener with TLS"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does not accept PLAIN; it accepts no login"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "a listener that needs a login closes connections without one"),
    ],
)
def test_the_command_says_that_the_protocol_is_another_one(
    broker: SecureBroker, listener: str, protocol: str, said: str
) -> None:
    login = {"security.protocol": protocol, "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "p"}
    words = [f"-X{name}={value}" for name, value in {**login, "ssl.ca.location": broker.certificates.ca}.items()]
    command = [sys.executable, "-m", "sskafka", "topic", "list", "-b", broker.at(listener), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_replaced_certificate_file_is_used_without_a_restart(broker: SecureBroker) -> None:
    before = serial_of(broker.at("SSL"), broker.certificates.ca)
    broker.certificates.issue("server.pem", "localhost", "127.0.0.1", unit="server")
    wait_until(lambda: serial_of(broker.at("SSL"), broker.certificates.ca) != before, "the old certificate is served")


def alter(broker: SecureBroker, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.at("PLAINTEXT")})
    node = str(broker.settings.get("node.id", 1))
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, node, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def test_a_certificate_is_changed_by_alter_configs(broker: SecureBroker) -> None:
    before = serial_of(broker.at("SASL_SSL"), broker.certificates.ca)
    other = broker.certificates.issue("other-server.pem", "localhost", "127.0.0.1", unit="server")
    alter(broker, "listener.name.sasl_ssl.ssl.keystore.location", str(other))
    wait_until(
        lambda: serial_of(broker.at("SASL_SSL"), broker.certificates.ca) != before, "the old certificate is served"
    )
    with pytest.raises(KafkaException, match="cannot be read"):
        alter(broker, "listener.name.sasl_ssl.ssl.keystore.location", "/nowhere.pem")


def test_sessions_must_be_renewed(tmp_path: Path, new_topic: Callable[[str], str]) -> None:
    """librdkafka authenticates again within the session; records keep flowing over one connection."""
    broker = SecureBroker(tmp_path, {"connections.max.reauth.ms": 2000})
    try:
        broker.start()
        topic = new_topic("reauth")
        errors: list[str] = []
        config = broker.librdkafka("SASL_PLAINTEXT", "PLAIN") | {"error_cb": lambda error: errors.append(str(error))}
        producer = Producer(config)
        began = time.monotonic()
        while time.monotonic() - began < 5:
            producer.produce(topic, b"x")
            assert producer.flush(20) == 0
            producer.poll(0.2)
        assert errors == []
    finally:
        broker.close()
