"""kafka-delegation-tokens and a Java client that logs in with a token."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from programs import JavaTools
from secure_broker import SecureBroker

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
FOR_EVER = ("--max-life-time-period", "-1")
OWN = ("--owner-principal", "User:alice")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path_factory.mktemp("tokens"), {"delegation.token.secret.key": "key of the cluster"})
    try:
        yield broker.start()  # type: ignore[misc]
    finally:
        broker.close()


def at(broker: SecureBroker, name: str, mechanism: str, module: str, login: str) -> tuple[str, ...]:
    path = broker.directory / f"{name}.properties"
    jaas = f"org.apache.kafka.common.security.{module} required {login};"
    lines = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}"]
    path.write_text("\n".join(lines))
    return "--bootstrap-server", broker.at("SASL_PLAINTEXT"), "--command-config", str(path)


def test_a_token_from_its_creation_to_its_end(java: JavaTools, secure: SecureBroker) -> None:
    alice = at(secure, "alice", "PLAIN", "plain.PlainLoginModule", 'username="alice" password="alice-secret"')
    admin = at(secure, "admin", "PLAIN", "plain.PlainLoginModule", 'username="admin" password="admin-secret"')
    said = java.run(TOKENS, *alice, "--create", *FOR_EVER, "--renewer-principal", "User:admin")
    found = re.search(r"(\S{22}) +(\S{86}==) +User:alice +User:alice +\[User:admin\]", said)
    assert found is not None, said
    token_id, hmac = found[1], found[2]
    assert token_id in java.run(TOKENS, *alice, "--describe", *OWN)
    renewed = java.run(TOKENS, *admin, "--renew", "--renew-time-period", "60000", "--hmac", hmac)
    assert "Completed renew operation" in renewed
    login = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    by_token = at(secure, "token", "SCRAM-SHA-512", "scram.ScramLoginModule", login)
    created = java.run(TOPICS, *by_token, "--create", "--topic", "by-token", "--partitions", "1")
    assert "Created topic" in created
    refused = java.fail(TOKENS, *by_token, "--create", *FOR_EVER)
    assert "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels" in refused
    java.run(TOKENS, *alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in java.run(TOKENS, *alice, "--describe", *OWN)
    assert "SaslAuthenticationException" in java.fail(TOPICS, *by_token, "--list")
    assert "DelegationTokenNotFoundException" in java.fail(
        TOKENS, *alice, "--renew", "--renew-time-period", "1", "--hmac", hmac
    )
