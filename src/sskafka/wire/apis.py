"""Every API of the Kafka protocol in one table: one row has all information about an API.

ApiVersions, version checks, headers, error frames, forwarding to the controller and the table in docs/protocol.md are
derived from it. `ApiKey` has the numbers; the rows are in the order of the numbers.

Message modules are imported on first use of their classes: a broker needs only a third of them, and not at startup.
"""

from enum import IntEnum, IntFlag
from functools import cache
from importlib import import_module
from re import sub
from typing import Any, NamedTuple

from sskafka.model.acl import AclOperation
from sskafka.wire.bounds import (
    FETCH_PARTITIONS_MAX,
    PRODUCE_PARTITIONS_MAX,
    REQUEST_BYTES_MAX,
    REQUEST_ELEMENTS_MAX,
)

NEVER = 0x8000
"""Above every version: the `flexible_from` of messages that have no flexible version."""


class Listeners(IntFlag):
    """Which listeners serve an API."""

    BROKER = 1
    """Listeners of brokers; ApiVersions lists the API there."""
    UNLISTED = 2
    """Listeners of brokers, but ApiVersions lists the API only for SSKafka's own software."""
    STARTING = 4
    """Listeners of a broker that has not joined its cluster yet: requests of other nodes that it needs to join."""
    CONTROLLER = 8
    """Controller listeners; ApiVersions lists the API there."""


