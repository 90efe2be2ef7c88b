"""Every API of the Kafka protocol: its key, its versions, and where its messages are.

Message modules are imported when a class of theirs is first asked for: a broker uses a third of them, and not at once.
"""

from enum import IntEnum
from functools import cache
from importlib import import_module
from re import sub
from typing import Any, NamedTuple

from sskafka.wire.schema import NEVER


class ApiSchema(NamedTuple):
    """The versions that Apache Kafka 4.3 defines and calls stable."""

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    """From this version on, headers and bodies have tagged fields and compact lengths."""

    def request_class(self) -> type[Any]:
        return _message_class(self.name, "Request")

    def response_class(self) -> type[Any]:
        return _message_class(self.name, "Response")


@cache
def _message_class(api_name: str, kind: str) -> type[Any]:
    module = import_module(f"sskafka.wire.messages.{sub('(?<!^)(?=[A-Z])', '_', api_name).lower()}")
    cls: type[Any] = getattr(module, api_name + kind)
    return cls


OWN_KEYS_FROM = 20_000
"""Keys of our own APIs, which ask for what Kafka has no API for. Kafka has no key above 10,000."""


UNSTABLE_FROM = {22: 6}
"""By API key, the first version that Kafka 4.3 does not call stable: it lists such versions only when it is told to."""


class ApiKey(IntEnum):
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
    BROKER_IDENTITY = 20010


