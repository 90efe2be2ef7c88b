"""The client properties of a pipeline, above all those of TLS and SASL.

Everything that connects to the brokers uses them: the runner itself, and Spark's queries, whose options have the
prefix `kafka.` as those of Spark's own connector.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sskafka.client.config import ConnectionConfig, configured, unknown_properties
from sskafka.model.security.jaas import JaasError, parse_jaas
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.option_reader import PROPERTY_PREFIX
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options

CLIENT_ID = "sskafka-pipeline"
JAAS = "sasl.jaas.config"
SECRET_LENGTH_MIN: Final = 4
"""Shorter secrets are not masked: they occur in other words."""

_SIMILARITY_MIN = 0.9
"""Minimum similarity of an unknown property to a known one that counts as a misspelling. Without this check, the
property would be ignored, and connections would be unprotected."""
_SECRET_NAMES = ("password", "secret", JAAS, "keystore.key", "key.pem")
_NOT_SECRET_OPTIONS = ("username", "clientId", "scope", "tokenauth")
_JAVA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": JAAS,
    "sasl.password": JAAS,
    "ssl.ca.location": "ssl.truststore.location with ssl.truststore.type: PEM",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location with ssl.keystore.type: PEM",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.location with ssl.keystore.type: PEM",
    "ssl.key.pem": "ssl.keystore.key",
}


def pipeline_connection(properties: Mapping[str, str]) -> ConnectionConfig:
    """Return how a pipeline connects, for requests that are not made by Spark. Raise ConfigError."""
    return configured(ConnectionConfig, {"client.id": CLIENT_ID, **properties})


def as_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties as options of a connector."""
    return {f"{PROPERTY_PREFIX}{name}": text for name, text in properties.items()}


def property_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and the property; an empty name if several properties do not fit together."""
    for name in properties:
        if name.startswith(PROPERTY_PREFIX):
            yield name, f"leave out the prefix: {name.removeprefix(PROPERTY_PREFIX)}"
            return
    if "bootstrap.servers" in properties:
        yield "bootstrap.servers", "is given by --bootstrap-server"
        return
    near = unknown_properties(filter(_is_security, properties), cutoff=_SIMILARITY_MIN)
    misspelled = [(name, meant) for name, meant in near.items() if meant is not None]
    if misspelled:
        yield from ((name, f"there is no such property; did you mean {meant}?") for name, meant in misspelled)
        return
    try:
        source_options({BOOTSTRAP: "localhost:9092", "subscribe": "any", **as_options(properties)}, streaming=True)
    except OptionError as error:
        name = error.option.removeprefix(PROPERTY_PREFIX)
        yield name if name in properties else "", error.problem


def _is_security(name: str) -> bool:
    return name.startswith(("security.", "sasl.", "ssl."))


def not_for_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the names that only librdkafka and SSKafka have, and what Java's clients have for them."""
    return {name: _JAVA_NAMES[name] for name in properties if name in _JAVA_NAMES}


def secret_values(properties: Mapping[str, str]) -> frozenset[str]:
    """Return what must not appear in any output: passwords, keys, and the passwords within sasl.jaas.config."""
    found = {text for name, text in properties.items() if name.endswith(_SECRET_NAMES)}
    found |= set(_jaas_secrets(properties.get(JAAS, "")))
    return frozenset(text for text in found if len(text) >= SECRET_LENGTH_MIN)


def _jaas_secrets(text: str) -> Iterator[str]:
    if not text:
        return
    try:
        module = parse_jaas(text)
    except JaasError:
        return
    yield from (value for name, value in module.options.items() if name not in _NOT_SECRET_OPTIONS)