class ApiKey(IntEnum):
    """Numbers of the APIs. Kafka has none above 10,000; numbers from 20,000 on are SSKafka's own APIs."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    RECORD_COUNTS = 20001
    PLACE_RECORD = 20002
    FLUSH_LOGS = 20003
    DESCRIBE_GROUP_TIMELINE = 20004
    DESCRIBE_READERS = 20005
    DESCRIBE_BROKER_LOAD = 20006
    DESCRIBE_SEGMENTS = 20007
    BROKER_IDENTITY = 20010
    ACT_FOR_CLIENT = 20011


class Api(NamedTuple):
    """One API; the versions are those that Apache Kafka 4.3 defines."""

    key: ApiKey
    min_version: int
    max_version: int
    flexible_from: int
    """From this version on, headers and bodies have tagged fields and compact lengths."""
    listeners: Listeners
    handler: str
    """`family.method` of the handler in servers/kafka/handlers, which `broker/api_handlers.py` constructs."""
    operation: AclOperation | None = None
    """Operation on the cluster that the client must be allowed to do; None if the handler checks each resource."""
    forwarded: bool = False
    """Whether brokers forward the request to the active controller, in an Envelope."""
    listed_from: int | None = None
    """The lowest version that ApiVersions lists, if it is not `min_version`."""
    stable_until: int = NEVER
    """The last version that Kafka calls stable. Kafka lists later ones only if it is configured to."""

    @property
    def name(self) -> str:
        return _name(self.key)

    @property
    def elements_max(self) -> int:
        """Number of elements of all arrays of a request together."""
        return _ELEMENTS_MAX.get(self.key, REQUEST_ELEMENTS_MAX)

    @property
    def bytes_max(self) -> int:
        """Size of a request; `socket.request.max.bytes` applies to all APIs."""
        return _BYTES_MAX.get(self.key, REQUEST_BYTES_MAX)

    def has_version(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def request_class(self) -> type[Any]:
        return _message_class(self.name, "Request")

    def response_class(self) -> type[Any]:
        return _message_class(self.name, "Response")


@cache
def _name(key: ApiKey) -> str:
    return "".join(word.title() for word in key.name.split("_"))


@cache
def _message_class(api_name: str, kind: str) -> type[Any]:
    module = import_module(f"sskafka.wire.messages.{sub('(?<!^)(?=[A-Z])', '_', api_name).lower()}")
    cls: type[Any] = getattr(module, api_name + kind)
    return cls


BROKER, UNLISTED, STARTING, CONTROLLER = Listeners
BOTH = BROKER | CONTROLLER
NODES = UNLISTED | STARTING | CONTROLLER  # nodes ask each other, on whichever listener they have
DESCRIBE, ALTER, CLUSTER_ACTION = AclOperation.DESCRIBE, AclOperation.ALTER, AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS

_APIS = (
    Api(ApiKey.PRODUCE, 3, 13, 9, BROKER, "produce.handle", listed_from=0),  # older librdkafka compresses only then
    Api(ApiKey.FETCH, 4, 18, 12, BROKER | STARTING | CONTROLLER, "fetch.handle"),
    Api(ApiKey.LIST_OFFSETS, 1, 11, 6, BROKER, "offsets.list_offsets"),
    Api(ApiKey.METADATA, 0, 13, 9, BROKER, "metadata.metadata"),
    Api(ApiKey.OFFSET_COMMIT, 2, 10, 8, BROKER, "group_offsets.handle_commit"),
    Api(ApiKey.OFFSET_FETCH, 1, 10, 6, BROKER, "group_offsets.handle_fetch"),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, 3, BROKER, "find_coordinator.find_coordinator"),
    Api(ApiKey.JOIN_GROUP, 0, 9, 6, BROKER, "groups.handle_join"),
    Api(ApiKey.HEARTBEAT, 0, 4, 4, BROKER, "groups.handle_heartbeat"),
    Api(ApiKey.LEAVE_GROUP, 0, 5, 4, BROKER, "groups.handle_leave"),
    Api(ApiKey.SYNC_GROUP, 0, 5, 4, BROKER, "groups.handle_sync"),
    Api(ApiKey.DESCRIBE_GROUPS, 0, 6, 5, BROKER, "groups.handle_describe"),
    Api(ApiKey.LIST_GROUPS, 0, 5, 3, BROKER, "groups.list_groups"),
    Api(ApiKey.SASL_HANDSHAKE, 0, 1, NEVER, BOTH | STARTING, "sasl.handshake"),
    Api(ApiKey.API_VERSIONS, 0, 4, 3, BROKER | STARTING | CONTROLLER, "api_versions.handle"),
    Api(ApiKey.CREATE_TOPICS, 2, 7, 5, BOTH, "topics.create_topics", forwarded=True),
    Api(ApiKey.DELETE_TOPICS, 1, 6, 4, BOTH, "topics.delete_topics", forwarded=True),
    Api(ApiKey.DELETE_RECORDS, 0, 2, 2, BROKER, "delete_records.delete_records"),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 6, 2, BROKER, "producers.init_producer_id", stable_until=5),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4, BROKER, "offsets.offset_for_leader_epoch"),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3, BROKER, "transactions.add_partitions"),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3, BROKER, "transactions.add_offsets"),
    Api(ApiKey.END_TXN, 0, 5, 3, BROKER, "transactions.end"),
    Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, 1, BROKER, "transaction_markers.write_markers"),
    Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3, BROKER, "transaction_offsets.commit"),
    Api(ApiKey.DESCRIBE_ACLS, 1, 3, 2, BOTH, "acls.describe", DESCRIBE),
    Api(ApiKey.CREATE_ACLS, 1, 3, 2, BOTH, "acls.create", ALTER, forwarded=True),
    Api(ApiKey.DELETE_ACLS, 1, 3, 2, BOTH, "acls.delete", ALTER, forwarded=True),
    Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4, BOTH, "configs.describe_configs"),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, 2, BOTH, "configs.alter_configs", forwarded=True),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2, BROKER, "log_dirs.alter", ALTER),
    Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 2, BROKER, "log_dirs.describe", DESCRIBE),
    Api(ApiKey.SASL_AUTHENTICATE, 0, 2, 2, BOTH | STARTING, "sasl.authenticate"),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, 2, BOTH, "topics.create_partitions", forwarded=True),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2, BOTH, "delegation_tokens.create", forwarded=True),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2, BOTH, "delegation_tokens.renew", forwarded=True),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2, BOTH, "delegation_tokens.expire", forwarded=True),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2, BOTH, "delegation_tokens.describe"),
    Api(ApiKey.DELETE_GROUPS, 0, 2, 2, BROKER, "groups.handle_delete"),
    Api(ApiKey.ELECT_LEADERS, 0, 2, 2, BOTH, "administration.forward", ALTER, forwarded=True),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1, BOTH, "configs.incremental_alter_configs", forwarded=True),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0, BOTH, "administration.forward", ALTER, forwarded=True),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0, BOTH, "administration.list_reassignments", DESCRIBE),
    Api(ApiKey.OFFSET_DELETE, 0, 0, NEVER, BROKER, "group_offsets.handle_delete"),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1, BROKER, "client_quotas.describe", DESCRIBE_CONFIGS),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1, BOTH, "client_quotas.alter", ALTER_CONFIGS, forwarded=True),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0, BOTH, "scram_credentials.describe", DESCRIBE),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0, BOTH, "scram_credentials.alter", ALTER, forwarded=True),
    Api(ApiKey.VOTE, 0, 2, 0, NODES, "quorum.handle", CLUSTER_ACTION),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, 1, NODES, "quorum.handle", CLUSTER_ACTION),
    Api(ApiKey.END_QUORUM_EPOCH, 0, 1, 1, NODES, "quorum.handle", CLUSTER_ACTION),
    Api(ApiKey.DESCRIBE_QUORUM, 0, 2, 0, BOTH, "describe_quorum.describe_quorum", DESCRIBE, forwarded=True),
    Api(ApiKey.ALTER_PARTITION, 2, 3, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.UPDATE_FEATURES, 0, 2, 0, BOTH, "administration.forward", ALTER, forwarded=True),
    Api(ApiKey.ENVELOPE, 0, 0, 0, NODES, "controller_apis.envelope", CLUSTER_ACTION),
    Api(ApiKey.FETCH_SNAPSHOT, 0, 1, 0, NODES, "quorum.handle", CLUSTER_ACTION),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, BOTH, "cluster.describe_cluster"),
    Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0, BROKER, "producers.describe_producers"),
    Api(ApiKey.BROKER_REGISTRATION, 0, 4, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.BROKER_HEARTBEAT, 0, 2, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.UNREGISTER_BROKER, 0, 0, 0, BOTH, "administration.forward", ALTER, forwarded=True),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0, BROKER, "transaction_descriptions.describe"),
    Api(ApiKey.LIST_TRANSACTIONS, 0, 2, 0, BROKER, "transaction_descriptions.list"),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0, BROKER, "consumer_groups.handle_heartbeat"),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0, BROKER, "consumer_groups.describe"),
    Api(ApiKey.CONTROLLER_REGISTRATION, 0, 0, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, 0, UNLISTED, "absent_features.get_telemetry_subscriptions"),
    Api(ApiKey.PUSH_TELEMETRY, 0, 0, 0, UNLISTED, "absent_features.push_telemetry"),
    Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, 0, NODES, "controller_apis.decide", CLUSTER_ACTION),
    Api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0, BROKER, "config_resources.list_resources", DESCRIBE_CONFIGS),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, BROKER, "topic_partitions.describe"),
    Api(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, 0, BROKER, "absent_features.share_group_heartbeat"),
    Api(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, 0, BROKER, "absent_features.share_group_describe"),
    Api(ApiKey.SHARE_FETCH, 1, 2, 0, BROKER, "absent_features.share_fetch"),
    Api(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, 0, BROKER, "absent_features.share_acknowledge"),
    Api(ApiKey.ADD_RAFT_VOTER, 0, 1, 0, BOTH, "raft_voters.add", ALTER),
    Api(ApiKey.REMOVE_RAFT_VOTER, 0, 0, 0, BOTH, "raft_voters.remove", ALTER),
    Api(ApiKey.UPDATE_RAFT_VOTER, 0, 0, 0, CONTROLLER, "raft_voters.update", CLUSTER_ACTION),
    Api(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        0,
        0,
        0,
        BROKER,
        "absent_features.initialize_share_group_state",
        CLUSTER_ACTION,
    ),
    Api(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, 0, BROKER, "absent_features.read_share_group_state", CLUSTER_ACTION),
    Api(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, 0, BROKER, "absent_features.write_share_group_state", CLUSTER_ACTION),
    Api(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, 0, BROKER, "absent_features.delete_share_group_state", CLUSTER_ACTION),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        0,
        1,
        0,
        BROKER,
        "absent_features.read_share_group_state_summary",
        CLUSTER_ACTION,
    ),
    Api(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, 0, BROKER, "absent_features.streams_group_heartbeat"),
    Api(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, 0, BROKER, "absent_features.streams_group_describe"),
    Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, 0, BROKER, "absent_features.describe_share_group_offsets"),
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, 0, BROKER, "absent_features.alter_share_group_offsets"),
    Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, 0, BROKER, "absent_features.delete_share_group_offsets"),
    Api(ApiKey.RECORD_COUNTS, 0, 0, 0, UNLISTED, "adr.record_counts", CLUSTER_ACTION),
    Api(ApiKey.PLACE_RECORD, 0, 0, 0, UNLISTED, "adr.place_record", CLUSTER_ACTION),
    Api(ApiKey.FLUSH_LOGS, 0, 0, 0, UNLISTED, "adr.flush_logs", CLUSTER_ACTION),
    Api(ApiKey.DESCRIBE_GROUP_TIMELINE, 0, 0, 0, UNLISTED, "groups.handle_timeline"),
    Api(ApiKey.DESCRIBE_READERS, 0, 0, 0, UNLISTED, "readers.describe_readers"),
    Api(ApiKey.DESCRIBE_BROKER_LOAD, 0, 0, 0, UNLISTED, "broker_load.describe_broker_load", DESCRIBE),
    Api(ApiKey.DESCRIBE_SEGMENTS, 0, 0, 0, UNLISTED, "segments.describe_segments", DESCRIBE),
    Api(ApiKey.BROKER_IDENTITY, 0, 0, 0, UNLISTED | STARTING, "broker_identity.identity", CLUSTER_ACTION),
    Api(ApiKey.ACT_FOR_CLIENT, 0, 0, 0, UNLISTED, "act_for_client.act_for_client", CLUSTER_ACTION),
)

# Bounds of requests that cost more for each element than others, or are not handled in pieces.
_FEW = 10_000  # as many records as one operation of Kafka's controller may write
_WITH_REPLICAS = 50_000  # as many partitions, with the ids of their replicas
_ELEMENTS_MAX = {
    **dict.fromkeys(
        (
            ApiKey.JOIN_GROUP,
            ApiKey.LEAVE_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.DELETE_TOPICS,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            ApiKey.ALTER_CLIENT_QUOTAS,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.VOTE,
            ApiKey.BEGIN_QUORUM_EPOCH,
            ApiKey.END_QUORUM_EPOCH,
            ApiKey.DESCRIBE_QUORUM,
            ApiKey.UPDATE_FEATURES,
            ApiKey.FETCH_SNAPSHOT,
            ApiKey.BROKER_REGISTRATION,
            ApiKey.BROKER_HEARTBEAT,
            ApiKey.CONTROLLER_REGISTRATION,
            ApiKey.LIST_CONFIG_RESOURCES,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            ApiKey.RECORD_COUNTS,
            ApiKey.DESCRIBE_READERS,
            ApiKey.DESCRIBE_BROKER_LOAD,
        ),
        _FEW,
    ),
    ApiKey.PRODUCE: PRODUCE_PARTITIONS_MAX,
    ApiKey.FETCH: FETCH_PARTITIONS_MAX,
    ApiKey.CREATE_TOPICS: _WITH_REPLICAS,
    ApiKey.CREATE_PARTITIONS: _WITH_REPLICAS,
    ApiKey.ELECT_LEADERS: _WITH_REPLICAS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _WITH_REPLICAS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _WITH_REPLICAS,
}
_BYTES_MAX = {
    ApiKey.PRODUCE: 2**31 - 1,
    ApiKey.PLACE_RECORD: 2**31 - 1,
    # The coordinator keeps what members report, in records of about a megabyte at most.
    ApiKey.JOIN_GROUP: 2 * 1024 * 1024,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 2 * 1024 * 1024,
    ApiKey.ENVELOPE: REQUEST_BYTES_MAX + 64 * 1024,
}

API_BY_KEY: dict[int, Api] = {api.key: api for api in _APIS}
