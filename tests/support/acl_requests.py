"""A request for every rule of the table of ACLs (servers/kafka/acl_rules.py), on resources of known names."""

from typing import Any

from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.ids import METADATA_TOPIC_ID
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.layout import layout_of
from sskafka.wire.schema import Primitive

TOPIC, NEW_TOPIC, GROUP, TRANSACTIONAL_ID = "acl-topic", "acl-new-topic", "acl-group", "acl-transaction"
NAME_OF = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.CLUSTER: "kafka-cluster",
    ResourceType.TRANSACTIONAL_ID: TRANSACTIONAL_ID,
}

_PARTITIONS = [{"name": TOPIC, "partitions": [0]}]
_TOPIC_RESOURCE, _GROUP_RESOURCE, _BROKER_RESOURCE = (2, TOPIC), (32, GROUP), (4, "1")
_ANY_ACL = {
    "resource_type_filter": ResourceType.TOPIC,
    "resource_name_filter": "no such topic",
    "pattern_type_filter": PatternType.LITERAL,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": AclPermission.ANY,
}
_SHARE_TOPICS = [{"partitions": [{"partition": 0}]}]


def _records(**options: Any) -> bytes:
    return bytes(build_batch([NewRecord(value=b"v", timestamp=1)], **options))


def _produce(transactional_id: str | None, records: bytes) -> dict[str, Any]:
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
    return {"transactional_id": transactional_id, "acks": 1, "timeout_ms": 5000, "topic_data": [topic]}


def _fetch(replica_id: int) -> dict[str, Any]:
    partition = {"partition": 0, "partition_max_bytes": 1000}
    return {"replica_id": replica_id, "topics": [{"topic": TOPIC, "partitions": [partition]}]}


def _configs(resource: tuple[int, str], **configs: Any) -> dict[str, Any]:
    return {"resources": [{"resource_type": resource[0], "resource_name": resource[1], **configs}]}


