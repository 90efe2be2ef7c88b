"""TLS options from the settings of a node, for one of its listeners and for its links to other nodes."""

from sskafka.model.settings import Settings
from sskafka.runtime.tls.contexts import TlsOptions
from sskafka.runtime.tls.replacement import ReplacementRules


def tls_options(settings: Settings, listener: str, client_auth: str = "none") -> TlsOptions:
    """Return the `ssl.` settings of a listener. Nodes use the same key and trust store as clients of each other."""
    own = settings.for_listener(listener)

    def text(name: str) -> str | None:
        value = own[name]
        return str(value) if value else None

    newest = text("ssl.protocol")
    enabled = own["ssl.enabled.protocols"]
    return TlsOptions(
        keystore_location=text("ssl.keystore.location"),
        keystore_password=text("ssl.keystore.password"),
        keystore_key=text("ssl.keystore.key"),
        keystore_certificate_chain=text("ssl.keystore.certificate.chain"),
        key_password=text("ssl.key.password"),
        truststore_location=text("ssl.truststore.location"),
        truststore_password=text("ssl.truststore.password"),
        truststore_certificates=text("ssl.truststore.certificates"),
        client_auth=client_auth,
        enabled_protocols=tuple(name for name in enabled if newest != "TLSv1.2" or name == newest),
        cipher_suites=own["ssl.cipher.suites"],
        checks_host_name=bool(text("ssl.endpoint.identification.algorithm")),
    )


def replacement_rules(settings: Settings, listener: str, *, is_between_nodes: bool) -> ReplacementRules:
    """Return which stores may replace those of a listener while the node runs."""
    own = settings.for_listener(listener)
    return ReplacementRules(is_between_nodes, own["ssl.allow.dn.changes"], own["ssl.allow.san.changes"])
