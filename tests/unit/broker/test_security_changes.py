"""Logins of nodes that are changed while they run: which are refused, and what open listeners accept afterwards."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from sskafka.broker import listener_security
from sskafka.broker.listener_security import SecureListeners
from sskafka.broker.security_changes import SecurityChanges
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import UserScramCredentialRecord
from sskafka.model.listeners import Endpoint
from sskafka.model.security.errors import SaslError
from sskafka.model.security.sasl_messages import plain_message
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramCredential
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import AllowAll

SCRAM = SCRAM_MECHANISMS["SCRAM-SHA-256"]
SCRAM_LOGIN = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
PLAIN_LOGIN = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MECHANISMS = "listener.name.sasl_plaintext.sasl.enabled.mechanisms"


def scram(user: str, password: str) -> str:
    return f'ScramLoginModule required username="{user}" password="{password}";'


def plain(user: str, password: str, listed: str = "") -> str:
    return f'PlainLoginModule required username="{user}" password="{password}" user_{user}="{listed or password}";'


def settings(mechanism: str = "SCRAM-SHA-256", **more: str) -> Settings:
    return Settings.resolve(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": mechanism,
            SCRAM_LOGIN: scram("node", "old"),
            PLAIN_LOGIN: plain("node", "old"),
            **more,
        }
    )


class Node:
    def __init__(self, static: Settings) -> None:
        self.static = static
        self.image = ClusterImage()
        self.secure = SecureListeners(static, lambda: self.image)
        self._changes = SecurityChanges(lambda: self.secure, AllowAll())

    def add_user(self, user: str, password: str) -> None:
        salted = SCRAM.salted_password(password, b"salt", 4096)
        stored = ScramCredential.of_salted_password(SCRAM, salted, b"salt", 4096)
        record = UserScramCredentialRecord(user, SCRAM.code, b"salt", stored.stored_key, stored.server_key, 4096)
        self.image.replay(record, MetadataDelta())

    def check(self, configs: dict[str, str]) -> Coroutine[Any, Any, None]:
        return self._changes.check(self.static, self.static.with_dynamic(configs, {}))


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def test_a_scram_login_needs_a_credential_with_its_password() -> None:
    async def scenario() -> None:
        node = Node(settings())
        node.add_user("node", "old")
        node.add_user("next", "new")
        await node.check({SCRAM_LOGIN: scram("next", "new")})
        for user, password, reason in (("next", "wrong", "another password"), ("nobody", "new", "add the user first")):
            with pytest.raises(SettingError, match=reason) as caught:
                await node.check({SCRAM_LOGIN: scram(user, password)})
            assert password not in str(caught.value).replace(reason, "")

    run(scenario)


def test_a_credential_that_was_added_just_now_is_waited_for() -> None:
    """The change of the user is committed, and this node has not replayed it yet."""

    async def scenario() -> None:
        node = Node(settings())
        node.add_user("node", "old")
        asyncio.get_running_loop().call_later(0.3, node.add_user, "next", "new")
        await node.check({SCRAM_LOGIN: scram("next", "new")})

    run(scenario)


def test_a_plain_login_must_be_listed_at_the_listener() -> None:
    async def scenario() -> None:
        node = Node(settings("PLAIN"))
        await node.check({PLAIN_LOGIN: plain("next", "new")})
        with pytest.raises(SettingError, match=r'no user_next="..." with the same password'):
            await node.check({PLAIN_LOGIN: plain("next", "new", listed="other")})

    run(scenario)


def test_a_plain_login_that_was_not_listed_before_may_be_changed() -> None:
    """Such brokers list only the others."""

    async def scenario() -> None:
        node = Node(settings("PLAIN", **{PLAIN_LOGIN: plain("node", "old", listed="other")}))
        await node.check({PLAIN_LOGIN: plain("node", "new", listed="other")})

    run(scenario)


def log_in(node: Node, user: str, password: str) -> str | None:
    mechanism = mechanisms_of(node)["PLAIN"]
    return mechanism.begin().evaluate(plain_message(user, password)).principal  # type: ignore[no-any-return]


def mechanisms_of(node: Node) -> Any:
    (listener,) = node.static.listeners
    if not node.secure._mechanisms:
        node.secure.sasl(listener)
    return node.secure._mechanisms[listener.name]


def test_open_listeners_follow_mechanisms_and_users() -> None:
    async def scenario() -> None:
        node = Node(settings())
        assert log_in(node, "node", "old") == "User:node"
        opened = mechanisms_of(node)
        for text, names in (("PLAIN", ["PLAIN"]), ("SCRAM-SHA-512,PLAIN", ["PLAIN", "SCRAM-SHA-512"])):
            node.secure.apply(node.static.with_dynamic({MECHANISMS: text, PLAIN_LOGIN: plain("x", "y")}, {}))
            assert sorted(opened) == names
        assert log_in(node, "x", "y") == "User:x"
        with pytest.raises(SaslError, match="Invalid username or password"):
            log_in(node, "node", "old")

    run(scenario)


def test_a_text_in_the_metadata_that_is_not_jaas_has_no_users(caplog: pytest.LogCaptureFixture) -> None:
    """Apache Kafka's controllers store any text."""

    async def scenario() -> None:
        node = Node(settings())
        assert log_in(node, "node", "old") == "User:node"
        node.secure.apply(node.static.with_dynamic({PLAIN_LOGIN: "user_node=old"}, {}))
        with pytest.raises(SaslError, match="Invalid username or password"):
            log_in(node, "node", "old")
        assert "listener SASL_PLAINTEXT has no users of PLAIN" in caplog.text
        assert "user_node" not in caplog.text
        node.secure.apply(node.static)
        assert log_in(node, "node", "old") == "User:node"

    run(scenario)


def test_certificates_that_cannot_be_examined_do_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that nobody expected stops neither the broker nor the watch over other listeners."""
    examined: list[str] = []

    class Broken:
        is_stale = True

        def __init__(self, name: str) -> None:
            self.name = name

        def reload(self) -> None:
            examined.append(self.name)
            raise TypeError("unexpected")

    async def scenario() -> None:
        node = Node(settings())
        for name in ("A", "B"):
            node.secure._contexts[Endpoint(name, "localhost", 9092, "SSL")] = cast(Any, Broken(name))
        monkeypatch.setattr(listener_security, "WATCH_INTERVAL_S", 0.001)
        watching = asyncio.create_task(node.secure.watch())
        async with asyncio.timeout(5):
            while examined.count("B") < 2 and not watching.done():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert set(examined) == {"A", "B"}

    run(scenario)
    assert "listener A: the certificates cannot be examined; the old ones stay in use" in caplog.text