REQUESTS: dict[tuple[ApiKey, str], tuple[int, dict[str, Any]]] = {
    (ApiKey.PRODUCE, ""): (9, _produce(None, _records())),
    (ApiKey.PRODUCE, "in a transaction"): (
        11,
        _produce(
            TRANSACTIONAL_ID,
            _records(producer_id=10_000, producer_epoch=0, base_sequence=0, transactional=True),
        ),
    ),
    (ApiKey.FETCH, ""): (12, _fetch(-1)),
    (ApiKey.FETCH, "by a follower"): (12, _fetch(2)),
    (ApiKey.FETCH, "of the metadata log"): (
        13,
        {"replica_id": -1, "topics": [{"topic_id": METADATA_TOPIC_ID, "partitions": [{"partition": 0}]}]},
    ),
    (ApiKey.LIST_OFFSETS, ""): (
        6,
        {
            "replica_id": -1,
            "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        },
    ),
    (ApiKey.METADATA, "of named topics"): (9, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}),
    (ApiKey.METADATA, "of all topics"): (9, {"topics": None}),
    (ApiKey.METADATA, "that creates a topic"): (9, {"topics": [{"name": NEW_TOPIC}]}),
    (ApiKey.OFFSET_COMMIT, ""): (
        8,
        {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]},
    ),
    (ApiKey.OFFSET_FETCH, ""): (
        8,
        {"groups": [{"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]},
    ),
    (ApiKey.FIND_COORDINATOR, "of a group"): (4, {"key_type": 0, "coordinator_keys": [GROUP]}),
    (ApiKey.FIND_COORDINATOR, "of a transactional id"): (4, {"key_type": 1, "coordinator_keys": [TRANSACTIONAL_ID]}),
    (ApiKey.JOIN_GROUP, ""): (
        7,
        {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
    ),
    (ApiKey.HEARTBEAT, ""): (4, {"group_id": GROUP, "member_id": "nobody", "generation_id": 1}),
    (ApiKey.LEAVE_GROUP, ""): (4, {"group_id": GROUP, "members": [{"member_id": "nobody"}]}),
    (ApiKey.SYNC_GROUP, ""): (4, {"group_id": GROUP, "member_id": "nobody", "generation_id": 1}),
    (ApiKey.DESCRIBE_GROUPS, ""): (5, {"groups": [GROUP]}),
    (ApiKey.LIST_GROUPS, ""): (4, {}),
    (ApiKey.CREATE_TOPICS, ""): (
        7,
        {
            "topics": [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}],
            "validate_only": True,
            "timeout_ms": 5000,
        },
    ),
    (ApiKey.DELETE_TOPICS, ""): (5, {"topic_names": ["acl-topic"], "timeout_ms": 5000}),
    (ApiKey.DELETE_RECORDS, ""): (
        2,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 0}]}], "timeout_ms": 5000},
    ),
    (ApiKey.INIT_PRODUCER_ID, "of an idempotent producer"): (4, {"transactional_id": None}),
    (ApiKey.INIT_PRODUCER_ID, "with a transactional id"): (
        4,
        {"transactional_id": TRANSACTIONAL_ID, "transaction_timeout_ms": 10_000},
    ),
    (ApiKey.INIT_PRODUCER_ID, "with two-phase commit"): (
        6,
        {"transactional_id": TRANSACTIONAL_ID, "transaction_timeout_ms": 10_000, "enable2_pc": True},
    ),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, ""): (4, {"topics": [{"topic": TOPIC, "partitions": [{"partition": 0}]}]}),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "by a client (up to version 3)"): (
        3,
        {
            "v3_and_below_transactional_id": TRANSACTIONAL_ID,
            "v3_and_below_producer_id": 10_000,
            "v3_and_below_topics": _PARTITIONS,
        },
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "by a broker (from version 4 on)"): (
        4,
        {"transactions": [{"transactional_id": TRANSACTIONAL_ID, "topics": _PARTITIONS, "verify_only": True}]},
    ),
    (ApiKey.ADD_OFFSETS_TO_TXN, ""): (
        3,
        {"transactional_id": TRANSACTIONAL_ID, "producer_id": 10_000, "group_id": GROUP},
    ),
    (ApiKey.END_TXN, ""): (3, {"transactional_id": TRANSACTIONAL_ID, "producer_id": 10_000}),
    (ApiKey.WRITE_TXN_MARKERS, ""): (
        1,
        {"markers": [{"producer_id": 77_777, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]},
    ),
    (ApiKey.TXN_OFFSET_COMMIT, ""): (
        3,
        {
            "transactional_id": TRANSACTIONAL_ID,
            "group_id": GROUP,
            "producer_id": 10_000,
            "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}],
        },
    ),
    (ApiKey.DESCRIBE_ACLS, ""): (2, _ANY_ACL),
    (ApiKey.CREATE_ACLS, ""): (
        2,
        {
            "creations": [
                {
                    "resource_type": ResourceType.TOPIC,
                    "resource_name": "acl-unused",
                    "principal": "User:nobody",
                    "host": "*",
                    "operation": AclOperation.READ,
                    "permission_type": AclPermission.ALLOW,
                }
            ]
        },
    ),
    (ApiKey.DELETE_ACLS, ""): (2, {"filters": [_ANY_ACL]}),
    (ApiKey.DESCRIBE_CONFIGS, "of a topic"): (4, _configs(_TOPIC_RESOURCE, configuration_keys=None)),
    (ApiKey.DESCRIBE_CONFIGS, "of a group"): (4, _configs(_GROUP_RESOURCE, configuration_keys=None)),
    (ApiKey.DESCRIBE_CONFIGS, "of a broker"): (4, _configs(_BROKER_RESOURCE, configuration_keys=None)),
    (ApiKey.ALTER_CONFIGS, "of a topic"): (2, {**_configs(_TOPIC_RESOURCE), "validate_only": True}),
    (ApiKey.ALTER_CONFIGS, "of a broker"): (2, {**_configs(_BROKER_RESOURCE), "validate_only": True}),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, ""): (2, {"dirs": [{"path": "/nowhere", "topics": _PARTITIONS}]}),
    (ApiKey.DESCRIBE_LOG_DIRS, ""): (4, {"topics": None}),
    (ApiKey.CREATE_PARTITIONS, ""): (
        3,
        {"topics": [{"name": TOPIC, "count": 9, "assignments": None}], "validate_only": True, "timeout_ms": 5000},
    ),
    (ApiKey.DELETE_GROUPS, ""): (2, {"groups_names": ["acl-group"]}),
    (ApiKey.ELECT_LEADERS, ""): (2, {"topic_partitions": [{"topic": TOPIC, "partitions": [0]}]}),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a topic"): (1, {**_configs(_TOPIC_RESOURCE), "validate_only": True}),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a group"): (1, {**_configs(_GROUP_RESOURCE), "validate_only": True}),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a broker"): (1, {**_configs(_BROKER_RESOURCE), "validate_only": True}),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, ""): (
        0,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": None}]}], "timeout_ms": 5000},
    ),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, ""): (0, {"topics": None}),
    (ApiKey.OFFSET_DELETE, ""): (
        0,
        {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]},
    ),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, ""): (1, {}),
    (ApiKey.ALTER_CLIENT_QUOTAS, ""): (
        1,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "u"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e6}],
                }
            ],
            "validate_only": True,
        },
    ),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ""): (0, {"users": [{"name": "nobody"}]}),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ""): (0, {"deletions": [{"name": "nobody", "mechanism": 1}]}),
    (ApiKey.UPDATE_FEATURES, ""): (1, {"validate_only": True}),
    (ApiKey.DESCRIBE_QUORUM, ""): (
        1,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    ),
    (ApiKey.UNREGISTER_BROKER, ""): (0, {"broker_id": 99}),
    (ApiKey.DESCRIBE_PRODUCERS, ""): (0, {"topics": [{"name": TOPIC, "partition_indexes": [0]}]}),
    (ApiKey.DESCRIBE_TRANSACTIONS, ""): (0, {"transactional_ids": [TRANSACTIONAL_ID]}),
    (ApiKey.LIST_TRANSACTIONS, ""): (1, {}),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, ""): (
        1,
        {
            "group_id": GROUP,
            "member_id": "acl-member",
            "member_epoch": 7,
            "subscribed_topic_names": [TOPIC],
            "topic_partitions": [],
        },
    ),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ""): (1, {"group_ids": [GROUP]}),
    (ApiKey.LIST_CONFIG_RESOURCES, ""): (1, {}),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of named topics"): (0, {"topics": [{"name": TOPIC}]}),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of all topics"): (0, {}),
    (ApiKey.DESCRIBE_GROUP_TIMELINE, ""): (0, {"group_id": GROUP}),
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, ""): (0, {"group_id": GROUP, "topics": _SHARE_TOPICS}),
    (ApiKey.READ_SHARE_GROUP_STATE, ""): (0, {"group_id": GROUP, "topics": _SHARE_TOPICS}),
    (ApiKey.WRITE_SHARE_GROUP_STATE, ""): (0, {"group_id": GROUP, "topics": _SHARE_TOPICS}),
    (ApiKey.DELETE_SHARE_GROUP_STATE, ""): (0, {"group_id": GROUP, "topics": _SHARE_TOPICS}),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ""): (0, {"group_id": GROUP, "topics": _SHARE_TOPICS}),
}
"""By API and case of a rule: version and fields. Requests of rules that are not here have default fields: nodes of a
cluster send them, and refuse such a request for other reasons once the sender is allowed to send it."""


def request_for(api: ApiKey, case: str) -> tuple[Any, int]:
    version, fields = REQUESTS.get((api, case), (API_BY_KEY[api].max_version, {}))
    return build(API_BY_KEY[api].request_class(), fields), version


def build(cls: type[Any], values: dict[str, Any]) -> Any:
    layout = layout_of(cls, 0)
    fields = {field.name: field for field in layout.plain + layout.tagged + layout.absent}
    return cls(**{name: _value(fields[name], value) for name, value in values.items()})


def _value(field: Any, value: Any) -> Any:
    if isinstance(field.element, Primitive) or not field.is_array or value is None:
        return value
    return [build(field.element, one) if isinstance(one, dict) else one for one in value]
