"""What the settings of the HTTP and ADR servers allow."""

import pytest

from sskafka.model.listeners import Endpoint
from sskafka.model.security.listener_settings import http_serves_records
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings

SASL = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'x required username="a" password="b" user_a="b";',
}
AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def resolve(**more: str) -> Settings:
    return Settings.resolve({"node.id": "1", "http.listener": ":8080", **more})


def test_the_http_server_is_an_endpoint_of_its_own() -> None:
    assert resolve(**{"http.security.protocol": "SSL"}).http_endpoint == Endpoint("HTTP", "", 8080, "SSL")
    assert Settings.resolve({"node.id": "1", "http.listener": ""}).http_endpoint is None


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"http.security.protocol": "HTTPS"}, "http.security.protocol"),
        ({"http.security.protocol": "SASL_SSL", "sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms"),
        (
            {"http.security.protocol": "SASL_SSL", "sasl.enabled.mechanisms": "PLAIN"},
            "listener.name.http.plain.sasl.jaas.config",
        ),
        (
            {"http.security.protocol": "SASL_SSL", "sasl.enabled.mechanisms": "OAUTHBEARER"},
            "sasl.oauthbearer.jwks.endpoint.url",
        ),
        (
            {"http.security.protocol": "SSL", "ssl.principal.mapping.rules": "RULE:("},
            "ssl.principal.mapping.rules",
        ),
        ({"http.security.protocol": "SSL", "lab.api": "true"}, "lab.api"),
        (
            {
                "http.security.protocol": "SSL",
                "listeners": "HTTP://:9092",
                "listener.security.protocol.map": "HTTP:PLAINTEXT",
            },
            "http.security.protocol",
        ),
    ],
)
def test_settings_that_cannot_protect_it_are_refused(settings: dict[str, str], key: str) -> None:
    with pytest.raises(SettingError) as refused:
        resolve(**settings)
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9093"}, True),
        (SASL, False),
        ({"listeners": "SSL://:9092", "security.inter.broker.protocol": "SSL"}, False),
        ({**SASL, **AUTHORIZER}, True),
        ({**SASL, "http.security.protocol": "SASL_SSL"}, True),
        ({**SASL, "http.security.protocol": "SSL"}, False),
        ({**SASL, "http.security.protocol": "SSL", "ssl.client.auth": "requested"}, False),
        ({**SASL, "http.security.protocol": "SSL", "ssl.client.auth": "required"}, True),
    ],
)
def test_when_clients_may_see_records(settings: dict[str, str], expected: bool) -> None:
    resolved = resolve(**settings)
    assert resolved.http_endpoint is not None
    assert http_serves_records(resolved, resolved.http_endpoint) is expected


@pytest.mark.parametrize(
    ("settings", "is_refused"),
    [
        ({}, False),
        (SASL, True),
        ({**SASL, **AUTHORIZER}, True),
        ({**SASL, "listeners": "SASL_PLAINTEXT://:9092,PLAINTEXT://:9093"}, False),
        ({"listeners": "SSL://:9092", "security.inter.broker.protocol": "SSL"}, True),
    ],
)
def test_the_adr_server_needs_a_listener_for_anonymous_clients(settings: dict[str, str], is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(SettingError, match="its clients are anonymous") as refused:
            resolve(**{**settings, "adr.listener": ":9180"})
        assert refused.value.key == "adr.listener"
    else:
        resolve(**{**settings, "adr.listener": ":9180"})
