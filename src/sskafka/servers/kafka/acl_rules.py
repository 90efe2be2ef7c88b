"""What a client must be allowed to do for each API: the table behind docs/acls.md and the test of every API.

The handlers contain the checks. A test starts a broker, grants exactly what a rule names and sends the request, then
revokes each right and expects its error; another test finds APIs that have neither a rule nor an entry in UNCHECKED.
"""

from typing import NamedTuple

from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import ApiKey

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

ERROR_OF = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    operation: AclOperation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


class AclRule(NamedTuple):
    api: ApiKey
    alternatives: tuple[tuple[Need, ...], ...]
    """Each alternative is enough; a client must have all that one alternative names."""
    case: str = ""
    """For APIs that need different rights for different requests."""
    error: ErrorCode | None = None
    """The error without the right; None: that of the resource type."""
    is_filter: bool = False
    """Whether the response omits what the client may not see, instead of reporting an error."""

    def error_without(self, need: Need) -> ErrorCode:
        return self.error if self.error is not None else ERROR_OF[need.resource_type]


def _all(*needs: Need) -> tuple[tuple[Need, ...], ...]:
    return (needs,)


def _any(*needs: Need) -> tuple[tuple[Need, ...], ...]:
    return tuple((need,) for need in needs)


READ_TOPIC, WRITE_TOPIC = Need(AclOperation.READ, TOPIC), Need(AclOperation.WRITE, TOPIC)
DESCRIBE_TOPIC, DELETE_TOPIC = Need(AclOperation.DESCRIBE, TOPIC), Need(AclOperation.DELETE, TOPIC)
CREATE_TOPIC, ALTER_TOPIC = Need(AclOperation.CREATE, TOPIC), Need(AclOperation.ALTER, TOPIC)
DESCRIBE_TOPIC_CONFIGS = Need(AclOperation.DESCRIBE_CONFIGS, TOPIC)
ALTER_TOPIC_CONFIGS = Need(AclOperation.ALTER_CONFIGS, TOPIC)
READ_GROUP, DESCRIBE_GROUP = Need(AclOperation.READ, GROUP), Need(AclOperation.DESCRIBE, GROUP)
DELETE_GROUP = Need(AclOperation.DELETE, GROUP)
DESCRIBE_GROUP_CONFIGS = Need(AclOperation.DESCRIBE_CONFIGS, GROUP)
ALTER_GROUP_CONFIGS = Need(AclOperation.ALTER_CONFIGS, GROUP)
WRITE_ID, DESCRIBE_ID = Need(AclOperation.WRITE, TRANSACTIONAL_ID), Need(AclOperation.DESCRIBE, TRANSACTIONAL_ID)
TWO_PHASE_COMMIT = Need(AclOperation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID)
DESCRIBE_CLUSTER, ALTER_CLUSTER = Need(AclOperation.DESCRIBE, CLUSTER), Need(AclOperation.ALTER, CLUSTER)
CREATE_CLUSTER, DELETE_CLUSTER = Need(AclOperation.CREATE, CLUSTER), Need(AclOperation.DELETE, CLUSTER)
DESCRIBE_CLUSTER_CONFIGS = Need(AclOperation.DESCRIBE_CONFIGS, CLUSTER)
ALTER_CLUSTER_CONFIGS = Need(AclOperation.ALTER_CONFIGS, CLUSTER)
CLUSTER_ACTION = Need(AclOperation.CLUSTER_ACTION, CLUSTER)
IDEMPOTENT_WRITE = Need(AclOperation.IDEMPOTENT_WRITE, CLUSTER)

TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