_APIS = (
    ApiSchema(0, "Produce", 3, 13, 9),
    ApiSchema(1, "Fetch", 4, 18, 12),
    ApiSchema(2, "ListOffsets", 1, 11, 6),
    ApiSchema(3, "Metadata", 0, 13, 9),
    ApiSchema(8, "OffsetCommit", 2, 10, 8),
    ApiSchema(9, "OffsetFetch", 1, 10, 6),
    ApiSchema(10, "FindCoordinator", 0, 6, 3),
    ApiSchema(11, "JoinGroup", 0, 9, 6),
    ApiSchema(12, "Heartbeat", 0, 4, 4),
    ApiSchema(13, "LeaveGroup", 0, 5, 4),
    ApiSchema(14, "SyncGroup", 0, 5, 4),
    ApiSchema(15, "DescribeGroups", 0, 6, 5),
    ApiSchema(16, "ListGroups", 0, 5, 3),
    ApiSchema(17, "SaslHandshake", 0, 1, NEVER),
    ApiSchema(18, "ApiVersions", 0, 4, 3),
    ApiSchema(19, "CreateTopics", 2, 7, 5),
    ApiSchema(20, "DeleteTopics", 1, 6, 4),
    ApiSchema(21, "DeleteRecords", 0, 2, 2),
    ApiSchema(22, "InitProducerId", 0, 6, 2),
    ApiSchema(23, "OffsetForLeaderEpoch", 2, 4, 4),
    ApiSchema(24, "AddPartitionsToTxn", 0, 5, 3),
    ApiSchema(25, "AddOffsetsToTxn", 0, 4, 3),
    ApiSchema(26, "EndTxn", 0, 5, 3),
    ApiSchema(27, "WriteTxnMarkers", 1, 2, 1),
    ApiSchema(28, "TxnOffsetCommit", 0, 5, 3),
    ApiSchema(29, "DescribeAcls", 1, 3, 2),
    ApiSchema(30, "CreateAcls", 1, 3, 2),
    ApiSchema(31, "DeleteAcls", 1, 3, 2),
    ApiSchema(32, "DescribeConfigs", 1, 4, 4),
    ApiSchema(33, "AlterConfigs", 0, 2, 2),
    ApiSchema(34, "AlterReplicaLogDirs", 1, 2, 2),
    ApiSchema(35, "DescribeLogDirs", 1, 5, 2),
    ApiSchema(36, "SaslAuthenticate", 0, 2, 2),
    ApiSchema(37, "CreatePartitions", 0, 3, 2),
    ApiSchema(38, "CreateDelegationToken", 1, 3, 2),
    ApiSchema(39, "RenewDelegationToken", 1, 2, 2),
    ApiSchema(40, "ExpireDelegationToken", 1, 2, 2),
    ApiSchema(41, "DescribeDelegationToken", 1, 3, 2),
    ApiSchema(42, "DeleteGroups", 0, 2, 2),
    ApiSchema(43, "ElectLeaders", 0, 2, 2),
    ApiSchema(44, "IncrementalAlterConfigs", 0, 1, 1),
    ApiSchema(45, "AlterPartitionReassignments", 0, 1, 0),
    ApiSchema(46, "ListPartitionReassignments", 0, 0, 0),
    ApiSchema(47, "OffsetDelete", 0, 0, NEVER),
    ApiSchema(48, "DescribeClientQuotas", 0, 1, 1),
    ApiSchema(49, "AlterClientQuotas", 0, 1, 1),
    ApiSchema(50, "DescribeUserScramCredentials", 0, 0, 0),
    ApiSchema(51, "AlterUserScramCredentials", 0, 0, 0),
    ApiSchema(52, "Vote", 0, 2, 0),
    ApiSchema(53, "BeginQuorumEpoch", 0, 1, 1),
    ApiSchema(54, "EndQuorumEpoch", 0, 1, 1),
    ApiSchema(55, "DescribeQuorum", 0, 2, 0),
    ApiSchema(56, "AlterPartition", 2, 3, 0),
    ApiSchema(57, "UpdateFeatures", 0, 2, 0),
    ApiSchema(58, "Envelope", 0, 0, 0),
    ApiSchema(59, "FetchSnapshot", 0, 1, 0),
    ApiSchema(60, "DescribeCluster", 0, 2, 0),
    ApiSchema(61, "DescribeProducers", 0, 0, 0),
    ApiSchema(62, "BrokerRegistration", 0, 4, 0),
    ApiSchema(63, "BrokerHeartbeat", 0, 2, 0),
    ApiSchema(64, "UnregisterBroker", 0, 0, 0),
    ApiSchema(65, "DescribeTransactions", 0, 0, 0),
    ApiSchema(66, "ListTransactions", 0, 2, 0),
    ApiSchema(67, "AllocateProducerIds", 0, 0, 0),
    ApiSchema(68, "ConsumerGroupHeartbeat", 0, 1, 0),
    ApiSchema(69, "ConsumerGroupDescribe", 0, 1, 0),
    ApiSchema(70, "ControllerRegistration", 0, 0, 0),
    ApiSchema(71, "GetTelemetrySubscriptions", 0, 0, 0),
    ApiSchema(72, "PushTelemetry", 0, 0, 0),
    ApiSchema(73, "AssignReplicasToDirs", 0, 0, 0),
    ApiSchema(74, "ListConfigResources", 0, 1, 0),
    ApiSchema(75, "DescribeTopicPartitions", 0, 0, 0),
    ApiSchema(76, "ShareGroupHeartbeat", 1, 1, 0),
    ApiSchema(77, "ShareGroupDescribe", 1, 1, 0),
    ApiSchema(78, "ShareFetch", 1, 2, 0),
    ApiSchema(79, "ShareAcknowledge", 1, 2, 0),
    ApiSchema(80, "AddRaftVoter", 0, 1, 0),
    ApiSchema(81, "RemoveRaftVoter", 0, 0, 0),
    ApiSchema(82, "UpdateRaftVoter", 0, 0, 0),
    ApiSchema(83, "InitializeShareGroupState", 0, 0, 0),
    ApiSchema(84, "ReadShareGroupState", 0, 0, 0),
    ApiSchema(85, "WriteShareGroupState", 0, 1, 0),
    ApiSchema(86, "DeleteShareGroupState", 0, 0, 0),
    ApiSchema(87, "ReadShareGroupStateSummary", 0, 1, 0),
    ApiSchema(88, "StreamsGroupHeartbeat", 0, 0, 0),
    ApiSchema(89, "StreamsGroupDescribe", 0, 0, 0),
    ApiSchema(90, "DescribeShareGroupOffsets", 0, 1, 0),
    ApiSchema(91, "AlterShareGroupOffsets", 0, 0, 0),
    ApiSchema(92, "DeleteShareGroupOffsets", 0, 0, 0),
    ApiSchema(20001, "RecordCounts", 0, 0, 0),
    ApiSchema(20002, "PlaceRecord", 0, 0, 0),
    ApiSchema(20003, "FlushLogs", 0, 0, 0),
    ApiSchema(20004, "DescribeGroupTimeline", 0, 0, 0),
    ApiSchema(20005, "DescribeReaders", 0, 0, 0),
    ApiSchema(20010, "BrokerIdentity", 0, 0, 0),
)

API_BY_KEY: dict[int, ApiSchema] = {api.key: api for api in _APIS}
