"""`sskafka.Broker` with TLS, users and ACLs, and the properties that it gives to clients of each make."""

import asyncio
from typing import Any

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaProducer

import sskafka

pytestmark = pytest.mark.usefixtures("_ours")
USERS = {"alice": 'se"cr\\et', "bob": "other"}
WRITER = {"allow_principal": "alice", "producer": True, "topic": "orders"}
TIMEOUT_S = 20


def produce(properties: dict[str, Any], topic: str) -> confluent_kafka.KafkaError | None:
    """Produce one record with confluent-kafka; return its error."""
    outcomes: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({**properties, "message.timeout.ms": 15_000, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return outcomes[0]


async def aiokafka_produces(options: dict[str, Any]) -> int:
    async with AIOKafkaProducer(**options) as producer:
        return (await producer.send_and_wait("orders", b"v")).offset


def test_users_log_in_with_every_client_and_may_do_what_their_acls_say() -> None:
    with sskafka.Broker(tls=True, sasl=USERS, acls=[WRITER]) as broker:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert produce(broker.login("alice", mechanism).librdkafka(), "orders") is None
        assert asyncio.run(aiokafka_produces(broker.login("alice").aiokafka())) == 3
        producer = kafka.KafkaProducer(**broker.login("alice").kafka_python())
        assert producer.send("orders", b"v").get(TIMEOUT_S).offset == 4
        producer.close()
        denied = produce(broker.login("bob").librdkafka(), "orders")
        assert denied is not None
        assert denied.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(ValueError, match="no user 'eve'"):
            broker.login("eve")


@pytest.mark.parametrize(("tls", "protocol"), [(True, "SSL"), (False, "PLAINTEXT")])
def test_without_users_everybody_may_write(tls: bool, protocol: str) -> None:
    with sskafka.Broker(tls=tls) as broker:
        login = broker.login()
        assert login.kafka()["security.protocol"] == protocol
        assert produce(login.librdkafka(), "orders") is None


def test_a_login_does_not_show_its_password() -> None:
    with sskafka.Broker(sasl={"alice": "very-secret"}) as broker:
        login = broker.login()
        assert (login.protocol, login.user) == ("SASL_PLAINTEXT", "alice")
        assert "very-secret" not in repr(login)


def test_wrong_rules_and_names_end_the_start() -> None:
    for security in (
        {"sasl": {"a b": "secret"}},
        {"acls": [{"allow_principal": "a", "topics": "orders"}]},
        {"acls": [{"topic": "orders"}]},
    ):
        with pytest.raises(ValueError):
            sskafka.Broker(**security).start()


@pytest.fixture
def sskafka_security() -> dict[str, Any]:
    return {"sasl": {"carol": "secret"}, "acls": [{"allow_principal": "carol", "producer": True, "topic": "orders"}]}


def test_the_fixture_of_pytest_takes_the_same(sskafka_broker: sskafka.Broker) -> None:
    assert produce(sskafka_broker.login("carol").librdkafka(), "orders") is None
    assert produce(sskafka_broker.login("carol").librdkafka(), "payments") is not None