RULES = (
    AclRule(ApiKey.PRODUCE, _all(WRITE_TOPIC)),
    AclRule(ApiKey.PRODUCE, _all(WRITE_ID, WRITE_TOPIC), "in a transaction"),
    AclRule(ApiKey.FETCH, _all(READ_TOPIC)),
    AclRule(ApiKey.FETCH, _all(CLUSTER_ACTION), "by a follower", TOPIC_ERROR),
    AclRule(ApiKey.FETCH, _all(CLUSTER_ACTION), "of the metadata log"),
    AclRule(ApiKey.LIST_OFFSETS, _all(DESCRIBE_TOPIC)),
    AclRule(ApiKey.METADATA, _all(DESCRIBE_TOPIC), "of named topics"),
    AclRule(ApiKey.METADATA, _all(DESCRIBE_TOPIC), "of all topics", is_filter=True),
    AclRule(
        ApiKey.METADATA,
        ((DESCRIBE_TOPIC, CREATE_TOPIC), (DESCRIBE_TOPIC, CREATE_CLUSTER)),
        "that creates a topic",
        TOPIC_ERROR,
    ),
    AclRule(ApiKey.OFFSET_COMMIT, _all(READ_GROUP, READ_TOPIC)),
    AclRule(ApiKey.OFFSET_FETCH, _all(DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    AclRule(ApiKey.FIND_COORDINATOR, _all(DESCRIBE_GROUP), "of a group"),
    AclRule(ApiKey.FIND_COORDINATOR, _all(DESCRIBE_ID), "of a transactional id"),
    AclRule(ApiKey.JOIN_GROUP, _all(READ_GROUP)),
    AclRule(ApiKey.HEARTBEAT, _all(READ_GROUP)),
    AclRule(ApiKey.LEAVE_GROUP, _all(READ_GROUP)),
    AclRule(ApiKey.SYNC_GROUP, _all(READ_GROUP)),
    AclRule(ApiKey.DESCRIBE_GROUPS, _all(DESCRIBE_GROUP)),
    AclRule(ApiKey.LIST_GROUPS, _any(DESCRIBE_CLUSTER, DESCRIBE_GROUP), is_filter=True),
    AclRule(ApiKey.CREATE_TOPICS, _any(CREATE_CLUSTER, CREATE_TOPIC), error=TOPIC_ERROR),
    AclRule(ApiKey.DELETE_TOPICS, _any(DELETE_CLUSTER, DELETE_TOPIC), error=TOPIC_ERROR),
    AclRule(ApiKey.DELETE_RECORDS, _all(DELETE_TOPIC)),
    AclRule(ApiKey.INIT_PRODUCER_ID, _any(IDEMPOTENT_WRITE, WRITE_TOPIC), "of an idempotent producer", CLUSTER_ERROR),
    AclRule(ApiKey.INIT_PRODUCER_ID, _all(WRITE_ID), "with a transactional id"),
    AclRule(ApiKey.INIT_PRODUCER_ID, _all(WRITE_ID, TWO_PHASE_COMMIT), "with two-phase commit"),
    AclRule(ApiKey.OFFSET_FOR_LEADER_EPOCH, _any(CLUSTER_ACTION, DESCRIBE_TOPIC), error=TOPIC_ERROR),
    AclRule(ApiKey.ADD_PARTITIONS_TO_TXN, _all(WRITE_ID, WRITE_TOPIC), "by a client (up to version 3)"),
    AclRule(ApiKey.ADD_PARTITIONS_TO_TXN, _all(CLUSTER_ACTION), "by a broker (from version 4 on)"),
    AclRule(ApiKey.ADD_OFFSETS_TO_TXN, _all(WRITE_ID, READ_GROUP)),
    AclRule(ApiKey.END_TXN, _all(WRITE_ID)),
    AclRule(ApiKey.WRITE_TXN_MARKERS, _any(CLUSTER_ACTION, ALTER_CLUSTER)),
    AclRule(ApiKey.TXN_OFFSET_COMMIT, _all(WRITE_ID, READ_GROUP, READ_TOPIC)),
    AclRule(ApiKey.DESCRIBE_ACLS, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.CREATE_ACLS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.DELETE_ACLS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.DESCRIBE_CONFIGS, _all(DESCRIBE_TOPIC_CONFIGS), "of a topic"),
    AclRule(ApiKey.DESCRIBE_CONFIGS, _all(DESCRIBE_GROUP_CONFIGS), "of a group"),
    AclRule(ApiKey.DESCRIBE_CONFIGS, _all(DESCRIBE_CLUSTER_CONFIGS), "of a broker"),
    AclRule(ApiKey.ALTER_CONFIGS, _all(ALTER_TOPIC_CONFIGS), "of a topic"),
    AclRule(ApiKey.ALTER_CONFIGS, _all(ALTER_CLUSTER_CONFIGS), "of a broker"),
    AclRule(ApiKey.ALTER_REPLICA_LOG_DIRS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.DESCRIBE_LOG_DIRS, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.CREATE_PARTITIONS, _all(ALTER_TOPIC)),
    AclRule(ApiKey.DELETE_GROUPS, _all(DELETE_GROUP)),
    AclRule(ApiKey.ELECT_LEADERS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.INCREMENTAL_ALTER_CONFIGS, _all(ALTER_TOPIC_CONFIGS), "of a topic"),
    AclRule(ApiKey.INCREMENTAL_ALTER_CONFIGS, _all(ALTER_GROUP_CONFIGS), "of a group"),
    AclRule(ApiKey.INCREMENTAL_ALTER_CONFIGS, _all(ALTER_CLUSTER_CONFIGS), "of a broker"),
    AclRule(ApiKey.ALTER_PARTITION_REASSIGNMENTS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.LIST_PARTITION_REASSIGNMENTS, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.OFFSET_DELETE, _all(DELETE_GROUP, READ_TOPIC)),
    AclRule(ApiKey.DESCRIBE_CLIENT_QUOTAS, _all(DESCRIBE_CLUSTER_CONFIGS)),
    AclRule(ApiKey.ALTER_CLIENT_QUOTAS, _all(ALTER_CLUSTER_CONFIGS)),
    AclRule(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.VOTE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.BEGIN_QUORUM_EPOCH, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.END_QUORUM_EPOCH, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.DESCRIBE_QUORUM, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.ALTER_PARTITION, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.UPDATE_FEATURES, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.ENVELOPE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.FETCH_SNAPSHOT, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.DESCRIBE_PRODUCERS, _all(READ_TOPIC)),
    AclRule(ApiKey.BROKER_REGISTRATION, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.BROKER_HEARTBEAT, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.UNREGISTER_BROKER, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.DESCRIBE_TRANSACTIONS, _all(DESCRIBE_ID)),
    AclRule(ApiKey.LIST_TRANSACTIONS, _all(DESCRIBE_ID), is_filter=True),
    AclRule(ApiKey.ALLOCATE_PRODUCER_IDS, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.CONSUMER_GROUP_HEARTBEAT, _all(READ_GROUP, DESCRIBE_TOPIC)),
    AclRule(ApiKey.CONSUMER_GROUP_DESCRIBE, _all(DESCRIBE_GROUP)),
    AclRule(ApiKey.CONTROLLER_REGISTRATION, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.ASSIGN_REPLICAS_TO_DIRS, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.LIST_CONFIG_RESOURCES, _all(DESCRIBE_CLUSTER_CONFIGS)),
    AclRule(ApiKey.DESCRIBE_TOPIC_PARTITIONS, _all(DESCRIBE_TOPIC), "of named topics"),
    AclRule(ApiKey.DESCRIBE_TOPIC_PARTITIONS, _all(DESCRIBE_TOPIC), "of all topics", is_filter=True),
    AclRule(ApiKey.ADD_RAFT_VOTER, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.REMOVE_RAFT_VOTER, _all(ALTER_CLUSTER)),
    AclRule(ApiKey.INITIALIZE_SHARE_GROUP_STATE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.READ_SHARE_GROUP_STATE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.WRITE_SHARE_GROUP_STATE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.DELETE_SHARE_GROUP_STATE, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.RECORD_COUNTS, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.PLACE_RECORD, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.FLUSH_LOGS, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.DESCRIBE_GROUP_TIMELINE, _all(DESCRIBE_GROUP)),
    AclRule(ApiKey.DESCRIBE_READERS, _all(DESCRIBE_TOPIC), is_filter=True),
    AclRule(ApiKey.DESCRIBE_BROKER_LOAD, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.DESCRIBE_SEGMENTS, _all(DESCRIBE_CLUSTER)),
    AclRule(ApiKey.BROKER_IDENTITY, _all(CLUSTER_ACTION)),
    AclRule(ApiKey.ACT_FOR_CLIENT, _all(CLUSTER_ACTION)),
)

UNCHECKED: dict[ApiKey, str] = {
    ApiKey.API_VERSIONS: "open to everybody",
    ApiKey.SASL_HANDSHAKE: "precedes authentication",
    ApiKey.SASL_AUTHENTICATE: "precedes authentication",
    ApiKey.CREATE_DELEGATION_TOKEN: "needs an authenticated client; for another owner, CREATE_TOKENS on USER",
    ApiKey.RENEW_DELEGATION_TOKEN: "needs the owner or a renewer of the token",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "needs the owner or a renewer of the token",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "tokens of others need DESCRIBE_TOKENS on USER or DESCRIBE on DELEGATION_TOKEN",
    ApiKey.DESCRIBE_CLUSTER: "open to everybody on broker listeners; controller listeners need ALTER on CLUSTER",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "open to everybody",
    ApiKey.PUSH_TELEMETRY: "open to everybody",
    ApiKey.UPDATE_RAFT_VOTER: "served on controller listeners only, where it needs CLUSTER_ACTION on CLUSTER",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share groups are not supported",
    ApiKey.SHARE_GROUP_DESCRIBE: "share groups are not supported",
    ApiKey.SHARE_FETCH: "share groups are not supported",
    ApiKey.SHARE_ACKNOWLEDGE: "share groups are not supported",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "share groups are not supported",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "share groups are not supported",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "share groups are not supported",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams groups are not supported",
    ApiKey.STREAMS_GROUP_DESCRIBE: "streams groups are not supported",
}
"""APIs of broker listeners that check nothing, with the reason."""
