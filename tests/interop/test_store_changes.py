"""Key and trust stores that are changed while a broker runs: both brokers accept and refuse the same ones."""

import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from benchmarks.brokers import HOST, TLS_LISTENER, Broker, BrokerKind, free_ports
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from programs import APACHE_KAFKA, SSKAFKA, JavaTools
from tests.support.certificates import Certificates
from waiting import wait_until

CONFIGS = "kafka.admin.ConfigCommand"
NAMES = ("localhost", HOST)
KEY, TRUST = "ssl.keystore.location", "ssl.truststore.location"


class Stores:
    def __init__(self, directory: Path) -> None:
        self.ours, self.strangers = Certificates(directory / "ours"), Certificates(directory / "strangers")
        self.client = self.key("client", user="client")

    def key(self, name: str, *names: str, user: str = "node", strange: bool = False, is_expired: bool = False) -> Path:
        authority = self.strangers if strange else self.ours
        return in_pkcs8(
            authority.issue(f"{name}.pem", *names or NAMES, common_name=user, unit="tests", is_expired=is_expired)
        )


def in_pkcs8(path: Path) -> Path:
    """Rewrite a private key in the form that Java reads."""
    pem = path.read_bytes()
    key = load_pem_private_key(pem, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(key + pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    return path


class OpenBroker:
    """A broker with a listener SSL, whose settings are changed over its open listener."""

    def __init__(self, broker: Broker, tls_port: int, stores: Stores) -> None:
        self.broker = broker
        self.stores = stores
        self._tls_port = tls_port
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def accepts(self, setting: str, value: object) -> bool:
        entry = ConfigEntry(f"listener.name.ssl.{setting}", str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        try:
            self._admin.incremental_alter_configs([resource], request_timeout=30)[resource].result(30)
        except KafkaException:
            return False
        if setting == KEY:
            # A broker checks the next key store against the one in use, and takes a new one into use after its answer.
            stored = certificate_in(Path(str(value)))
            wait_until(lambda: self._served_certificate() == stored, f"{value} in use")
        return True

    def _served_certificate(self) -> bytes | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(self.stores.client)
        with socket.create_connection((HOST, self._tls_port), timeout=10) as plain, context.wrap_socket(plain) as tls:
            return tls.getpeercert(binary_form=True)


def certificate_in(path: Path) -> bytes:
    return x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(Encoding.DER)


@pytest.fixture(scope="module", params=[APACHE_KAFKA, SSKAFKA])
def kind(request: pytest.FixtureRequest, broker_kind: Callable[[str], BrokerKind]) -> BrokerKind:
    return broker_kind(request.param)


def running(kind: BrokerKind, directory: Path, between: str) -> Iterator[OpenBroker]:
    stores, port = Stores(directory), free_ports(1)[0]
    settings = {
        TLS_LISTENER: str(port),
        "inter.broker.listener.name": between,
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        KEY: str(stores.key("node")),
        TRUST: str(stores.ours.ca),
        "ssl.client.auth": "required",
    }
    with kind.running(directory / "broker", settings) as broker:
        yield OpenBroker(broker, port, stores)


@pytest.fixture(scope="module")
def between_nodes(kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBroker]:
    yield from running(kind, tmp_path_factory.mktemp("between"), "SSL")


@pytest.fixture(scope="module")
def for_clients(kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBroker]:
    yield from running(kind, tmp_path_factory.mktemp("clients"), "PLAINTEXT")


def test_at_the_listener_between_brokers(between_nodes: OpenBroker) -> None:
    stores, accepts = between_nodes.stores, between_nodes.accepts
    assert accepts(KEY, stores.key("renewed"))
    assert not accepts(KEY, stores.key("fewer", "localhost"))
    assert not accepts(KEY, stores.key("other", user="other"))
    assert not accepts(KEY, stores.key("strange", strange=True))
    assert not accepts(KEY, stores.key("expired", is_expired=True))
    assert not accepts(KEY, "/nonexistent.pem")
    assert not accepts(TRUST, stores.strangers.ca)
    assert accepts(KEY, stores.key("more", *NAMES, "node.example"))
    assert not accepts(KEY, stores.key("again")), "node.example would be missing"


def test_at_a_listener_for_clients(for_clients: OpenBroker) -> None:
    stores, accepts = for_clients.stores, for_clients.accepts
    assert not accepts(KEY, stores.key("other", user="other"))
    assert not accepts(KEY, stores.key("fewer", "localhost"))
    assert accepts(KEY, stores.key("strange", strange=True))
    assert accepts(KEY, stores.key("expired", is_expired=True))
    assert accepts(TRUST, stores.strangers.ca)


def test_kafka_configs_shows_the_reason(java: JavaTools, between_nodes: OpenBroker) -> None:
    wanted = f"listener.name.ssl.{KEY}={between_nodes.stores.key('third', user='third')}"
    where = ("--bootstrap-server", between_nodes.broker.bootstrap, "--entity-type", "brokers", "--entity-name", "1")
    refused = java.fail(CONFIGS, *where, "--alter", "--add-config", wanted)
    assert "Keystore DistinguishedName does not match" in refused
