"""Client properties under Kafka's names: `linger.ms` is the field `linger_ms`.

Each part of the client has its own frozen dataclass. `configured` fills one of them from properties and ignores keys of
the others; `unknown_properties` finds keys that belong to none of them.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from sskafka.client.errors import ConfigError
from sskafka.model.listeners import PLAINTEXT
from sskafka.model.setting import nearest
from sskafka.model.values import value
from sskafka.records.partitioner import KEY_HASHES, KeyHash


@value
class ConnectionConfig:
    """Properties that every client has."""

    client_id: str = "sskafka"
    request_timeout_ms: int = 30_000
    socket_connection_setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    default_api_timeout_ms: int = 60_000
    security_protocol: str = PLAINTEXT
    sasl_mechanism: str = ""
    sasl_jaas_config: str = ""
    ssl_keystore_location: str = ""
    ssl_keystore_password: str = ""
    ssl_keystore_type: str = ""
    ssl_keystore_key: str = ""
    ssl_keystore_certificate_chain: str = ""
    ssl_key_password: str = ""
    ssl_truststore_location: str = ""
    ssl_truststore_password: str = ""
    ssl_truststore_type: str = ""
    ssl_truststore_certificates: str = ""
    ssl_enabled_protocols: str = "TLSv1.2,TLSv1.3"
    ssl_protocol: str = "TLSv1.3"
    ssl_cipher_suites: str = ""
    ssl_endpoint_identification_algorithm: str = "https"
    sasl_oauthbearer_token_endpoint_url: str = ""
    sasl_oauthbearer_client_credentials_client_id: str = ""
    sasl_oauthbearer_client_credentials_client_secret: str = ""
    sasl_oauthbearer_scope: str = ""
    sasl_mechanisms: str = ""
    """This property and those after it are librdkafka's names for properties above."""
    sasl_username: str = ""
    sasl_password: str = ""
    ssl_ca_location: str = ""
    ssl_ca_pem: str = ""
    ssl_certificate_location: str = ""
    ssl_certificate_pem: str = ""
    ssl_key_location: str = ""
    ssl_key_pem: str = ""

    def __repr__(self) -> str:
        """Show no secrets: configurations get into logs."""
        return f"ConnectionConfig(client_id={self.client_id!r}, security_protocol={self.security_protocol!r})"


@value
class ProducerConfig:
    acks: str = "all"
    linger_ms: int = 5
    batch_size: int = 128 * 1024
    max_request_size: int = 1024 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    compression_type: str = "none"
    enable_idempotence: bool = True
    retries: int = 2**31 - 1
    delivery_timeout_ms: int = 120_000
    partitioner_hash: str = "murmur2"
    allow_auto_create_topics: bool = True

    @property
    def required_acks(self) -> int:
        """`acks` as the number in Produce requests."""
        numbers = {"all": -1, "-1": -1, "0": 0, "1": 1}
        if self.acks not in numbers:
            raise ConfigError(f"acks={self.acks!r}: expected one of {', '.join(numbers)}")
        return numbers[self.acks]

    @property
    def key_hash(self) -> KeyHash:
        """The hash function that maps keys to partitions."""
        if self.partitioner_hash not in KEY_HASHES:
            raise ConfigError(f"partitioner.hash={self.partitioner_hash!r}: expected one of {', '.join(KEY_HASHES)}")
        return KEY_HASHES[self.partitioner_hash]

    @property
    def is_idempotent(self) -> bool:
        """Sequence numbers need acks=all: only then does the producer learn whether all replicas have the batch."""
        return self.enable_idempotence and self.required_acks == -1


@value
class ConsumerConfig:
    isolation_level: str = "read_uncommitted"
    auto_offset_reset: str = "none"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True
    client_rack: str = ""

    @property
    def isolation(self) -> int:
        """`isolation.level` as the number in Fetch and ListOffsets requests."""
        numbers = {"read_uncommitted": 0, "read_committed": 1}
        if self.isolation_level not in numbers:
            raise ConfigError(f"isolation.level={self.isolation_level!r}: expected one of {', '.join(numbers)}")
        return numbers[self.isolation_level]


@value
class GroupConfig:
    """Properties of consumers that are members of a group."""

    group_id: str = ""
    """Empty: the consumer belongs to no group."""
    group_protocol: str = "classic"
    group_instance_id: str = ""
    """Id of a static member, which keeps its partitions while it restarts; empty for a dynamic member."""
    group_remote_assignor: str = ""
    """The coordinator's assignor for `group.protocol=consumer`; empty: the coordinator chooses."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    partition_assignment_strategy: str = "range,cooperative-sticky"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether `group.protocol` is `consumer` (KIP-848)."""
        protocols = ("classic", "consumer")
        if self.group_protocol.lower() not in protocols:
            raise ConfigError(f"group.protocol={self.group_protocol!r}: expected one of {', '.join(protocols)}")
        return self.group_protocol.lower() == "consumer"

    @property
    def instance_id(self) -> str | None:
        return self.group_instance_id or None

    @property
    def strategies(self) -> tuple[str, ...]:
        """The names in `partition.assignment.strategy`, in the order of preference."""
        return tuple(name.strip() for name in self.partition_assignment_strategy.split(",") if name.strip())


CONFIG_CLASSES: tuple[type[Any], ...] = (ConnectionConfig, ProducerConfig, ConsumerConfig, GroupConfig)


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


C = TypeVar("C", bound=_Dataclass)


def configured(cls: type[C], properties: Mapping[str, str]) -> C:
    """Return a `cls` filled from `properties`; raise ConfigError for a value that cannot be parsed."""
    types = get_type_hints(cls)
    values = {}
    for field in dataclasses.fields(cls):
        key = property_name(field.name)
        if key in properties:
            values[field.name] = _parse(key, properties[key], types[field.name])
    return cls(**values)


def unknown_properties(properties: Iterable[str], *, cutoff: float = 0.6) -> dict[str, str | None]:
    """Map each unknown key to the most similar known key, or to None if no similarity reaches `cutoff`."""
    known = [property_name(field.name) for cls in CONFIG_CLASSES for field in dataclasses.fields(cls)]
    return {key: nearest(key, known, cutoff=cutoff) for key in properties if key not in known}


def properties_from(options: Mapping[str, object]) -> dict[str, str]:
    """Turn keyword options such as `linger_ms=5` or `**{"linger.ms": 5}` into properties.

    Raise ConfigError for unknown names."""
    properties = {property_name(key): _as_text(value) for key, value in options.items()}
    for key, near in unknown_properties(properties).items():
        raise ConfigError(f"there is no client property {key!r}" + (f"; did you mean {near}?" if near else ""))
    return properties


def group_properties() -> frozenset[str]:
    """Return the properties that only members of groups have, `group.id` excepted."""
    return frozenset(property_name(field.name) for field in dataclasses.fields(GroupConfig)) - {"group.id"}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def property_name(field_name: str) -> str:
    return field_name.replace("_", ".")


def _parse(key: str, text: str, kind: type) -> object:
    if kind is str:
        return text
    try:
        return {"true": True, "false": False}[text.lower()] if kind is bool else int(text)
    except (KeyError, ValueError):
        expected = "true or false" if kind is bool else "a whole number"
        raise ConfigError(f"{key}={text!r}: expected {expected}") from None
