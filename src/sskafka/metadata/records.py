"""The records of the metadata log. Every change of the cluster consists of one or more records.

The notation is that of `wire.schema`; `record_codec` frames the records. Fields that only newer versions have are
`ignorable`: if the cluster has an older metadata.version, `record_codec.version_for` selects a version without them.
"""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    UInt16,
    Uuid,
    data,
    ignorable,
    message,
    since,
    tagged,
)

MetadataRecord = Message
"""One of the dataclasses below."""

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
"""Log levels belong to a running process: no record has this type."""
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32

FENCE, UNFENCE = 1, -1
"""Values of `BrokerRegistrationChangeRecord.fenced`; 0 means no change."""


@message
class BrokerEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@message
class BrokerFeature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message
class RegisterBrokerRecord:
    """A broker registered; it is fenced until it has caught up. Its broker epoch is the offset of this record."""

    SCHEMA: ClassVar = data(key=0, versions=(0, 4), flexible_from=0)

    broker_id: Int32 = 0
    is_migrating_zk_broker: Annotated[Bool, since(2), ignorable] = False
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: Int64 = 0
    end_points: list[BrokerEndpoint] = field(default_factory=list)
    features: list[BrokerFeature] = field(default_factory=list)
    rack: String | None = ""
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, since(1), ignorable] = False
    log_dirs: Annotated[list[Uuid], tagged(0, since=3), ignorable] = field(default_factory=list)
    cordoned_log_dirs: Annotated[list[Uuid] | None, tagged(1, since=4), ignorable] = None


@message
class UnregisterBrokerRecord:
    SCHEMA: ClassVar = data(key=1, versions=(0, 0), flexible_from=0)

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@message
class TopicRecord:
    SCHEMA: ClassVar = data(key=2, versions=(0, 0), flexible_from=0)

    name: String = ""
    topic_id: Uuid = ZERO_UUID


