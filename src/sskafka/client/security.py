"""The security of a client's connections: protocol, TLS context and SASL login, from Kafka's client properties.

Property names are those of the Java clients; those of librdkafka are accepted beside them (`sasl.username`,
`ssl.ca.location`, ...). Nothing here is needed, nor imported, for PLAINTEXT connections.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable

from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import ConfigError
from sskafka.client.sasl import SASL_LOGINS, SaslLogin
from sskafka.model.listeners import SECURITY_PROTOCOLS
from sskafka.model.security.jaas import JaasError, LoginModule, parse_jaas
from sskafka.model.security.sasl_messages import OAUTHBEARER
from sskafka.model.setting import split_list
from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, client_context
from sskafka.runtime.tls.stores import TlsConfigError

_log = logging.getLogger(__name__)


class ClientSecurity:
    """Shared by the connections of a client. Certificate files that have changed are read again at the next connect."""

    def __init__(self, protocol: str, tls: TlsOptions | None, sasl: SaslLogin | None) -> None:
        self.protocol = protocol
        self.sasl = sasl
        self._tls = tls
        self._source: ReloadingContext | None = None
        self.current_tls: Callable[[], TlsOptions] | None = None
        """Returns the options of the next connection, where they change while the client runs."""

    async def tls_context(self) -> ssl.SSLContext | None:
        """Return the context of new connections; None without TLS. Raise ConfigError if it cannot be made."""
        if self._tls is None:
            return None
        options = self._tls if self.current_tls is None else self.current_tls()
        if self._source is None:
            try:
                self._source = await asyncio.to_thread(ReloadingContext, options, client_context)
            except TlsConfigError as error:
                raise ConfigError(str(error)) from None
        elif options != self._source.options:
            await self._change_to(options, self._source)
        elif self._source.is_stale:
            await asyncio.to_thread(self._source.reload)
        return self._source.context

    async def _change_to(self, options: TlsOptions, source: ReloadingContext) -> None:
        try:
            await asyncio.to_thread(source.change_to, options)
        except TlsConfigError as error:
            _log.error("connections keep their old certificates: %s", error)
        else:
            _log.info("new connections use other certificates: %s", ", ".join(options.files))


def client_security(config: ConnectionConfig) -> ClientSecurity:
    """Return the security that the properties configure. Raise ConfigError if they contradict each other."""
    protocol = config.security_protocol.upper()
    if protocol not in SECURITY_PROTOCOLS:
        expected = ", ".join(SECURITY_PROTOCOLS)
        raise ConfigError(f"security.protocol={config.security_protocol!r}: expected one of {expected}")
    tls = client_tls_options(config) if protocol.endswith("SSL") else None
    return ClientSecurity(protocol, tls, _sasl_login(config) if protocol.startswith("SASL_") else None)


def client_tls_options(config: ConnectionConfig) -> TlsOptions:
    enabled = split_list(config.ssl_enabled_protocols)
    return TlsOptions(
        keystore_location=config.ssl_keystore_location or config.ssl_certificate_location or None,
        keystore_password=config.ssl_keystore_password or None,
        keystore_key=config.ssl_keystore_key or config.ssl_key_pem or None,
        keystore_certificate_chain=config.ssl_keystore_certificate_chain or config.ssl_certificate_pem or None,
        key_password=config.ssl_key_password or None,
        key_location=config.ssl_key_location or None,
        truststore_location=config.ssl_truststore_location or config.ssl_ca_location or None,
        truststore_password=config.ssl_truststore_password or None,
        truststore_certificates=config.ssl_truststore_certificates or config.ssl_ca_pem or None,
        enabled_protocols=tuple(name for name in enabled if config.ssl_protocol != "TLSv1.2" or name == "TLSv1.2"),
        cipher_suites=split_list(config.ssl_cipher_suites),
        checks_host_name=config.ssl_endpoint_identification_algorithm.lower() not in {"", "none"},
    )


def _sasl_login(config: ConnectionConfig) -> SaslLogin:
    mechanism = (config.sasl_mechanism or config.sasl_mechanisms).upper()
    if mechanism not in SASL_LOGINS:
        raise ConfigError(f"sasl.mechanism={mechanism!r}: expected one of {', '.join(SASL_LOGINS)}")
    module = _login_module(config)
    options = module.options if module is not None else {}
    if mechanism == OAUTHBEARER:
        user = options.get("clientId") or config.sasl_oauthbearer_client_credentials_client_id
        secret = options.get("clientSecret") or config.sasl_oauthbearer_client_credentials_client_secret
        scope = options.get("scope") or config.sasl_oauthbearer_scope
        url = config.sasl_oauthbearer_token_endpoint_url
        if not url:
            raise ConfigError("OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url (https:, http: or file:)")
        return SASL_LOGINS[mechanism](user, secret, url, scope)
    user = options.get("username") or config.sasl_username
    password = options.get("password") or config.sasl_password
    if not user or not password:
        raise ConfigError(f"{mechanism} needs sasl.jaas.config, or sasl.username and sasl.password")
    return SASL_LOGINS[mechanism](user, password, mechanism, options.get("tokenauth", ""))


def _login_module(config: ConnectionConfig) -> LoginModule | None:
    if not config.sasl_jaas_config:
        return None
    try:
        return parse_jaas(config.sasl_jaas_config)
    except JaasError as error:
        raise ConfigError(f"sasl.jaas.config: {error}") from None
