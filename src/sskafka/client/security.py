"""The security of a client's connections: protocol, TLS context and SASL login, from Kafka's client properties.

Property names are those of the Java clients; those of librdkafka are accepted beside them (`sasl.username`,
`ssl.ca.location`, ...). Nothing here is needed, nor imported, for PLAINTEXT connections.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import TypeAlias

from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import ConfigError
from sskafka.client.sasl import SASL_LOGINS, SaslLogin
from sskafka.model.listeners import SECURITY_PROTOCOLS
from sskafka.model.security.jaas import JaasError, LoginModule, parse_jaas
from sskafka.model.security.mechanisms import OAUTHBEARER
from sskafka.model.setting import split_list
from sskafka.runtime.tls.contexts import CheckReplacement, ReloadingContext, TlsOptions, client_context
from sskafka.runtime.tls.stores import TlsConfigError

_log = logging.getLogger(__name__)

CurrentConfig: TypeAlias = Callable[[], ConnectionConfig]


class ClientSecurity:
    """Shared by the connections of a client. Certificate files that have changed are read again at the next connect."""

    def __init__(
        self,
        config: ConnectionConfig,
        current: CurrentConfig | None = None,
        check_replacement: CheckReplacement | None = None,
    ) -> None:
        """`current` returns the properties of the next connection, where they change while the client runs.

        `check_replacement` decides which key stores may replace others. Raise ConfigError if the properties contradict
        each other."""
        self.protocol = _protocol(config)
        self._config = config
        self._current = current
        self._check_replacement = check_replacement
        self._refused: ConnectionConfig | None = None
        self._login = self._login_of(config)
        self._source: ReloadingContext | None = None

    def login(self) -> SaslLogin | None:
        """Return the SASL login of new connections; None without SASL."""
        self._follow()
        return self._login

    async def tls_context(self) -> ssl.SSLContext | None:
        """Return the context of new connections; None without TLS. Raise ConfigError if it cannot be made."""
        if not self.protocol.endswith("SSL"):
            return None
        self._follow()
        options = client_tls_options(self._config)
        if self._source is None:
            try:
                self._source = await asyncio.to_thread(
                    ReloadingContext, options, client_context, self._check_replacement
                )
            except TlsConfigError as error:
                raise ConfigError(str(error)) from None
        elif options != self._source.options:
            await self._change_to(options, self._source)
        elif self._source.is_stale:
            await asyncio.to_thread(self._source.reload)
        return self._source.context

    def _login_of(self, config: ConnectionConfig) -> SaslLogin | None:
        return _sasl_login(config) if self.protocol.startswith("SASL_") else None

    def _follow(self) -> None:
        """Use the properties of this moment. Those that cannot be used change nothing; each is logged once."""
        config = self._config if self._current is None else self._current()
        if config in (self._config, self._refused):
            return
        try:
            login = self._login_of(config)
        except ConfigError as error:
            self._refused = config
            _log.error("new connections keep their old login: %s", error)
            return
        self._config, self._login, self._refused = config, login, None

    async def _change_to(self, options: TlsOptions, source: ReloadingContext) -> None:
        try:
            await asyncio.to_thread(source.change_to, options)
        except TlsConfigError as error:
            _log.error("connections keep their old certificates: %s", error)
        else:
            _log.info("new connections use other certificates: %s", ", ".join(options.files))


def client_security(config: ConnectionConfig) -> ClientSecurity:
    """Return the security that the properties configure. Raise ConfigError if they contradict each other."""
    return ClientSecurity(config)


def _protocol(config: ConnectionConfig) -> str:
    protocol = config.security_protocol.upper()
    if protocol not in SECURITY_PROTOCOLS:
        expected = ", ".join(SECURITY_PROTOCOLS)
        raise ConfigError(f"security.protocol={config.security_protocol!r}: expected one of {expected}")
    return protocol


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
