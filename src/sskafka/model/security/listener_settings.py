"""The security settings of a listener, and their validation.

listener.name.NAME.SETTING              for one listener, else SETTING
listener.name.NAME.MECHANISM.SETTING    for one SASL mechanism of a listener
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sskafka.model.listeners import HTTP_NAME, PLAINTEXT, Endpoint, parse_protocol_map
from sskafka.model.security.certificate_names import MappingRuleError, parse_mapping_rules
from sskafka.model.security.jaas import JaasError, LoginModule, parse_jaas
from sskafka.model.security.mechanisms import OAUTHBEARER, PLAIN, SASL_MECHANISMS, SCRAM_NAMES
from sskafka.model.setting import SettingError

if TYPE_CHECKING:
    from sskafka.model.settings import Settings

JAAS = "sasl.jaas.config"
OAUTH_REQUIRED = (
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.expected.audience",
)


def prefixed(listener: str, mechanism: str, name: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{name}"


def login_module(settings: "Settings", listener: str, mechanism: str) -> LoginModule | None:
    """Return the JAAS configuration of a mechanism; None if it has none. Raise SettingError if it is invalid."""
    key = prefixed(listener, mechanism, JAAS)
    text = next((layer[key].value for layer in settings.layers() if key in layer), None)
    return None if text is None else parsed_jaas(key, str(text))


def enabled_mechanisms(settings: "Settings", listener: str) -> tuple[str, ...]:
    return settings.for_listener(listener)["sasl.enabled.mechanisms"]


def client_auth(settings: "Settings", listener: Endpoint) -> str:
    """Return ssl.client.auth. For a SASL_SSL listener only its own value counts, as in Apache Kafka (KIP-684)."""
    if not listener.uses_sasl:
        return settings.for_listener(listener.name)["ssl.client.auth"]
    key = f"listener.name.{listener.name.lower()}.ssl.client.auth"
    return next((str(layer[key].value) for layer in settings.layers() if key in layer), "none")


def check_security(settings: "Settings") -> None:
    """Raise SettingError if listeners cannot authenticate their clients as configured."""
    _check_jaas(settings)
    _check_super_users(settings)
    _check_links(settings)
    _check_adr(settings)
    http = settings.http_endpoint
    if http is not None and http.protocol != PLAINTEXT:
        _check_http(settings, http)
    for listener in (*settings.listeners, *settings.controller_listeners, *((http,) if http is not None else ())):
        if listener.uses_sasl:
            _check_sasl(settings, listener.name)
        if listener.uses_tls:
            _check_mapping_rules(settings, listener.name)


def link_mechanism(settings: "Settings", endpoint: Endpoint) -> str:
    """Return the SASL mechanism with which this node connects to listeners like `endpoint`."""
    return str(settings.for_listener(endpoint.name)[_mechanism_setting(settings, endpoint)])


def _mechanism_setting(settings: "Settings", endpoint: Endpoint) -> str:
    is_controller = endpoint.name in settings["controller.listener.names"]
    return "sasl.mechanism.controller.protocol" if is_controller else "sasl.mechanism.inter.broker.protocol"


def sasl_links(settings: "Settings") -> Iterator[Endpoint]:
    """Yield the listeners of other nodes, configured like this node's own, where this node logs in with SASL."""
    endpoints = [settings.quorum_endpoint] if settings["controller.listener.names"] else []
    if settings.listeners:
        endpoints.append(settings.inter_broker_endpoint)
    yield from (endpoint for endpoint in endpoints if endpoint.uses_sasl)


def _check_links(settings: "Settings") -> None:
    """Raise SettingError if this node cannot connect to listeners of other nodes that are configured like its own."""
    for endpoint in sasl_links(settings):
        mechanism, name = link_mechanism(settings, endpoint), _mechanism_setting(settings, endpoint)
        is_controller = endpoint.name in settings["controller.listener.names"]
        if mechanism not in SASL_MECHANISMS:
            problem = f"nodes connect to listener {endpoint.name}: supported are {', '.join(SASL_MECHANISMS)}"
            raise SettingError(name, mechanism, problem)
        if not is_controller and mechanism not in enabled_mechanisms(settings, endpoint.name):
            problem = f"must be one of sasl.enabled.mechanisms of listener {endpoint.name}, where brokers log in"
            raise SettingError(name, mechanism, problem)
        if mechanism in SCRAM_NAMES and _reaches_voters(settings, endpoint):
            problem = f"nodes reach voters at listener {endpoint.name}, before the metadata with credentials is known"
            raise SettingError(name, mechanism, f"{problem}; use PLAIN, OAUTHBEARER, or SSL with ssl.client.auth")
        module = login_module(settings, endpoint.name, mechanism)
        if mechanism != OAUTHBEARER and (module is None or not {"username", "password"} <= set(module.options)):
            problem = 'needs username="..." and password="...", with which nodes connect to each other'
            raise SettingError(prefixed(endpoint.name, mechanism, JAAS), None, problem)


