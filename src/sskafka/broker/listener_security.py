"""The security of the Kafka listeners of a node, constructed from its settings, and its changes at run time.

    make           a listener is opened: read its certificates and construct its mechanisms
    check          a client changes settings: reject certificates that cannot be used (security_changes.py)
    apply          the metadata has other settings: open listeners use them for new connections
    watch          check the certificate files every few seconds, and read them again if they have changed

Threads read the files, except at startup. Passwords and users of PLAIN are read from the settings for each login.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from sskafka.broker.token_credentials import TokenCredentials
from sskafka.metadata.image import ClusterImage
from sskafka.model.listeners import Endpoint
from sskafka.model.security.certificate_names import parse_mapping_rules
from sskafka.model.security.listener_settings import (
    client_auth,
    enabled_mechanisms,
    login_module,
)
from sskafka.model.security.mechanisms import OAUTHBEARER, PLAIN
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramCredential, ScramMechanism
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, server_context
from sskafka.runtime.tls.expiry import ExpiryWarnings
from sskafka.runtime.tls.replacement import ReplacementRules
from sskafka.runtime.tls.settings import replacement_rules, tls_options
from sskafka.runtime.tls.stores import TlsConfigError
from sskafka.servers.kafka.security.listener_security import ListenerSecurity, SaslSecurity, TlsSecurity
from sskafka.servers.kafka.security.mechanisms import PlainMechanism, SaslMechanism, ScramServerMechanism
from sskafka.servers.kafka.security.oauth_bearer import MissingPackageError, OAuthBearerMechanism, OAuthKeys

_log = logging.getLogger(__name__)

WATCH_INTERVAL_S = 2.0
FindCredential: TypeAlias = Callable[[ScramMechanism, str, bool], ScramCredential | None]
"""Mechanism, user name, and whether it is the id of a delegation token, to the stored credential."""


class SecureListeners:
    def __init__(self, settings: Settings, image: Callable[[], ClusterImage]) -> None:
        """`settings` are those in effect now; `image` has the SCRAM credentials."""
        self._settings = settings
        self._image = image
        self._contexts: dict[Endpoint, ReloadingContext] = {}
        self._mechanisms: dict[str, dict[str, SaslMechanism]] = {}
        self._change: asyncio.Task[None] | None = None
        self._expiry = ExpiryWarnings()
        self._keys: list[OAuthKeys] = []
        self._tokens = TokenCredentials(settings["delegation.token.secret.key"], image)

    def make(self, listener: Endpoint) -> ListenerSecurity:
        """Return the security of a listener. Raise SettingError if the settings cannot be used."""
        return ListenerSecurity(
            self._tls(listener) if listener.uses_tls else None, self.sasl(listener) if listener.uses_sasl else None
        )

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            for listener, source in list(self._contexts.items()):
                await asyncio.to_thread(self._examine, listener.name, source)
            for keys in self._keys:
                await asyncio.to_thread(keys.maybe_refresh)

    def _examine(self, listener: str, source: ReloadingContext) -> None:
        """Read changed files again. An unexpected error must not end the watch over the other listeners."""
        try:
            if source.is_stale:
                source.reload()
            self._expiry.maybe_warn(listener, source, time.time())
        except Exception:  # boundary of one listener
            _log.exception("listener %s: the certificates cannot be examined; the old ones stay in use", listener)

    def apply(self, settings: Settings) -> None:
        """Use other settings for new connections. Log an error for settings that cannot be used."""
        self._settings = settings
        for name, mechanisms in self._mechanisms.items():
            self._change_mechanisms(name, mechanisms)
            self._report_bad_login(name)
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_task(self._follow())

    async def settled(self) -> None:
        """Wait until the listeners use the certificates of the last settings."""
        while self._change is not None and not self._change.done():
            await self._change

    async def _follow(self) -> None:
        """Apply changes of certificates in order: of two changes, the later one must win."""
        settings = None
        while settings is not self._settings:
            settings = self._settings
            for listener, source in list(self._contexts.items()):
                options = tls_options(settings, listener.name, client_auth(settings, listener))
                if options != source.options or source.is_stale:
                    await asyncio.to_thread(_change, listener.name, source, options)

    def check(self, wanted: Settings) -> None:
        """Raise SettingError if listeners cannot use the keys and certificates of the new settings. This blocks."""
        known = {listener.name: source for listener, source in self._contexts.items()}
        for listener in (*wanted.listeners, *wanted.controller_listeners, wanted.http_endpoint):
            if listener is None or not listener.uses_tls:
                continue
            source = known.get(listener.name)
            if source is None:
                checked_context(wanted, listener)
            else:
                _check_replacement(wanted, listener, source)

    def tls_options(self, listener: Endpoint) -> TlsOptions:
        """Return the keys and certificates of a server that makes its own TLS context. Raise SettingError."""
        return checked_context(self._settings, listener).options

    def _tls(self, listener: Endpoint) -> TlsSecurity:
        settings = self._settings
        rules = replacement_rules(settings, listener.name, is_between_nodes=_is_between_nodes(settings, listener))
        source = checked_context(settings, listener, rules)
        self._contexts[listener] = source
        return TlsSecurity(
            source, parse_mapping_rules(settings.for_listener(listener.name)["ssl.principal.mapping.rules"])
        )

    def sasl(self, listener: Endpoint) -> SaslSecurity:
        """Return the mechanisms of a listener. Raise SettingError where they cannot be used."""
        settings = self._settings
        names = enabled_mechanisms(settings, listener.name)
        mechanisms = {name: self._mechanism(listener.name, name) for name in names}
        self._mechanisms[listener.name] = mechanisms
        return SaslSecurity(
            mechanisms, settings["connection.failed.authentication.delay.ms"], settings["sasl.server.max.receive.size"]
        )

    def _change_mechanisms(self, listener: str, mechanisms: dict[str, SaslMechanism]) -> None:
        """Enable and disable mechanisms of an open listener. Connections that have logged in stay open."""
        wanted = enabled_mechanisms(self._settings, listener)
        for name in [name for name in mechanisms if name not in wanted]:
            del mechanisms[name]
        for name in [name for name in wanted if name not in mechanisms]:
            try:
                mechanisms[name] = self._mechanism(listener, name)
            except SettingError as error:
                _log.error("listener %s does not accept %s: %s", listener, name, error)

    def _mechanism(self, listener: str, name: str) -> SaslMechanism:
        max_reauth_ms = self._settings.for_listener(listener, name)["connections.max.reauth.ms"]
        if name == PLAIN:
            return PlainMechanism(partial(self._plain_users, listener), max_reauth_ms)
        if name == OAUTHBEARER:
            return self._oauth_bearer(listener, max_reauth_ms)
        mechanism = SCRAM_MECHANISMS[name]
        return ScramServerMechanism(mechanism, partial(self.credential, mechanism), max_reauth_ms)

    def _oauth_bearer(self, listener: str, max_reauth_ms: int) -> SaslMechanism:
        own = self._settings.for_listener(listener, OAUTHBEARER)
        url = str(own["sasl.oauthbearer.jwks.endpoint.url"])
        try:
            keys = OAuthKeys(url, own["sasl.oauthbearer.jwks.endpoint.refresh.ms"])
        except MissingPackageError as error:
            raise SettingError("sasl.enabled.mechanisms", OAUTHBEARER, str(error)) from None
        if url.startswith("file:"):
            keys.refresh()
        else:  # a provider that does not answer must not delay the event loop
            asyncio.get_running_loop().run_in_executor(None, keys.refresh)
        self._keys.append(keys)
        return OAuthBearerMechanism(
            keys,
            issuer=str(own["sasl.oauthbearer.expected.issuer"]),
            audiences=own["sasl.oauthbearer.expected.audience"],
            clock_skew_s=own["sasl.oauthbearer.clock.skew.seconds"],
            subject_claim=str(own["sasl.oauthbearer.sub.claim.name"]),
            max_reauth_ms=max_reauth_ms,
        )

    def _report_bad_login(self, listener: str) -> None:
        try:
            login_module(self._settings, listener, PLAIN)
        except SettingError as error:
            _log.error("listener %s has no users of PLAIN: %s", listener, error)

    def _plain_users(self, listener: str) -> Mapping[str, str]:
        """Return no users if the metadata has a text that cannot be parsed: another controller may have stored it."""
        try:
            module = login_module(self._settings, listener, PLAIN)
        except SettingError:
            return {}
        return module.users if module is not None else {}

    def credential(self, mechanism: ScramMechanism, user: str, is_token: bool) -> ScramCredential | None:
        if is_token:
            return self._tokens.find(mechanism, user)
        record = self._image().scram_credentials.get((user, mechanism.code))
        if record is None:
            return None
        return ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )


def checked_context(settings: Settings, listener: Endpoint, rules: ReplacementRules | None = None) -> ReloadingContext:
    """Return the TLS context of the listener. Raise SettingError if its keys and certificates cannot be used."""
    try:
        options = tls_options(settings, listener.name, client_auth(settings, listener))
        return ReloadingContext(options, server_context, None if rules is None else rules.check)
    except TlsConfigError as error:
        raise SettingError(f"listener {listener.name}", None, str(error)) from None


def _check_replacement(wanted: Settings, listener: Endpoint, source: ReloadingContext) -> None:
    options = tls_options(wanted, listener.name, client_auth(wanted, listener))
    if options == source.options and not source.is_stale:
        return
    try:
        source.check(options)
    except TlsConfigError as error:
        raise SettingError(f"listener {listener.name}", None, str(error)) from None


def _is_between_nodes(settings: Settings, listener: Endpoint) -> bool:
    """Return whether other nodes connect to this listener, and this node to listeners like it."""
    is_controller = listener.name in settings["controller.listener.names"]
    return is_controller or listener.name == settings.inter_broker_listener


def _change(name: str, source: ReloadingContext, options: TlsOptions) -> None:
    try:
        source.change_to(options)
    except TlsConfigError as error:
        _log.error("listener %s keeps its certificates: %s", name, error)
    else:
        _log.info("listener %s uses other certificates", name)
