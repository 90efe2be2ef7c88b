"""The security of connections between nodes: the protocol of the listener, with the key and login of its settings.

    listener between brokers      sasl.mechanism.inter.broker.protocol
    controller listeners          sasl.mechanism.controller.protocol

A node presents `username` and `password` of `listener.name.NAME.MECHANISM.sasl.jaas.config`, and the key store of the
listener as its own certificate, as in Apache Kafka. Stores, mechanism and login that are changed while the node runs
are used by the next connection.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sskafka.client.config import ConnectionConfig, configured
from sskafka.model.listeners import PLAINTEXT, Endpoint
from sskafka.model.security.listener_settings import JAAS, link_mechanism, prefixed
from sskafka.model.security.mechanisms import OAUTHBEARER
from sskafka.model.setting import format_value
from sskafka.model.settings import Settings

if TYPE_CHECKING:
    from sskafka.client.security import ClientSecurity

_TLS = (
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.enabled.protocols",
    "ssl.protocol",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
)
_OAUTH = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
)


def link_properties(settings: Settings, endpoint: Endpoint) -> dict[str, str]:
    """Return the client properties with which this node connects to listeners like `endpoint`, secrets included."""
    properties: dict[str, str | None] = {"security.protocol": endpoint.protocol}
    if endpoint.uses_tls:
        own = settings.for_listener(endpoint.name)
        properties |= {name: format_value(own[name]) for name in _TLS}
    if endpoint.uses_sasl:
        mechanism = link_mechanism(settings, endpoint)
        key = prefixed(endpoint.name, mechanism, JAAS)
        jaas = next((str(layer[key].value) for layer in settings.layers() if key in layer), None)
        properties |= {"sasl.mechanism": mechanism, JAAS: jaas}
        if mechanism == OAUTHBEARER:
            own = settings.for_listener(endpoint.name, mechanism)
            properties |= {name: format_value(own[name]) for name in _OAUTH}
    return {name: text for name, text in properties.items() if text is not None}


def link_security(
    settings: Settings, endpoint: Endpoint, current: Callable[[], Settings] | None = None
) -> "ClientSecurity | None":
    """Return how this node connects to listeners like `endpoint`; None for PLAINTEXT. Raise ConfigError.

    `current` returns the settings in effect when a connection is opened, with the stores and the login of that time."""
    if endpoint.protocol == PLAINTEXT:
        return None
    from sskafka.client.security import ClientSecurity  # noqa: PLC0415  not for PLAINTEXT
    from sskafka.runtime.tls.settings import replacement_rules  # noqa: PLC0415  not for PLAINTEXT

    now = None if current is None else lambda: _configured(current(), endpoint)
    rules = replacement_rules(settings, endpoint.name, is_between_nodes=True)
    return ClientSecurity(_configured(settings, endpoint), now, rules.check)


def _configured(settings: Settings, endpoint: Endpoint) -> ConnectionConfig:
    return configured(ConnectionConfig, link_properties(settings, endpoint))