def _check_adr(settings: "Settings") -> None:
    """Raise SettingError for a server without authentication on a node whose listeners all need it."""
    listeners = settings.listeners
    if settings["adr.listener"] and listeners and all(listener.protocol != PLAINTEXT for listener in listeners):
        problem = "its clients are anonymous, and every Kafka listener of this broker needs authentication"
        raise SettingError("adr.listener", settings["adr.listener"], f"{problem}; remove the setting")


def _check_http(settings: "Settings", http: Endpoint) -> None:
    if any(listener.name == HTTP_NAME for listener in (*settings.listeners, *settings.controller_listeners)):
        problem = "the prefix listener.name.http. belongs to the HTTP server; give the Kafka listener another name"
        raise SettingError("http.security.protocol", http.protocol, problem)
    if settings["lab.api"]:
        problem = "callers of the lab's API are anonymous; set http.security.protocol=PLAINTEXT, or remove lab.api"
        raise SettingError("lab.api", "true", problem)


def http_serves_records(settings: "Settings", http: Endpoint) -> bool:
    """Return whether the HTTP server may serve more than health and metrics.

    Anonymous clients are served only where Kafka clients may be anonymous, too, or where an authorizer decides."""
    has_names = http.uses_sasl or (http.uses_tls and client_auth(settings, http) == "required")
    may_be_anonymous = any(listener.protocol == PLAINTEXT for listener in settings.listeners)
    return has_names or may_be_anonymous or bool(settings["authorizer.class.name"])


def _reaches_voters(settings: "Settings", endpoint: Endpoint) -> bool:
    """Return whether voters on other nodes are reached at listeners like `endpoint`."""
    is_alone = set(settings["process.roles"]) == {"broker", "controller"} and len(settings.voters) < 2
    return not is_alone and endpoint.name == settings.quorum_endpoint.name


def _check_super_users(settings: "Settings") -> None:
    """Raise SettingError for a super user that no principal can be, as Apache Kafka does."""
    if not settings["authorizer.class.name"]:
        return
    for item in (settings["super.users"] or "").split(";"):
        kind, _, name = item.strip().partition(":")
        if item.strip() and not (kind and name):
            problem = f"expected principals such as User:alice, separated by semicolons, not {item.strip()!r}"
            raise SettingError("super.users", settings["super.users"], problem)


def unknown_listener_names(settings: "Settings") -> list[str]:
    """Return the static settings with the prefix of a listener that this node neither has nor names."""
    named = {listener.name for listener in (*settings.listeners, *settings.controller_listeners)}
    named |= {HTTP_NAME, *(name.upper() for name in settings["controller.listener.names"])}
    if settings["inter.broker.listener.name"]:
        named.add(settings["inter.broker.listener.name"].upper())
    if "listener.security.protocol.map" in settings.static:
        named |= {name.upper() for name in parse_protocol_map(settings["listener.security.protocol.map"])}
    prefixed_names = [name for name in settings.static if name.startswith("listener.name.")]
    return [name for name in prefixed_names if name.split(".")[2].upper() not in named]


def _check_jaas(settings: "Settings") -> None:
    for layer in settings.layers():
        for name, configured in layer.items():
            is_jaas = name == JAAS or (name.startswith("listener.name.") and name.endswith(f".{JAAS}"))
            if not is_jaas:
                continue
            if name.removesuffix(f".{JAAS}").rpartition(".")[2].upper() not in SASL_MECHANISMS:
                problem = "name listener and mechanism: listener.name.NAME.MECHANISM.sasl.jaas.config"
                raise SettingError(name, "***", f"it would not be used; {problem}")
            parsed_jaas(name, str(configured.value))


def parsed_jaas(name: str, text: str) -> LoginModule:
    """Return the login module of the setting `name`; raise SettingError, without the text, if there is none."""
    try:
        return parse_jaas(text)
    except JaasError as error:
        raise SettingError(name, "***", str(error)) from None


def _check_sasl(settings: "Settings", listener: str) -> None:
    enabled = enabled_mechanisms(settings, listener)
    unknown = [mechanism for mechanism in enabled if mechanism not in SASL_MECHANISMS]
    if unknown or not enabled:
        problem = f"listener {listener}: supported are {', '.join(SASL_MECHANISMS)}"
        raise SettingError("sasl.enabled.mechanisms", ",".join(enabled), problem)
    for mechanism in enabled:
        module = login_module(settings, listener, mechanism)
        if mechanism == PLAIN and (module is None or not module.users):
            problem = 'needs the users of the listener: org...PlainLoginModule required user_NAME="PASSWORD";'
            raise SettingError(prefixed(listener, mechanism, JAAS), None, problem)
    if OAUTHBEARER in enabled:
        for name in OAUTH_REQUIRED:
            if not settings.for_listener(listener, OAUTHBEARER)[name]:
                raise SettingError(name, None, f"must be set, because listener {listener} accepts OAUTHBEARER")


def _check_mapping_rules(settings: "Settings", listener: str) -> None:
    rules = settings.for_listener(listener)["ssl.principal.mapping.rules"]
    try:
        parse_mapping_rules(rules)
    except MappingRuleError as error:
        raise SettingError("ssl.principal.mapping.rules", rules, str(error)) from None
