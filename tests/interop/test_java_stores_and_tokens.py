"""The Java client with OAUTHBEARER tokens, and key and trust stores that keytool has made, at both ends."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from benchmarks.apache_kafka import TOOL_OPTIONS, TOOL_SECONDS_MAX, KafkaLibs
from broker_process import BrokerProcess, StartFailedError
from programs import JavaTools
from secure_broker import SecureBroker

TOPICS = "org.apache.kafka.tools.TopicCommand"
STORE_PASSWORD = "changeit"
OAUTH = "org.apache.kafka.common.security.oauthbearer"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    try:
        yield broker.start()  # type: ignore[misc]
    finally:
        broker.close()


def properties_file(path: Path, **properties: object) -> tuple[str, str]:
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in properties.items()))
    return "--command-config", str(path)


def keytool(*arguments: str) -> None:
    done = subprocess.run(
        ["keytool", *arguments], capture_output=True, text=True, timeout=TOOL_SECONDS_MAX, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def trust_store(path: Path, ca: Path, kind: str) -> Path:
    store = ("-keystore", str(path), "-storetype", kind, "-storepass", STORE_PASSWORD)
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", str(ca), *store)
    return path


def key_store(path: Path, pem: Path, kind: str) -> Path:
    """Convert a PEM file with key and chain; keytool reads no keys in PEM."""
    between = path.with_suffix(".between.p12")
    exported = ("-export", "-in", str(pem), "-out", str(between), "-name", "node", "-passout", f"pass:{STORE_PASSWORD}")
    subprocess.run(["openssl", "pkcs12", *exported], check=True, capture_output=True, timeout=TOOL_SECONDS_MAX)
    passwords = ("-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD)
    stores = ("-srckeystore", str(between), "-destkeystore", str(path), "-deststoretype", kind)
    keytool("-importkeystore", "-noprompt", *stores, *passwords)
    return path


class Oauth:
    """Java's tools with a token from a file. Java reads only files that a system property allows."""

    def __init__(self, libs: KafkaLibs, secure: SecureBroker, directory: Path) -> None:
        self._libs = libs
        self._secure = secure
        self._directory = directory

    def run(self, token: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        file = self._directory / "token.jwt"
        file.write_text(token)
        config = properties_file(
            self._directory / "oauth.properties",
            security_protocol="SASL_SSL",
            ssl_truststore_type="PEM",
            ssl_truststore_location=self._secure.certificates.ca,
            sasl_mechanism="OAUTHBEARER",
            sasl_jaas_config=f"{OAUTH}.OAuthBearerLoginModule required;",
            sasl_login_callback_handler_class=f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            sasl_oauthbearer_token_endpoint_url=file.as_uri(),
        )
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}"
        words = ("--bootstrap-server", self._secure.at("SASL_SSL"), *config, *arguments)
        command = self._libs.java(TOPICS, *words, options=(*TOOL_OPTIONS, allowed))
        return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX, check=False)


def test_a_token_logs_in_and_a_bad_one_does_not(kafka_libs: KafkaLibs, secure: SecureBroker, tmp_path: Path) -> None:
    oauth = Oauth(kafka_libs, secure, tmp_path)
    created = oauth.run(secure.token(), "--create", "--topic", "by-token", "--partitions", "1")
    assert "Created topic by-token" in created.stdout, created.stderr
    expired = secure.token(exp=int(time.time()) - 600)
    for refused in (secure.token(aud="another"), secure.token(iss="https://stranger.example"), expired):
        answer = oauth.run(refused, "--list")
        assert answer.returncode != 0
        assert "SaslAuthenticationException" in answer.stdout + answer.stderr


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_the_java_client_has_stores_of_javas_formats(
    java: JavaTools, secure: SecureBroker, tmp_path: Path, kind: str
) -> None:
    mine = secure.certificates.issue(f"client-{kind}.pem", "client@example.com", common_name=f"client-{kind}")
    config = properties_file(
        tmp_path / "client.properties",
        security_protocol="SSL",
        ssl_truststore_type=kind,
        ssl_truststore_location=trust_store(tmp_path / "trust", secure.certificates.ca, kind),
        ssl_truststore_password=STORE_PASSWORD,
        ssl_keystore_type=kind,
        ssl_keystore_location=key_store(tmp_path / "keys", mine, kind),
        ssl_keystore_password=STORE_PASSWORD,
        ssl_key_password=STORE_PASSWORD,
    )
    topic = f"by-{kind.lower()}"
    where = ("--bootstrap-server", secure.at("SSL"), *config)
    java.run(TOPICS, *where, "--create", "--topic", topic)
    assert topic in java.run(TOPICS, *where, "--list").split()


def test_a_broker_has_pkcs12_stores_of_keytool(java: JavaTools, secure: SecureBroker, tmp_path: Path) -> None:
    node = secure.certificates.issue("pkcs12-node.pem", "localhost")
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": key_store(tmp_path / "node.p12", node, "PKCS12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.location": trust_store(tmp_path / "trust.p12", secure.certificates.ca, "PKCS12"),
        "ssl.truststore.password": STORE_PASSWORD,
    }
    broker = BrokerProcess(tmp_path / "broker", settings)
    try:
        broker.start()
        trusting = properties_file(
            tmp_path / "client.properties",
            security_protocol="SSL",
            ssl_truststore_type="PEM",
            ssl_truststore_location=secure.certificates.ca,
        )
        java.run(TOPICS, "--bootstrap-server", broker.bootstrap, *trusting, "--create", "--topic", "t")
    finally:
        broker.close()


def test_a_broker_with_a_jks_store_says_how_to_convert_it(secure: SecureBroker, tmp_path: Path) -> None:
    node = secure.certificates.issue("jks-node.pem", "localhost")
    store = key_store(tmp_path / "node.jks", node, "JKS")
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": store,
        "ssl.keystore.password": STORE_PASSWORD,
    }
    broker = BrokerProcess(tmp_path / "broker", settings)
    try:
        with pytest.raises(StartFailedError, match="keytool -importkeystore") as refused:
            broker.start()
        broker.close()
        advice = str(refused.value)
        command = advice[advice.index("-importkeystore") :].splitlines()[0].split()
        keytool(*command, "-noprompt", "-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD)
        broker.settings["ssl.keystore.location"] = store.with_suffix(".p12")
        broker.start()
    finally:
        broker.close()
