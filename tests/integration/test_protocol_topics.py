"""Topics on the wire: names, metadata, descriptions in pages, ids."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broker_process import StartBroker
from wire_connection import Connection, produce_request, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from sskafka.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

BAD_NAMES = ("", ".", "..", "a/b", "a b", "naïve", "a" * 250, "../../etc/passwd")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names_are_refused(connection: Connection, name: str) -> None:
    wanted = CreatableTopic(name, num_partitions=1, replication_factor=1)
    (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message
    assert connection.topic_metadata(name, create=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_of_the_greatest_length(connection: Connection, topic: str) -> None:
    name = topic + "x" * (249 - len(topic))
    connection.create_topic(name)
    assert connection.produce(name, values_batch(b"value")).error_code == 0


def test_names_that_differ_by_dot_and_underscore_collide(connection: Connection, topic: str) -> None:
    connection.create_topic(topic + ".a")
    wanted = CreatableTopic(topic + "_a", num_partitions=1, replication_factor=1)
    (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_metadata_creates_topics_only_when_asked(connection: Connection, topic: str) -> None:
    assert connection.topic_metadata(topic, create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert connection.topic_metadata(topic, create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    created = connection.topic_metadata(topic, create=True)
    assert (created.error_code, created.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert [p.partition_index for p in connection.auto_create_topic(topic).partitions] == [0]


def test_a_topic_that_is_named_twice_is_created_and_described_once(connection: Connection, topic: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)] * 2, allow_auto_topic_creation=True)
    (unknown,) = connection.call(request, version=12).topics
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    connection.auto_create_topic(topic)
    (described,) = connection.call(request, version=12).topics
    assert (described.error_code, described.name) == (0, topic)


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_created_as_their_coordinators_need_them(start_broker: StartBroker, name: str) -> None:
    with Connection(start_broker().bootstrap) as connection:
        unknown = connection.topic_metadata(name, create=True)
        assert (unknown.error_code, unknown.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
        assert len(connection.auto_create_topic(name).partitions) == 50


def test_an_internal_topic_that_nobody_keeps_is_not_created(start_broker: StartBroker) -> None:
    name = "__share_group_state"
    with Connection(start_broker().bootstrap) as connection:
        for _ in range(2):
            unknown = connection.topic_metadata(name, create=True)
            assert (unknown.error_code, unknown.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
        connection.auto_create_topic("another")
        assert connection.topic_metadata(name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_id_counts_for_more_than_a_name(connection: Connection, topic: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(b"z" * 16, topic)], allow_auto_topic_creation=True)
    (answer,) = connection.call(request, version=12).topics
    assert (answer.error_code, answer.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert connection.topic_metadata(topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_is_in_a_rack_only_when_it_is_told(start_broker: StartBroker, tmp_path: Path) -> None:
    for directory, settings, rack in (("a", {}, None), ("b", {"broker.rack": "r1"}, "r1")):
        broker = start_broker(settings, directory=tmp_path / directory)
        with Connection(broker.bootstrap) as connection:
            (described,) = connection.call(MetadataRequest(topics=[]), version=12).brokers
            assert described.rack == rack
            assert [node.rack for node in connection.call(DescribeClusterRequest(), version=1).brokers] == [rack]


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_metadata(connection: Connection, topic: str, version: int) -> None:
    topic_id = connection.create_topic(topic, 2)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    response = connection.call(request, version)
    (broker,) = response.brokers
    assert (broker.host, broker.port) == connection.socket.getpeername()
    (described,) = response.topics
    assert (described.error_code, described.name) == (0, topic)
    assert described.topic_id == (topic_id if version >= 10 else ZERO_UUID)
    assert [p.partition_index for p in sorted(described.partitions, key=lambda p: p.partition_index)] == [0, 1]
    assert all((p.leader_id, p.isr_nodes) == (broker.node_id, [broker.node_id]) for p in described.partitions)


def test_metadata_by_id(connection: Connection, topic: str) -> None:
    topic_id = connection.create_topic(topic)
    wanted = [MetadataRequestTopic(topic_id=t, name=None) for t in (topic_id, bytes(range(16)))]
    known, unknown = sorted(
        connection.call(MetadataRequest(topics=wanted), version=12).topics, key=lambda t: t.error_code
    )
    assert (known.name, known.error_code) == (topic, 0)
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_given_assignments(connection: Connection, new_topic: Callable[[str], str]) -> None:
    node_id = connection.call(MetadataRequest(topics=[]), version=12).brokers[0].node_id
    cases = {
        new_topic("right"): ([CreatableReplicaAssignment(p, [node_id]) for p in (0, 1)], ErrorCode.NONE),
        new_topic("gap"): ([CreatableReplicaAssignment(1, [node_id])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        new_topic("stranger"): ([CreatableReplicaAssignment(0, [4242])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    }
    for name, (assignments, error_code) in cases.items():
        wanted = CreatableTopic(name, num_partitions=-1, replication_factor=-1, assignments=assignments)
        (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        assert result.error_code == error_code, name


@pytest.mark.usefixtures("_ours")
def test_a_topic_is_usable_when_its_creation_is_answered(
    connection: Connection, new_topic: Callable[[str], str]
) -> None:
    for _ in range(10):
        name = new_topic("at-once")
        wanted = CreatableTopic(name, num_partitions=3, replication_factor=1)
        (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        assert result.error_code == 0
        assert connection.produce(name, values_batch(b"first"), partition=2).base_offset == 0
        assert values_in(connection.fetch(name, partition=2)) == [b"first"]


@pytest.mark.usefixtures("_ours")
def test_a_request_right_behind_the_creation_finds_the_topic_or_says_so(connection: Connection, topic: str) -> None:
    wanted = CreatableTopic(topic, num_partitions=1, replication_factor=1)
    connection.send(CreateTopicsRequest(topics=[wanted]), version=7)
    connection.send(produce_request(topic, values_batch(b"eager")), version=9)
    assert connection.receive()[1].topics[0].error_code == 0
    eager = connection.receive()[1].responses[0].partition_responses[0]
    assert eager.error_code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_topics_may_be_deleted_while_their_files_are_synced(
    connection: Connection, new_topic: Callable[[str], str]
) -> None:
    """Small segments are synced in the background as they fill; deletion must not get into the way of that."""
    for _ in range(20):
        name = new_topic("short-lived")
        connection.create_topic(name, 2, segment_bytes=1_048_576)
        for partition in (0, 1, 0, 1, 0, 1):
            connection.produce(name, values_batch(bytes(700_000)), partition)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        assert connection.call(deletion, version=6).responses[0].error_code == 0
    survivor = new_topic("survivor")
    connection.create_topic(survivor)
    assert connection.produce(survivor, values_batch(b"value")).error_code == 0


# ------------------------------------------------------------------------------------ DescribeTopicPartitions


def test_topics_are_described_in_order_of_their_names(connection: Connection, new_topic: Callable[[str], str]) -> None:
    first, second, third = (new_topic("sorted") for _ in range(3))
    ids = {name: connection.create_topic(name, count) for name, count in ((third, 1), (first, 2))}
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name) for name in (third, second, first)])
    response = connection.call(request, version=0)
    assert [topic.name for topic in response.topics] == [first, second, third]
    assert [topic.error_code for topic in response.topics] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert [topic.topic_id for topic in response.topics] == [ids[first], ZERO_UUID, ids[third]]
    assert [len(topic.partitions) for topic in response.topics] == [2, 0, 1]
    assert response.next_cursor is None
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_epoch) == (0, 0)
    assert partition.replica_nodes == partition.isr_nodes == [partition.leader_id]


def test_descriptions_come_in_pages(connection: Connection, new_topic: Callable[[str], str]) -> None:
    names = [new_topic("paged") for _ in range(3)]
    for name, count in zip(names, (3, 1, 4), strict=True):
        connection.create_topic(name, count)
    seen: list[tuple[str, int]] = []
    cursor: Cursor | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name) for name in reversed(names)], response_partition_limit=3, cursor=cursor
        )
        response = connection.call(request, version=0)
        page = [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]
        assert len(page) <= 3
        seen += page
        cursor = response.next_cursor
        pages += 1
        assert pages < 10
    everything = [(name, p) for name, count in zip(names, (3, 1, 4), strict=True) for p in range(count)]
    assert seen == everything


def test_log_directories_are_described_with_the_topics_in_them(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, partitions=2)
    connection.produce(topic, values_batch(b"a"), partition=1)
    (directory,) = connection.call(DescribeLogDirsRequest(topics=None), version=4).results
    sizes = {item.name: [part.partition_size for part in item.partitions] for item in directory.topics}
    assert sizes[topic] == [0, len(values_batch(b"a"))]
    assert "__cluster_metadata" not in sizes
    assert 0 < directory.usable_bytes <= directory.total_bytes
