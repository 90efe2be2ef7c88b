"""Details of answers that describe topics, offsets and the cluster, as Apache Kafka 4.3.1 gives them."""

import pytest
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

ALL_RIGHTS_ON_TOPICS = 3576


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_refused_before_version_12(connection: Connection, version: int) -> None:
    asked = [MetadataRequestTopic(b"i" * 16, None)]
    response = connection.call(MetadataRequest(topics=asked, allow_auto_topic_creation=False), version)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)


def test_rights_on_unknown_topics_are_told(connection: Connection, topic: str) -> None:
    request = MetadataRequest([MetadataRequestTopic(name=topic)], False, include_topic_authorized_operations=True)
    (unknown,) = connection.call(request, version=12).topics
    assert unknown.topic_authorized_operations == ALL_RIGHTS_ON_TOPICS
    (described,) = connection.call(DescribeTopicPartitionsRequest([TopicRequest(topic)]), version=0).topics
    assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described.topic_authorized_operations == ALL_RIGHTS_ON_TOPICS


def test_pages_of_partitions_need_a_proper_name_and_cursor(connection: Connection, topic: str) -> None:
    (described,) = connection.call(DescribeTopicPartitionsRequest([TopicRequest("bad/name")]), version=0).topics
    assert described.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)], 100, Cursor(topic, -1))
    (refused,) = connection.call(request, version=0).topics
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def listed(connection: Connection, topic: str, *timestamps: int, version: int = 11) -> list[tuple[int, int, int]]:
    partitions = [ListOffsetsPartition(0, timestamp=timestamp) for timestamp in timestamps]
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, partitions)])
    (answer,) = connection.call(request, version).topics
    return [(item.error_code, item.offset, item.leader_epoch) for item in answer.partitions]


@pytest.mark.parametrize(("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_timestamps_need_a_version_that_knows_them(
    connection: Connection, topic: str, timestamp: int, first_version: int
) -> None:
    connection.create_topic(topic)
    ((error, offset, _),) = listed(connection, topic, timestamp, version=first_version - 1)
    assert (error, offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert listed(connection, topic, timestamp, version=first_version)[0][0] == ErrorCode.NONE
    assert listed(connection, topic, -7)[0][0] == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_log_has_the_epoch_of_its_leader(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    for timestamp in (-1, -2, -4):
        assert listed(connection, topic, timestamp) == [(ErrorCode.NONE, 0, 0)]


def test_a_partition_is_asked_for_once(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    assert listed(connection, topic, -1, -2) == [(ErrorCode.INVALID_REQUEST, -1, -1)]


@pytest.mark.parametrize(
    ("endpoint_type", "code", "text"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 9"),
    ],
)
def test_a_broker_describes_brokers(connection: Connection, endpoint_type: int, code: ErrorCode, text: str) -> None:
    response = connection.call(DescribeClusterRequest(False, endpoint_type), version=2)
    assert (response.error_code, response.error_message, response.endpoint_type) == (code, text, 1)


def test_a_fetch_of_an_unknown_session_names_no_session(connection: Connection) -> None:
    response = connection.call(FetchRequest(session_id=123, session_epoch=5), version=12)
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_a_negative_leader_epoch_is_old_where_offsets_are_listed(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    partitions = [ListOffsetsPartition(0, current_leader_epoch=-2, timestamp=-1)]
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, partitions)])
    (answer,) = connection.call(request, version=11).topics
    assert answer.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_negative_leader_epochs_of_fetches_are_not_compared(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    for epoch, code in ((-2, ErrorCode.NONE), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        wanted = FetchTopic(topic, partitions=[FetchPartition(0, current_leader_epoch=epoch, partition_max_bytes=1000)])
        (answer,) = connection.call(FetchRequest(max_bytes=1000, topics=[wanted]), version=12).responses
        assert answer.partitions[0].error_code == code


def test_an_unknown_partition_has_an_empty_list_of_aborted_transactions(connection: Connection, topic: str) -> None:
    wanted = FetchTopic(topic, partitions=[FetchPartition(0, partition_max_bytes=1000)])
    (answer,) = connection.call(FetchRequest(max_bytes=1000, topics=[wanted]), version=12).responses
    assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.partitions[0].aborted_transactions == []


def test_a_first_fetch_without_partitions_opens_a_session(connection: Connection) -> None:
    response = connection.call(FetchRequest(max_bytes=1000, session_epoch=0), version=12)
    assert response.error_code == ErrorCode.NONE
    assert response.session_id > 0


@pytest.mark.parametrize("level", [-1, 2])
def test_isolation_levels_that_do_not_exist_are_refused(connection: Connection, topic: str, level: int) -> None:
    connection.create_topic(topic)
    wanted = FetchTopic(topic, partitions=[FetchPartition(0, partition_max_bytes=1000)])
    for version in (4, 12):
        request = FetchRequest(max_bytes=1000, isolation_level=level, session_epoch=0, topics=[wanted])
        request.session_epoch = 0 if version >= 7 else -1
        response = connection.call(request, version)
        assert response.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        assert (response.error_code, response.session_id) == (ErrorCode.INVALID_REQUEST if version >= 7 else 0, 0)
    offsets = ListOffsetsRequest(-1, level, [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=-1)])])
    (answer,) = connection.call(offsets, version=11).topics
    assert answer.partitions[0].error_code == ErrorCode.INVALID_REQUEST
