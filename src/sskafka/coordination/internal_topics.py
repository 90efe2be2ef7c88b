"""The internal topics with the state of coordinators, and the partition of a group or transactional id in them.

Kafka's defaults require three replicas. A cluster with fewer brokers would have no coordinator at all, so the
replication factor is limited to the number of brokers: those that are registered, running or not, and the other members
of a combined quorum.
"""

from sskafka.metadata.image import ClusterImage
from sskafka.model.settings import Settings
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def internal_topic(name: str, settings: Settings, image: ClusterImage) -> CreatableTopic:
    """Return the CreateTopics request for an internal topic."""
    if name == CONSUMER_OFFSETS:
        return _offsets_topic(settings, image)
    assert name == TRANSACTION_STATE, name
    return _transactions_topic(settings, image)


def _offsets_topic(settings: Settings, image: ClusterImage) -> CreatableTopic:
    return _topic(
        CONSUMER_OFFSETS,
        settings["offsets.topic.num.partitions"],
        _replication_factor(settings["offsets.topic.replication.factor"], settings, image),
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(settings["offsets.topic.segment.bytes"]),
            "compression.type": "producer",
        },
    )


def _transactions_topic(settings: Settings, image: ClusterImage) -> CreatableTopic:
    replicas = _replication_factor(settings["transaction.state.log.replication.factor"], settings, image)
    return _topic(
        TRANSACTION_STATE,
        settings["transaction.state.log.num.partitions"],
        replicas,
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(settings["transaction.state.log.segment.bytes"]),
            "compression.type": "uncompressed",
            "min.insync.replicas": str(min(replicas, settings["transaction.state.log.min.isr"])),
            "unclean.leader.election.enable": "false",
        },
    )


def _topic(name: str, partitions: int, replicas: int, configs: dict[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
    )


def _replication_factor(wanted: int, settings: Settings, image: ClusterImage) -> int:
    is_combined = {"broker", "controller"} <= set(settings["process.roles"])
    expected = len(settings.voters) if is_combined else 0
    return max(1, min(wanted, max(len(image.brokers), expected)))


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: 31 * hash + code unit, for each UTF-16 code unit, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & _MASK
    return value - (1 << 32) if value & _SIGN else value


def partition_of(key: str, partition_count: int) -> int:
    """Return the absolute value as Kafka computes it: 0 for the smallest integer."""
    value = java_hash(key)
    return (0 if value == -_SIGN else abs(value)) % partition_count
