"""Delegation tokens through brokers: who gets one, who may log in with it, and for how long."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeVar

import pytest
from command_line import run_sskafka
from test_secure_cluster import sasl_settings, three_nodes
from tests.support.certificates import Certificates
from waiting import wait_until

import sskafka
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.delegation_tokens import (
    DelegationToken,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from sskafka.client.errors import AuthenticationFailedError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.security.jaas import SCRAM_LOGIN_MODULE

pytestmark = pytest.mark.usefixtures("_ours")
T = TypeVar("T")
USERS = {"alice": "alice-secret", "bob": "bob-secret", "carol": "carol-secret", "admin": "admin-secret"}
SETTINGS = {
    "delegation.token.secret.key": "key of the cluster",
    "delegation.token.expiry.check.interval.ms": 200,
    "super.users": "User:sskafka-broker;User:admin",
}
RULES: list[dict[str, object]] = [
    {"allow_principal": "alice", "operation": "Describe", "topic": "*"},
    {"allow_principal": "bob", "operation": ["CreateTokens", "DescribeTokens"], "user_principal": "User:alice"},
]
Properties = dict[str, str]


@pytest.fixture(scope="module")
def broker() -> Iterator[sskafka.Broker]:
    with sskafka.Broker(SETTINGS, sasl=USERS, acls=RULES) as started:
        yield started


def run(properties: Properties, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    async def connected() -> T:
        async with Cluster(properties["bootstrap.servers"], configured(ConnectionConfig, properties)) as cluster:
            return await work(cluster)

    return asyncio.run(connected())


def code_of(properties: Properties, work: Callable[[Cluster], Coroutine[Any, Any, Any]]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        run(properties, work)
    return refused.value.code


def by_token(broker: sskafka.Broker, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> Properties:
    login = f'username="{token.token_id}" password="{token.password}" tokenauth="true"'
    jaas = f"{SCRAM_LOGIN_MODULE} required {login};"
    return {**broker.login("alice").kafka(), "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


async def list_topics(cluster: Cluster) -> list[str]:
    return sorted((await cluster.refresh(None)).topics)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_as_its_owner(broker: sskafka.Broker, mechanism: str) -> None:
    run(broker.login("admin").kafka(), lambda cluster: Admin(cluster).create_topics([NewTopic(f"t-{mechanism}")]))
    token = run(broker.login("alice").kafka(), create_token)
    assert (token.owner, token.requester) == ("User:alice", "User:alice")
    assert f"t-{mechanism}" in run(by_token(broker, token, mechanism), list_topics)
    wrong = token._replace(hmac=bytes(64))
    for other in (wrong, token._replace(token_id="unknown")):
        with pytest.raises(AuthenticationFailedError):
            run(by_token(broker, other, mechanism), list_topics)


def test_a_token_is_no_password_of_a_user(broker: sskafka.Broker) -> None:
    token = run(broker.login("alice").kafka(), create_token)
    as_user = by_token(broker, token)
    as_user["sasl.jaas.config"] = as_user["sasl.jaas.config"].replace(' tokenauth="true"', "")
    with pytest.raises(AuthenticationFailedError):
        run(as_user, list_topics)


def test_a_client_with_a_token_gets_no_other_token(broker: sskafka.Broker) -> None:
    token = run(broker.login("alice").kafka(), create_token)
    properties = by_token(broker, token)
    for work in (
        create_token,
        describe_tokens,
        lambda cluster: renew_token(cluster, token.hmac),
        lambda cluster: expire_token(cluster, token.hmac),
    ):
        assert code_of(properties, work) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_renewers_and_others(broker: sskafka.Broker) -> None:
    token = run(broker.login("alice").kafka(), lambda cluster: create_token(cluster, renewers=["carol"]))
    carol, bob = broker.login("carol").kafka(), broker.login("bob").kafka()
    renewed_ms = run(carol, lambda cluster: renew_token(cluster, token.hmac, 60_000))
    assert token.issue_ms < renewed_ms < token.expiry_ms
    mismatch = code_of(bob, lambda cluster: renew_token(cluster, token.hmac))
    assert mismatch == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    unknown = code_of(carol, lambda cluster: expire_token(cluster, b"unknown"))
    assert unknown == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert run(carol, lambda cluster: expire_token(cluster, token.hmac)) == -1
    with pytest.raises(AuthenticationFailedError):
        run(by_token(broker, token), list_topics)


def test_acls_allow_tokens_of_others(broker: sskafka.Broker) -> None:
    bob, carol = broker.login("bob").kafka(), broker.login("carol").kafka()
    token = run(bob, lambda cluster: create_token(cluster, "alice"))
    assert (token.owner, token.requester) == ("User:alice", "User:bob")
    refused = code_of(carol, lambda cluster: create_token(cluster, "alice"))
    assert refused == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    own = run(broker.login("alice").kafka(), create_token)
    assert {token, own} <= set(run(bob, describe_tokens)), "DescribeTokens on alice"
    assert run(carol, describe_tokens) == []
    assert own not in run(bob, lambda cluster: describe_tokens(cluster, ["carol"]))
    assert {token, own} <= set(run(broker.login("admin").kafka(), describe_tokens))


def test_an_expired_token_ends_the_session_and_is_removed(broker: sskafka.Broker) -> None:
    alice = broker.login("alice").kafka()
    token = run(alice, lambda cluster: create_token(cluster, max_lifetime_ms=1500))
    assert token.max_ms == token.expiry_ms == token.issue_ms + 1500

    async def use(cluster: Cluster) -> float:
        connection = await cluster.any_connection()
        began = time.monotonic()
        while connection.is_open:  # noqa: ASYNC110  a timer of the connection ends it
            await asyncio.sleep(0.02)
        return time.monotonic() - began

    assert run(by_token(broker, token), use) < 10, "the client takes the session for ended before the token expires"
    wait_until(lambda: time.time() * 1000 > token.max_ms, "the end of the token")
    with pytest.raises(AuthenticationFailedError):
        run(by_token(broker, token), list_topics)
    wait_until(lambda: token not in run(alice, describe_tokens), "the check of the controller")


def test_without_a_key_the_feature_is_disabled() -> None:
    with sskafka.Broker(sasl=USERS) as broker:
        alice = broker.login("alice").kafka()
        for work in (create_token, describe_tokens, lambda cluster: renew_token(cluster, b"x")):
            assert code_of(alice, work) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_anonymous_clients_get_no_token() -> None:
    with sskafka.Broker(SETTINGS, tls=True) as broker:
        refused = code_of(broker.login().kafka(), create_token)
        assert refused == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_every_broker_of_a_cluster_accepts_a_token(tmp_path: Path) -> None:
    """Two of the brokers forward requests to the third."""
    certificates = Certificates(tmp_path / "certificates")
    secret = {"delegation.token.secret.key": "key"}
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(certificates.ca),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "a-secret",
    }
    with three_nodes(tmp_path, lambda node, ports: sasl_settings(node, ports, certificates) | secret) as bootstrap:
        addresses = bootstrap.split(",")
        for number, address in enumerate(addresses):
            token = run({**client, "bootstrap.servers": address}, create_token)
            assert token.owner == "User:alice"
            login = f'username="{token.token_id}" password="{token.password}" tokenauth="true"'
            properties = {
                **client,
                "bootstrap.servers": addresses[number - 1],
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f"{SCRAM_LOGIN_MODULE} required {login};",
            }
            wait_until(lambda properties=properties: _can_log_in(properties), "the token on another broker")
            assert code_of(properties, create_token) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert run({**client, "bootstrap.servers": address}, lambda c, t=token: expire_token(c, t.hmac)) == -1


def _can_log_in(properties: Properties) -> bool:
    try:
        run(properties, list_topics)
    except AuthenticationFailedError:
        return False
    return True


def test_the_command(broker: sskafka.Broker, tmp_path: Path) -> None:
    config = tmp_path / "alice.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in broker.login("alice").kafka().items()))

    def token(*arguments: str) -> CompletedProcess[str]:
        ended = run_sskafka("token", *arguments, "--command-config", str(config))
        ended.check_returncode()
        return ended

    (made,) = json.loads(token("create", "--renewer-principal", "carol", "--json").stdout)
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:carol"])
    assert made["token_id"] in token("list").stdout
    assert "expires at" in token("renew", "--hmac", made["hmac"], "--renew-time-period", "60000").stderr
    assert "has expired" in token("expire", "--hmac", made["hmac"]).stderr
    assert made["token_id"] not in token("list", "--owner-principal", "alice").stdout
