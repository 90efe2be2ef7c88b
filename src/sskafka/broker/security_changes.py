"""Checks changes of keys, certificates and logins while a node runs, before they are stored.

A change that cannot be used is refused, and so is one after which this node could not reach other nodes any more, as
far as this node can know:

    key and trust stores    the rules of runtime/tls/replacement.py
    PLAIN                   the listener of this node does not list the new user, or lists another password
    SCRAM                   the metadata has no credential of the new user, or one of another password
    ACLs                    the new user may not act for the cluster, which the old one may

A login that the listener of this node refuses already is not a reason: it may be changed in several steps.
"""

import asyncio
from collections.abc import Callable, Iterator

from sskafka.broker.listener_security import FindCredential, SecureListeners
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.node_security import link_properties
from sskafka.client.security import client_tls_options
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.listeners import Endpoint
from sskafka.model.security.jaas import LoginModule
from sskafka.model.security.listener_settings import JAAS, link_mechanism, login_module, prefixed, sasl_links
from sskafka.model.security.mechanisms import PLAIN
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramCredential
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.model.values import value
from sskafka.runtime.tls.contexts import client_context
from sskafka.runtime.tls.stores import TlsConfigError
from sskafka.servers.adr.caller import AdrCaller
from sskafka.servers.kafka.authorization import Authorizer

CREDENTIAL_ATTEMPTS = 5
CREDENTIAL_PAUSE_S = 0.2
"""The metadata of this node may be older than a credential that was changed just now."""
ANY_HOST = "127.0.0.1"
"""The rights of nodes do not depend on their addresses, as a rule."""


@value
class NodeLogin:
    """The user and password with which this node connects to listeners like `endpoint`."""

    endpoint: Endpoint
    mechanism: str
    module: LoginModule

    @property
    def user(self) -> str:
        return self.module.options.get("username", "")

    @property
    def key(self) -> str:
        return prefixed(self.endpoint.name, self.mechanism, JAAS)

    @property
    def is_token(self) -> bool:
        return self.module.options.get("tokenauth", "").lower() == "true"

    def __repr__(self) -> str:
        return f"NodeLogin({self.user!r}, {self.endpoint.name})"


class SecurityChanges:
    def __init__(self, secure: Callable[[], SecureListeners], authorizer: Authorizer) -> None:
        self._secure = secure
        self._authorizer = authorizer

    async def check(self, current: Settings, wanted: Settings) -> None:
        """Raise SettingError if this node cannot use the new settings, or could not reach other nodes with them."""
        secure = self._secure()
        await secure.settled()
        await asyncio.to_thread(secure.check, wanted)
        await asyncio.to_thread(_check_stores_of_links, wanted)
        before = {login.endpoint.name: login for login in node_logins(current)}
        for login in node_logins(wanted):
            old = before.get(login.endpoint.name)
            if old is None or login == old:
                continue
            await _check_login(old, login, wanted, secure.credential)
            self._check_rights(old, login)

    def _check_rights(self, old: NodeLogin, new: NodeLogin) -> None:
        if self._may_act(old) and not self._may_act(new):
            problem = f"User:{new.user} may not act for the cluster, as User:{old.user} may"
            remedy = "add it to super.users of all nodes, or allow it CLUSTER_ACTION on the cluster"
            raise SettingError(new.key, "***", f"{problem}; {remedy}")

    def _may_act(self, login: NodeLogin) -> bool:
        caller = AdrCaller(f"User:{login.user}", ANY_HOST, login.endpoint.name, "AlterConfigs")
        return self._authorizer.would_allow(caller, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)


def node_logins(settings: Settings) -> Iterator[NodeLogin]:
    """Yield the logins with which this node connects to brokers and to controllers, except those with OAuth tokens."""
    for endpoint in sasl_links(settings):
        mechanism = link_mechanism(settings, endpoint)
        module = login_module(settings, endpoint.name, mechanism)
        if module is not None and (mechanism == PLAIN or mechanism in SCRAM_MECHANISMS):
            yield NodeLogin(endpoint, mechanism, module)


def _check_stores_of_links(wanted: Settings) -> None:
    """Raise SettingError if connections to controllers on other nodes cannot use the new stores."""
    endpoint = wanted.quorum_endpoint
    if not endpoint.uses_tls:
        return
    try:
        client_context(client_tls_options(configured(ConnectionConfig, link_properties(wanted, endpoint))))
    except TlsConfigError as error:
        raise SettingError(f"listener {endpoint.name}", None, str(error)) from None


async def _check_login(old: NodeLogin, new: NodeLogin, wanted: Settings, find: FindCredential) -> None:
    if old.mechanism == new.mechanism == PLAIN and not _is_listed(old):
        return
    refusal = await asyncio.to_thread(_refusal, new, wanted, find)
    for _ in range(CREDENTIAL_ATTEMPTS):
        if not refusal or new.mechanism == PLAIN:
            break
        await asyncio.sleep(CREDENTIAL_PAUSE_S)
        refusal = await asyncio.to_thread(_refusal, new, wanted, find)
    if refusal:
        raise SettingError(new.key, "***", f"other nodes would refuse the login of this node: {refusal}")


def _refusal(login: NodeLogin, settings: Settings, find: FindCredential) -> str:
    if login.mechanism == PLAIN:
        own = {listener.name for listener in (*settings.listeners, *settings.controller_listeners)}
        if login.endpoint.name not in own or _is_listed(login):
            return ""
        return f'there is no user_{login.user}="..." with the same password in this setting'
    credential = find(SCRAM_MECHANISMS[login.mechanism], login.user, login.is_token)
    if credential is None:
        return f"there is no {login.mechanism} credential of user {login.user}; add the user first"
    if not _has_password(credential, login):
        return f"the {login.mechanism} credential of user {login.user} is that of another password"
    return ""


def _is_listed(login: NodeLogin) -> bool:
    return login.module.users.get(login.user) == login.module.options.get("password")


def _has_password(credential: ScramCredential, login: NodeLogin) -> bool:
    mechanism = SCRAM_MECHANISMS[login.mechanism]
    password = login.module.options.get("password", "")
    salted = mechanism.salted_password(password, credential.salt, credential.iterations)
    derived = ScramCredential.of_salted_password(mechanism, salted, credential.salt, credential.iterations)
    return derived.stored_key == credential.stored_key
