"""Authentication of the clients of one listener, according to its security protocol.

    PLAINTEXT         Connection                                      User:ANONYMOUS
    SSL               TlsTransport -> Connection                      the certificate of the client, or ANONYMOUS
    SASL_PLAINTEXT    SaslConnection                                  the SASL exchange
    SASL_SSL          TlsTransport -> SaslConnection                  the SASL exchange

A PLAINTEXT listener has no `ListenerSecurity`, and its connections have no extra cost.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sskafka.model.security.certificate_names import MappingRule
from sskafka.model.values import value
from sskafka.runtime.tls.contexts import ReloadingContext
from sskafka.servers.kafka.connection import Connection
from sskafka.servers.kafka.security.mechanisms import SaslMechanism
from sskafka.servers.kafka.security.sasl_connection import SaslConnection
from sskafka.servers.kafka.security.tls_transport import TlsTransport
from sskafka.servers.kafka.socket_transport import StreamProtocol

if TYPE_CHECKING:
    from sskafka.servers.kafka.listener import Listener


@value
class TlsSecurity:
    source: ReloadingContext
    mapping_rules: Sequence[MappingRule]


@value
class SaslSecurity:
    mechanisms: Mapping[str, SaslMechanism]
    """The enabled mechanisms, by name."""
    failed_authentication_delay_ms: int = 100
    receive_bytes_max: int = 524_288
    """Maximum size of a request before authentication."""


class ListenerSecurity:
    def __init__(self, tls: TlsSecurity | None, sasl: SaslSecurity | None) -> None:
        self.tls = tls
        self.sasl = sasl

    def new_protocol(self, listener: "Listener") -> StreamProtocol:
        connection = Connection(listener) if self.sasl is None else SaslConnection(listener, self.sasl)
        if self.tls is None:
            return connection
        is_named = self.sasl is None
        return TlsTransport(listener, connection, self.tls.source.context, self.tls.mapping_rules if is_named else None)