@message
class PartitionRecord:
    SCHEMA: ClassVar = data(key=3, versions=(0, 2), flexible_from=0)

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[Int32] = field(default_factory=list)
    isr: list[Int32] = field(default_factory=list)
    removing_replicas: list[Int32] = field(default_factory=list)
    adding_replicas: list[Int32] = field(default_factory=list)
    leader: Int32 = NO_LEADER
    leader_recovery_state: Annotated[Int8, tagged(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[list[Uuid], since(1), ignorable] = field(default_factory=list)
    eligible_leader_replicas: Annotated[list[Int32] | None, tagged(1, since=2), ignorable] = None
    last_known_elr: Annotated[list[Int32] | None, tagged(2, since=2), ignorable] = None


@message
class ConfigRecord:
    """One config of a topic, a group, a node, a client metrics subscription, or all brokers (a broker without a name).

    A null value removes the config."""

    SCHEMA: ClassVar = data(key=4, versions=(0, 0), flexible_from=0)

    resource_type: Int8 = 0
    resource_name: String = ""
    name: String = ""
    value: String | None = ""


@message
class PartitionChangeRecord:
    """Changes of a partition; fields with default values do not change."""

    SCHEMA: ClassVar = data(key=5, versions=(0, 2), flexible_from=0)

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: Annotated[list[Int32] | None, tagged(0)] = None
    leader: Annotated[Int32, tagged(1)] = NO_LEADER_CHANGE
    replicas: Annotated[list[Int32] | None, tagged(2)] = None
    removing_replicas: Annotated[list[Int32] | None, tagged(3)] = None
    adding_replicas: Annotated[list[Int32] | None, tagged(4)] = None
    leader_recovery_state: Annotated[Int8, tagged(5)] = NO_RECOVERY_CHANGE
    eligible_leader_replicas: Annotated[list[Int32] | None, tagged(6, since=2), ignorable] = None
    last_known_elr: Annotated[list[Int32] | None, tagged(7, since=2), ignorable] = None
    directories: Annotated[list[Uuid] | None, tagged(8, since=1), ignorable] = None


@message
class FenceBrokerRecord:
    SCHEMA: ClassVar = data(key=7, versions=(0, 0), flexible_from=0)

    id: Int32 = 0
    epoch: Int64 = 0


@message
class UnfenceBrokerRecord:
    SCHEMA: ClassVar = data(key=8, versions=(0, 0), flexible_from=0)

    id: Int32 = 0
    epoch: Int64 = 0


@message
class RemoveTopicRecord:
    """Removes the topic with its partitions and configs."""

    SCHEMA: ClassVar = data(key=9, versions=(0, 0), flexible_from=0)

    topic_id: Uuid = ZERO_UUID


@message
class DelegationTokenRecord:
    SCHEMA: ClassVar = data(key=10, versions=(0, 0), flexible_from=0)

    owner: String = ""
    requester: String = ""
    renewers: list[String] = field(default_factory=list)
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: String = ""


@message
class UserScramCredentialRecord:
    SCHEMA: ClassVar = data(key=11, versions=(0, 0), flexible_from=0)

    name: String = ""
    mechanism: Int8 = 0
    salt: Bytes = b""
    stored_key: Bytes = b""
    server_key: Bytes = b""
    iterations: Int32 = 0


@message
class FeatureLevelRecord:
    """The finalized level of a feature; 0 removes it."""

    SCHEMA: ClassVar = data(key=12, versions=(0, 0), flexible_from=0)

    name: String = ""
    feature_level: Int16 = 0


@message
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@message
class ClientQuotaRecord:
    SCHEMA: ClassVar = data(key=14, versions=(0, 0), flexible_from=0)

    entity: list[EntityData] = field(default_factory=list)
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@message
class ProducerIdsRecord:
    """A block of producer ids was allocated to a broker; the next block starts at `next_producer_id`."""

    SCHEMA: ClassVar = data(key=15, versions=(0, 0), flexible_from=0)

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


@message
class BrokerRegistrationChangeRecord:
    SCHEMA: ClassVar = data(key=17, versions=(0, 3), flexible_from=0)

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, tagged(0)] = 0
    in_controlled_shutdown: Annotated[Int8, tagged(1, since=1), ignorable] = 0
    log_dirs: Annotated[list[Uuid], tagged(2, since=2), ignorable] = field(default_factory=list)
    cordoned_log_dirs: Annotated[list[Uuid] | None, tagged(3, since=3), ignorable] = None


@message
class AccessControlEntryRecord:
    SCHEMA: ClassVar = data(key=18, versions=(0, 0), flexible_from=0)

    id: Uuid = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 0
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class RemoveAccessControlEntryRecord:
    SCHEMA: ClassVar = data(key=19, versions=(0, 0), flexible_from=0)

    id: Uuid = ZERO_UUID


@message
class NoOpRecord:
    """Written by an idle controller, so that followers see the log advance."""

    SCHEMA: ClassVar = data(key=20, versions=(0, 0), flexible_from=0)


@message
class ZkMigrationStateRecord:
    SCHEMA: ClassVar = data(key=21, versions=(0, 0), flexible_from=0)

    zk_migration_state: Int8 = 0


@message
class RemoveUserScramCredentialRecord:
    SCHEMA: ClassVar = data(key=22, versions=(0, 0), flexible_from=0)

    name: String = ""
    mechanism: Int8 = 0


@message
class BeginTransactionRecord:
    """Starts a metadata transaction: the following records take effect when it ends."""

    SCHEMA: ClassVar = data(key=23, versions=(0, 0), flexible_from=0)

    name: Annotated[String | None, tagged(0)] = None


@message
class EndTransactionRecord:
    SCHEMA: ClassVar = data(key=24, versions=(0, 0), flexible_from=0)


@message
class AbortTransactionRecord:
    SCHEMA: ClassVar = data(key=25, versions=(0, 0), flexible_from=0)

    reason: Annotated[String | None, tagged(0)] = None


@message
class RemoveDelegationTokenRecord:
    SCHEMA: ClassVar = data(key=26, versions=(0, 0), flexible_from=0)

    token_id: String = ""


@message
class ControllerEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@message
class ControllerFeature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message
class RegisterControllerRecord:
    SCHEMA: ClassVar = data(key=27, versions=(0, 0), flexible_from=0)

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: Bool = False
    end_points: list[ControllerEndpoint] = field(default_factory=list)
    features: list[ControllerFeature] = field(default_factory=list)


@message
class ClearElrRecord:
    """Clears the eligible leader replicas of a topic, or of all topics if the name is empty."""

    SCHEMA: ClassVar = data(key=28, versions=(0, 0), flexible_from=0)

    topic_name: String = ""


RECORD_CLASSES: tuple[type[MetadataRecord], ...] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    RemoveTopicRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
    FeatureLevelRecord,
    ClientQuotaRecord,
    ProducerIdsRecord,
    BrokerRegistrationChangeRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
    RemoveUserScramCredentialRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
    RemoveDelegationTokenRecord,
    RegisterControllerRecord,
    ClearElrRecord,
)
