"""The Java client at secured listeners: passwords and certificates, and the errors that it expects.

Tokens and stores in Java's formats are in test_java_stores_and_tokens.py."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from programs import JavaTools
from secure_broker import PASSWORD, SecureBroker

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}
MODULES["SCRAM-SHA-512"] = MODULES["SCRAM-SHA-256"]
WAYS = [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256"), ("SASL_SSL", "SCRAM-SHA-512")]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    try:
        yield broker.start()  # type: ignore[misc]
    finally:
        broker.close()


def command_config(broker: SecureBroker, protocol: str, mechanism: str, password: str = PASSWORD) -> tuple[str, ...]:
    lines = [f"security.protocol={protocol}"]
    if protocol.endswith("SSL"):
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={broker.certificates.ca}"]
    if mechanism:
        module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
        login = f'{module} required username="alice" password="{password}";'
        lines += [f"sasl.mechanism={mechanism}", f"sasl.jaas.config={login}"]
    path = broker.directory / f"client-{protocol}-{mechanism}-{len(password)}.properties"
    path.write_text("\n".join(lines))
    return "--bootstrap-server", broker.at(protocol), "--command-config", str(path)


def test_tools_log_in_with_users_that_they_have_made(java: JavaTools, secure: SecureBroker) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        added = ("--alter", "--entity-type", "users", "--entity-name", "alice")
        config = ("--add-config", f"{mechanism}=[iterations=4096,password={PASSWORD}]")
        java.run(CONFIGS, "--bootstrap-server", secure.at("PLAINTEXT"), *added, *config)
    for number, (protocol, mechanism) in enumerate(WAYS):
        create = ("--create", "--topic", f"java-{number}", "--partitions", "1")
        assert "Created topic" in java.run(TOPICS, *command_config(secure, protocol, mechanism), *create)


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS[1:3])
def test_a_wrong_password_is_a_sasl_authentication_exception(
    java: JavaTools, secure: SecureBroker, protocol: str, mechanism: str
) -> None:
    said = java.fail(TOPICS, *command_config(secure, protocol, mechanism, "wrong"), "--list")
    assert "SaslAuthenticationException" in said


def test_an_unknown_authority_is_an_ssl_handshake_exception(java: JavaTools, secure: SecureBroker) -> None:
    path = secure.directory / "distrusting.properties"
    path.write_text("security.protocol=SSL\n")
    where = ("--bootstrap-server", secure.at("SSL"), "--command-config", str(path))
    assert "SSL handshake failed" in java.fail(TOPICS, *where, "--list")
