"""`sskafka start --secure`: a single node with TLS, SASL and ACLs, in the directory of `sskafka start`.

    sskafka-data/certs/ca.pem, ca-key.pem, node.pem         authority and certificate of the node
                 client.properties, librdkafka.properties   properties of the user `admin`, a super user

The node gets a new certificate and a new password of its own with each start; the authority and the users stay. A
directory that was secured once is started that way again, with or without the option.
"""

import os
import socket
from collections.abc import Sequence
from typing import NamedTuple

from sskafka.broker.local_security import LOCAL_HOSTS, make_certificates, new_password
from sskafka.cli.broker_settings import DEFAULT_DIRECTORY, SINGLE_NODE
from sskafka.cli.cluster.secure import PROTOCOL, ClusterSecurity
from sskafka.cli.usage import UsageError, key_values
from sskafka.model.setting_sources import LAB_BROKERS
from sskafka.model.settings import Settings

NODE = "node"


class SecureNode(NamedTuple):
    settings: Settings
    security: ClusterSecurity


def secure_node(overrides: Sequence[str]) -> SecureNode:
    """Return the settings of a secured single node; make its certificate. Raise SettingError for an invalid value."""
    if LAB_BROKERS in os.environ:
        raise UsageError(f"--secure is for a single node, and {LAB_BROKERS} lists several; use cluster up --secure")
    security = ClusterSecurity(DEFAULT_DIRECTORY.resolve(), new_password())
    stated = {
        **{name: text for name, text in SINGLE_NODE.items() if name != "adr.listener"},  # its clients cannot log in
        "listeners": f"{PROTOCOL}://localhost:9092",
        "inter.broker.listener.name": PROTOCOL,
        **security.settings_with(security.certificates / f"{NODE}.pem"),
    }
    settings = Settings.resolve(
        stated, os.environ, key_values(list(overrides), "--set"), host_name=socket.gethostname()
    )
    if any(listener.protocol != PROTOCOL for listener in settings.listeners):
        raise UsageError(f"with --secure, every listener must be {PROTOCOL}, such as {PROTOCOL}://localhost:9092")
    make_certificates(security.certificates, NODE, certificate_hosts(settings))
    return SecureNode(settings, security)


def certificate_hosts(settings: Settings) -> list[str]:
    """Return the names by which clients may reach this node."""
    reachable = [endpoint.host for endpoint in (*settings.listeners, *settings.advertised_listeners)]
    named = [host for host in (*reachable, settings.host_name) if host not in {"", "0.0.0.0", "::"}]
    return list(dict.fromkeys([*LOCAL_HOSTS, *named]))
