"""A request of every kind about one large topic, one group with many offsets and one with many members.

`largest_requests.py` varies how much is asked. Here much exists, and each request asks for all of it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from sskafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sskafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sskafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from sskafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sskafka.wire.messages.delete_groups import DeleteGroupsRequest
from sskafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sskafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sskafka.wire.messages.describe_groups import DescribeGroupsRequest
from sskafka.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from sskafka.wire.messages.describe_readers import DescribeReadersRequest
from sskafka.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from sskafka.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from sskafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest
from sskafka.wire.messages.end_txn import EndTxnRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from sskafka.wire.messages.flush_logs import FlushLogsRequest
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sskafka.wire.messages.list_groups import ListGroupsRequest
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from sskafka.wire.messages.list_transactions import ListTransactionsRequest
from sskafka.wire.messages.metadata import MetadataRequest
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sskafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from sskafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sskafka.wire.messages.record_counts import RecordCountsRequest
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC, BROKER = 2, 4
TIMEOUT_MS = 60_000
LISTED_MAX = 9_990
"""As many as fit into requests that may list 10,000 things."""

Asked = tuple[Any, int]
"""A request, and its version."""


class LargeCluster(NamedTuple):
    topic: str
    topic_id: bytes
    partitions: int
    group: str
    """A group that has committed an offset for every partition. It has no members."""
    other_group: str
    """The same."""
    consumer_group: str
    """A group with many members."""

    @property
    def indexes(self) -> list[int]:
        return list(range(self.partitions))


def commit_of_all(cluster: LargeCluster, group: str) -> Asked:
    partitions = [OffsetCommitRequestPartition(index, 5, 0, "m") for index in cluster.indexes]
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(cluster.topic, partitions=partitions)]), 9


def questions(cluster: LargeCluster) -> Iterator[Asked]:
    """Yield requests that change nothing."""
    name, indexes = cluster.topic, cluster.indexes
    yield MetadataRequest(topics=None), 12
    yield DescribeTopicPartitionsRequest([DescribedTopic(name)], cluster.partitions), 0
    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0):
        wanted = [ListOffsetsPartition(index, -1, timestamp) for index in indexes]
        yield ListOffsetsRequest(-1, 0, [ListOffsetsTopic(name, wanted)]), 9
    epochs = [OffsetForLeaderPartition(index, -1, 0) for index in indexes]
    yield OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(name, epochs)]), 4
    for version in (9, 10):
        yield OffsetFetchRequest(groups=[OffsetFetchRequestGroup(cluster.group, topics=None)]), version
    yield OffsetFetchRequest(cluster.group, topics=None), 7
    fetched = [FetchTopic(topic_id=cluster.topic_id, partitions=[FetchPartition(index) for index in indexes])]
    yield FetchRequest(session_epoch=0, max_wait_ms=0, topics=fetched), 13
    yield DescribeProducersRequest([TopicRequest(name, indexes)]), 0
    resources = [DescribeConfigsResource(TOPIC, name, None), DescribeConfigsResource(BROKER, "1", None)]
    yield DescribeConfigsRequest(resources, True, True), 4
    yield DescribeLogDirsRequest(None), 4
    yield DescribeLogDirsRequest([DescribableLogDirTopic(name, indexes)]), 4
    yield DescribeReadersRequest(None), 0
    yield RecordCountsRequest(name, indexes[:LISTED_MAX]), 0
    yield ListPartitionReassignmentsRequest(TIMEOUT_MS, None), 0
    yield ListGroupsRequest(), 5
    yield DescribeGroupsRequest([cluster.group, cluster.consumer_group]), 5
    yield ConsumerGroupDescribeRequest(group_ids=[cluster.group, cluster.consumer_group]), 1
    yield CreatePartitionsRequest([CreatePartitionsTopic(name, cluster.partitions + 1, None)], TIMEOUT_MS, True), 3


def transaction(cluster: LargeCluster, transactional_id: str, producer: tuple[int, int]) -> Iterator[Asked]:
    """Yield the requests of a transaction with all partitions and all offsets, and a description of it."""
    added = [AddPartitionsToTxnTopic(cluster.topic, cluster.indexes[:LISTED_MAX])]
    yield AddPartitionsToTxnRequest([], transactional_id, *producer, added), 3
    yield AddOffsetsToTxnRequest(transactional_id, *producer, cluster.group), 3
    partitions = [TxnOffsetCommitRequestPartition(index, 7, -1, "") for index in cluster.indexes]
    topics = [TxnOffsetCommitRequestTopic(cluster.topic, partitions)]
    yield TxnOffsetCommitRequest(transactional_id, cluster.group, *producer, topics=topics), 3
    yield DescribeTransactionsRequest([transactional_id]), 0
    yield ListTransactionsRequest(), 1
    yield EndTxnRequest(transactional_id, *producer, True), 3


def changes(cluster: LargeCluster) -> Iterator[Asked]:
    """Yield requests that change things. The last ones delete the group and the topic."""
    name, indexes = cluster.topic, cluster.indexes
    yield FlushLogsRequest(), 0
    yield ElectLeadersRequest(0, None), 2
    moved = [ReassignablePartition(index, [1]) for index in indexes]
    yield AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name, moved)]), 0
    yield AlterReplicaLogDirsRequest([AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(name, indexes)])]), 2
    config = AlterConfigsResource(TOPIC, name, [AlterableConfig("retention.ms", 0, "100000000")])
    yield IncrementalAlterConfigsRequest([config]), 1
    emptied = [DeleteRecordsPartition(index, 0) for index in indexes]
    yield DeleteRecordsRequest([DeleteRecordsTopic(name, emptied)], TIMEOUT_MS), 2
    half = [OffsetDeleteRequestPartition(index) for index in indexes[: len(indexes) // 10]]
    yield OffsetDeleteRequest(cluster.other_group, [OffsetDeleteRequestTopic(name, half)]), 0
    yield CreatePartitionsRequest([CreatePartitionsTopic(name, cluster.partitions + 1, None)], TIMEOUT_MS), 3
    yield DeleteGroupsRequest([cluster.group]), 2
    yield DeleteTopicsRequest(topics=[DeleteTopicState(name)], timeout_ms=TIMEOUT_MS), 6
