"""Every setting, by name: `BROKER_SETTINGS` and `TOPIC_SETTINGS`, in the order of the documentation's sections.

Everything else about settings is derived from here: server.properties, environment, `--set`, DescribeConfigs,
validation of topics, docs/configuration.md.
"""

from types import MappingProxyType

from sskafka.model.setting import Setting
from sskafka.model.settings_table.cluster import NODE, QUORUM, REPLICATION
from sskafka.model.settings_table.coordination import GROUPS, TRANSACTIONS
from sskafka.model.settings_table.network import NETWORK
from sskafka.model.settings_table.operations import OPERATIONS
from sskafka.model.settings_table.security import SECURITY
from sskafka.model.settings_table.sskafka import SSKAFKA
from sskafka.model.settings_table.storage import STORAGE
from sskafka.model.settings_table.tiered import TIERED
from sskafka.model.settings_table.topics import TOPICS
from sskafka.model.settings_table.unsupported import (
    NO_AUTHORIZER,
    NO_QUOTAS,
    NO_SASL,
    NO_SUCH_TOKEN_SETTING,
    NO_TLS,
)

BROKER_SECTIONS: MappingProxyType[str, tuple[Setting, ...]] = MappingProxyType(
    {
        "This node": NODE,
        "Listeners, connections, requests": NETWORK,
        "Storage": STORAGE,
        "Metadata quorum": QUORUM,
        "Replication": REPLICATION,
        "Groups and offsets": GROUPS,
        "Transactions and share groups": TRANSACTIONS,
        "Tiered storage": TIERED,
        "Security": SECURITY,
        "Quotas, policies, metrics": OPERATIONS,
        "Beyond Apache Kafka": SSKAFKA,
    }
)

BROKER_SETTINGS = MappingProxyType({row.name: row for section in BROKER_SECTIONS.values() for row in section})
TOPIC_SETTINGS = MappingProxyType({row.name: row for row in TOPICS})

ALIASES = MappingProxyType(
    {
        "broker.id": "node.id",
        "broker.number-of-partitions": "num.partitions",
        "internal.metadata.log.segment.bytes": "metadata.log.segment.bytes",
    }
)
"""Other spellings of a broker's settings."""

REMOVED_PREFIXES = MappingProxyType(
    {
        "zookeeper.": "KRaft replaces ZooKeeper: remove the key and list the quorum in controller.quorum.voters",
        "inter.broker.protocol.version": "the cluster's metadata.version feature replaces it: remove the key",
        "log.message.format.version": "the record format is always version 2: remove the key",
        "log.message.downconversion.enable": "old record formats are no longer served: remove the key",
    }
)
"""Settings that Kafka no longer has, with the replacement."""

KAFKA_ONLY_PREFIXES = (
    "remote.",
    "listener.name.",
    "share.coordinator.",
    "group.",
)
"""Prefixes of settings of which Apache Kafka has more than the table. These are never reported as misspelled."""

PROTECTION_PREFIXES = MappingProxyType(
    {
        "ssl.": NO_TLS,
        "sasl.": NO_SASL,
        "authorizer.": NO_AUTHORIZER,
        "password.encoder.": NO_TLS,
        "delegation.token.": NO_SUCH_TOKEN_SETTING,
        "quota.producer.": NO_QUOTAS,
        "quota.consumer.": NO_QUOTAS,
    }
)
"""Families of settings that promise protection. Settings with these prefixes that the table does not list are refused,
not ignored: a user who sets one expects the broker to be protected."""


def missing_protection(name: str) -> str | None:
    """Return why a setting that the table does not list is refused. `name` has no listener's prefix, but may have that
    of a SASL mechanism (plain.sasl.jaas.config)."""
    for prefix, reason in PROTECTION_PREFIXES.items():
        if name.startswith(prefix) or f".{prefix}" in name:
            return reason
    return None
