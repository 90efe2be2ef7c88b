"""`sskafka cluster up --secure`: certificates, users and ACLs of a local cluster.

    DIR/certs/ca.pem, ca-key.pem     a certificate authority of this cluster
             broker-1.pem, ...       keys and certificates of the brokers
    DIR/client.properties            properties of the user `admin`, a super user: for Java and for `--command-config`
    DIR/librdkafka.properties        the same for kcat (`-F`) and other clients made with librdkafka

The brokers accept TLS and SASL only, and ACLs decide what users other than `admin` may do. The passwords are in files
that only their owner can read: that of `admin` in the two files above, that of the brokers in server.properties.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sskafka.broker.local_security import (
    BROKER_USER,
    authorizer_settings,
    http_settings,
    make_certificates,
    new_password,
    sasl_settings,
    tls_settings,
)
from sskafka.cli.cluster.homes import BrokerHome, LocalCluster
from sskafka.cli.failures import CommandError
from sskafka.cli.output import talk
from sskafka.client.client_login import ClientLogin
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.scram_users import describe_users, set_password
from sskafka.model.properties import format_properties, parse_properties
from sskafka.model.security.jaas import parse_jaas
from sskafka.model.security.mechanisms import PLAIN
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.runtime.tls.authority import CA_CERTIFICATE, write_private

PROTOCOL = "SASL_SSL"
ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
_BROKER_JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"


class ClusterSecurity(NamedTuple):
    directory: Path
    broker_password: str

    @property
    def certificates(self) -> Path:
        return self.directory / "certs"

    @property
    def client_file(self) -> Path:
        return self.directory / "client.properties"

    @property
    def librdkafka_file(self) -> Path:
        return self.directory / "librdkafka.properties"

    def settings_of(self, home: BrokerHome) -> dict[str, str]:
        """Return the security settings of a broker. Makes its certificate, if it has none yet."""
        key_store = self.certificates / f"{home.path.name}.pem"
        if not key_store.exists():
            make_certificates(self.certificates, home.path.name)
        return self.settings_with(key_store)

    def settings_with(self, key_store: Path) -> dict[str, str]:
        return {
            **tls_settings(key_store),
            **sasl_settings(PROTOCOL, {}, self.broker_password),
            **http_settings(PROTOCOL),
            **authorizer_settings([ADMIN]),
        }

    def broker_login(self, bootstrap: str) -> ClientLogin:
        """Return the login of the brokers, for the requests of this command."""
        ca = str(self.certificates / CA_CERTIFICATE)
        return ClientLogin(bootstrap, PROTOCOL, ca, PLAIN, BROKER_USER, self.broker_password)

    def connection_config(self) -> ConnectionConfig:
        return configured(ConnectionConfig, {"client.id": "sskafka-cluster", **self.broker_login("").kafka()})


def find_security(cluster: LocalCluster, *, is_wanted: bool) -> ClusterSecurity | None:
    """Return the security of the cluster, or None. A cluster stays as it was created."""
    if cluster.is_new:
        return ClusterSecurity(cluster.directory, new_password()) if is_wanted else None
    jaas = cluster.homes[0].read_properties().get(_BROKER_JAAS)
    if jaas is not None:
        return ClusterSecurity(cluster.directory, parse_jaas(jaas).options["password"])
    if is_wanted:
        raise CommandError(
            f"{cluster.directory} holds a cluster without security",
            "use another --dir; docs/security.md shows how to move a cluster to TLS and SASL while it runs",
        )
    return None


async def add_admin(security: ClusterSecurity, bootstrap: str) -> None:
    """Create the user `admin`, unless it exists and its password is in the files, and write the files."""
    stored = _stored_password(security)
    password = stored or new_password()
    async with Cluster(bootstrap, security.connection_config()) as cluster:
        await cluster.refresh()
        if not stored or not await describe_users(cluster, [ADMIN]):
            await set_password(cluster, ADMIN, password, SCRAM_MECHANISMS)
    _write_login(security, bootstrap, password)


def _write_login(security: ClusterSecurity, bootstrap: str, password: str) -> None:
    ca = str(security.certificates / CA_CERTIFICATE)
    login = ClientLogin(bootstrap, PROTOCOL, ca, MECHANISM, ADMIN, password)
    _write(security.client_file, login.kafka())
    _write(security.librdkafka_file, login.librdkafka())


def _write(path: Path, properties: Mapping[str, str]) -> None:
    write_private(path, format_properties(properties).encode())


def _stored_password(security: ClusterSecurity) -> str:
    if not security.librdkafka_file.exists():
        return ""
    return parse_properties(security.librdkafka_file.read_text()).get("sasl.password", "")


def tell_login(security: ClusterSecurity, bootstrap: Sequence[str]) -> None:
    """Print how clients connect. The password is in the files, not in this text."""
    first = bootstrap[0]
    talk(f"TLS, SASL and ACLs are on; the properties of user {ADMIN} are in {security.client_file}")
    talk(f"  sskafka topic list --command-config {security.client_file}")
    talk(f"  kafka-topics.sh --list --bootstrap-server {first} --command-config {security.client_file}")
    talk(f"  kcat -L -F {security.librdkafka_file}")
    talk(f"  sskafka user add alice --command-config {security.client_file}")
