"""What the settings say about the security of a listener, and the checks of these settings.

listener.name.NAME.SETTING              for one listener, else SETTING
listener.name.NAME.MECHANISM.SETTING    for one SASL mechanism of a listener
"""

from typing import Any

from sskafka.model.listeners import PLAINTEXT, Endpoint
from sskafka.model.security.certificate_names import MappingRuleError, parse_mapping_rules
from sskafka.model.security.jaas import JaasError, LoginModule, parse_jaas
from sskafka.model.security.sasl_messages import OAUTHBEARER, PLAIN
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.model.setting import SettingError

SASL_MECHANISMS = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER)
JAAS = "sasl.jaas.config"
OAUTH_REQUIRED = (
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.expected.audience",
)


def prefixed(listener: str, mechanism: str, name: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{name}"


def mechanism_setting(settings: Any, listener: str, mechanism: str, name: str) -> Any:
    """Return the value for a mechanism of a listener, else that of the listener, else the broker's."""
    key = prefixed(listener, mechanism, name)
    configured = next((layer[key] for layer in settings.layers() if key in layer), None)
    return settings.for_listener(listener, name) if configured is None else configured.value


def login_module(settings: Any, listener: str, mechanism: str) -> LoginModule | None:
    """Return the JAAS configuration of a mechanism; None where there is none. Raise SettingError if it is invalid."""
    key = prefixed(listener, mechanism, JAAS)
    text = next((layer[key].value for layer in settings.layers() if key in layer), None)
    if text is None:
        return None
    try:
        return parse_jaas(text)
    except JaasError as error:
        raise SettingError(key, "***", str(error)) from None


def enabled_mechanisms(settings: Any, listener: str) -> tuple[str, ...]:
    mechanisms: tuple[str, ...] = settings.for_listener(listener, "sasl.enabled.mechanisms")
    return mechanisms


def client_auth(settings: Any, listener: Endpoint) -> str:
    """Return ssl.client.auth. A SASL_SSL listener heeds only its own value, as in Apache Kafka (KIP-684)."""
    if not listener.uses_sasl:
        value: str = settings.for_listener(listener.name, "ssl.client.auth")
        return value
    key = f"listener.name.{listener.name.lower()}.ssl.client.auth"
    return next((str(layer[key].value) for layer in settings.layers() if key in layer), "none")


def check_security(settings: Any) -> None:
    """Raise SettingError where listeners cannot authenticate their clients as configured."""
    _check_jaas_names(settings)
    _check_links(settings)
    for listener in (*settings.listeners, *settings.controller_listeners):
        if listener.uses_sasl:
            _check_sasl(settings, listener.name)
        if listener.uses_tls:
            _check_mapping_rules(settings, listener.name)


def _check_links(settings: Any) -> None:
    endpoints = [settings.quorum_endpoint] if settings["controller.listener.names"] else []
    if settings.listeners:
        endpoints.append(settings.inter_broker_endpoint)
    for endpoint in endpoints:
        if endpoint.protocol != PLAINTEXT:
            problem = "nodes talk to each other over PLAINTEXT alone; name such a listener"
            raise SettingError("inter.broker.listener.name", endpoint.name, problem)


def _check_jaas_names(settings: Any) -> None:
    for layer in settings.layers():
        for name in layer:
            is_jaas = name == JAAS or (name.startswith("listener.name.") and name.endswith(f".{JAAS}"))
            if is_jaas and name.removesuffix(f".{JAAS}").rpartition(".")[2].upper() not in SASL_MECHANISMS:
                problem = "name listener and mechanism: listener.name.NAME.MECHANISM.sasl.jaas.config"
                raise SettingError(name, "***", f"it would not be used; {problem}")


def _check_sasl(settings: Any, listener: str) -> None:
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
            if not mechanism_setting(settings, listener, OAUTHBEARER, name):
                raise SettingError(name, None, f"must be set, because listener {listener} accepts OAUTHBEARER")


def _check_mapping_rules(settings: Any, listener: str) -> None:
    rules = settings.for_listener(listener, "ssl.principal.mapping.rules")
    try:
        parse_mapping_rules(rules)
    except MappingRuleError as error:
        raise SettingError("ssl.principal.mapping.rules", rules, str(error)) from None
