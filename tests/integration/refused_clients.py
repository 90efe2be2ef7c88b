"""Python clients that a broker refuses: each tells by which error it noticed that."""

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokenProvider

import sskafka

PATIENCE_S = 30
BOOTSTRAP_TIMEOUT_MS = 4000
"""How long kafka-python tries again before it reports an error."""


class Login(NamedTuple):
    """How a client connects."""

    bootstrap: str
    protocol: str
    ca: Path
    mechanism: str = ""
    password: str = ""
    token_file: Path | None = None

    @property
    def token(self) -> str:
        return self.token_file.read_text() if self.token_file is not None else ""


class RefusedClient(Protocol):
    def connect(self, login: Login) -> str:
        """Ask for the topics. Return the name of the error, and what it says."""
        ...

    def read(self, login: Login, topic: str, revoke: Callable[[], None]) -> str:
        """Read the only record of the topic, call `revoke`, and read on. Return the name of the error."""
        ...


class ConfluentKafka:
    def connect(self, login: Login) -> str:
        errors: list[str] = []
        properties = {**_librdkafka(login), "error_cb": lambda error: errors.append(f"{error.name()} {error.str()}")}
        admin = AdminClient(properties)
        deadline = time.monotonic() + PATIENCE_S
        while not errors and time.monotonic() < deadline:
            admin.poll(0.1)
        return errors[0]

    def read(self, login: Login, topic: str, revoke: Callable[[], None]) -> str:
        consumer = Consumer({**_librdkafka(login), "group.id": topic, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < deadline:
                message = consumer.poll(1)
                if message is None:
                    continue
                if message.error() is not None:
                    return str(message.error().name())
                revoke()
        finally:
            consumer.close()
        return "no error"


class AioKafka:
    def connect(self, login: Login) -> str:
        async def connect() -> None:
            async with AIOKafkaConsumer(**_keywords(login)):
                pass

        return _error_of(lambda: asyncio.run(connect()))

    def read(self, login: Login, topic: str, revoke: Callable[[], None]) -> str:
        async def read() -> None:
            async with AIOKafkaConsumer(**_keywords(login), auto_offset_reset="earliest") as consumer:
                consumer.assign([AioPartition(topic, 0)])
                await asyncio.wait_for(consumer.getone(), PATIENCE_S)
                await asyncio.to_thread(revoke)
                await asyncio.wait_for(consumer.getone(), PATIENCE_S)

        return _error_of(lambda: asyncio.run(read()))


class KafkaPython:
    def connect(self, login: Login) -> str:
        keywords = {**_keywords(login, is_asyncio=False), "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS}
        return _error_of(lambda: KafkaAdminClient(**keywords).list_topics())

    def read(self, login: Login, topic: str, revoke: Callable[[], None]) -> str:
        consumer = KafkaConsumer(**_keywords(login, is_asyncio=False), auto_offset_reset="earliest")
        consumer.assign([PythonPartition(topic, 0)])
        deadline = time.monotonic() + PATIENCE_S

        def read() -> None:
            while time.monotonic() < deadline:
                if consumer.poll(1000):
                    revoke()

        try:
            return _error_of(read)
        finally:
            consumer.close()


class OurClient:
    def connect(self, login: Login) -> str:
        def connect() -> None:
            with sskafka.Consumer(login.bootstrap, **_ours(login)) as consumer:
                consumer.fetch_cluster_metadata()

        return _error_of(connect)

    def read(self, login: Login, topic: str, revoke: Callable[[], None]) -> str:
        def read() -> None:
            with sskafka.Consumer(login.bootstrap, **_ours(login)) as consumer:
                consumer.subscribe(topic, 0)
                deadline = time.monotonic() + PATIENCE_S
                while time.monotonic() < deadline:
                    if consumer.poll():
                        revoke()

        return _error_of(read)


def _error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__} {getattr(error, 'code', '')!r} {error}"
    return "no error"


def _librdkafka(login: Login) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol,
        "ssl.ca.location": str(login.ca),
        "log_level": 0,
    }
    if login.token:
        properties |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (login.token, time.time() + 600)}
    elif login.mechanism:
        properties |= {"sasl.mechanism": login.mechanism, "sasl.username": "alice", "sasl.password": login.password}
    return properties


def _keywords(login: Login, *, is_asyncio: bool = True) -> dict[str, Any]:
    """Return the arguments of aiokafka or kafka-python, which agree in most names."""
    base: Any = AbstractTokenProvider if is_asyncio else PythonTokenProvider

    class Tokens(base):  # type: ignore[misc]
        def token(self) -> Any:
            return asyncio.sleep(0, login.token) if is_asyncio else login.token

    keywords: dict[str, Any] = {"bootstrap_servers": login.bootstrap, "security_protocol": login.protocol}
    keywords["ssl_context"] = ssl.create_default_context(cafile=str(login.ca))
    if login.token:
        keywords |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Tokens()}
    elif login.mechanism:
        keywords |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": login.password,
        }
    return keywords


def _ours(login: Login) -> dict[str, Any]:
    options: dict[str, Any] = {"security_protocol": login.protocol, "ssl_ca_location": str(login.ca)}
    if login.token_file is not None:
        options |= {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": login.token_file.as_uri(),
        }
    elif login.mechanism:
        options |= {"sasl_mechanism": login.mechanism, "sasl_username": "alice", "sasl_password": login.password}
    return options
