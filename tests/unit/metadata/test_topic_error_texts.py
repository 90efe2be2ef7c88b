"""Errors of topic requests: the messages of Apache Kafka 4.3.1, which tools print and match."""

import pytest
from metadata_clusters import SETTINGS, cluster, seeded, with_topic

from sskafka.metadata.elect_leaders import elect_leaders
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.topics import create_partitions, create_topics, delete_topics
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from sskafka.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

ODD = "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
LONG = "x" * 250
TOO_MANY = "Excessively large number of partitions per request."


@pytest.fixture
def image() -> ClusterImage:
    """Return an image with one broker and the topics "base", with two partitions, and "a.b"."""
    return with_topic(with_topic(cluster(), "base", 2), "a.b")


def manual(*replicas: tuple[int, list[int]]) -> CreatableTopic:
    return CreatableTopic("z", -1, -1, [CreatableReplicaAssignment(*item) for item in replicas])


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        (CreatableTopic("base", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'base' already exists."),
        (
            CreatableTopic("", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            CreatableTopic("..", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: '..' is not allowed",
        ),
        (CreatableTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ODD),
        (
            CreatableTopic(LONG, 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: the length of '{LONG}' is longer than the max allowed length 249",
        ),
        (
            CreatableTopic("a_b", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        (
            CreatableTopic("__cluster_metadata", 1, 1),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            CreatableTopic("z", 0, 1),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            CreatableTopic("z", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            CreatableTopic("z", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
            ),
        ),
        (CreatableTopic("z", 20_000, 1), ErrorCode.POLICY_VIOLATION, TOO_MANY),
        (
            CreatableTopic("z", 1, 1, [CreatableReplicaAssignment(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            CreatableTopic("z", 1, -1, [CreatableReplicaAssignment(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            manual((0, [])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            manual((0, [7])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            manual((0, [1, 1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            manual((1, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            manual((0, [1]), (0, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
    ],
)
def test_creation(image: ClusterImage, topic: CreatableTopic, code: ErrorCode, text: str) -> None:
    (result,) = create_topics(image, CreateTopicsRequest([topic]), SETTINGS, seeded()).response.topics
    assert (result.error_code, result.error_message) == (code, text)


def test_creation_of_a_topic_that_is_named_twice(image: ClusterImage) -> None:
    request = CreateTopicsRequest([CreatableTopic("z", 1, 1)] * 2)
    (result,) = create_topics(image, request, SETTINGS, seeded()).response.topics
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "text"),
    [
        ("base", 2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            "base",
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "The topic base currently has 2 partition(s); 1 would not be an increase.",
        ),
        ("none", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            "base",
            3,
            [],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            "base",
            3,
            [[1], [1]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            "base",
            3,
            [[7]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
def test_growth(
    image: ClusterImage, name: str, count: int, assignments: list[list[int]] | None, code: ErrorCode, text: str | None
) -> None:
    placed = None if assignments is None else [CreatePartitionsAssignment(item) for item in assignments]
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, placed)])
    (result,) = create_partitions(image, request, seeded()).response.results
    assert (result.error_code, result.error_message) == (code, text)


@pytest.mark.parametrize(
    ("states", "code", "text"),
    [
        (
            [DeleteTopicState("none")],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (
            [DeleteTopicState(None, b"z" * 16)],
            ErrorCode.UNKNOWN_TOPIC_ID,
            "This server does not host this topic ID.",
        ),
        (
            [DeleteTopicState("base", b"z" * 16)],
            ErrorCode.INVALID_REQUEST,
            "You may not specify both topic name and topic id.",
        ),
        ([DeleteTopicState(None)], ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
        ([DeleteTopicState("base")] * 2, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ([DeleteTopicState(None, b"z" * 16)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate topic id."),
    ],
)
def test_deletion(image: ClusterImage, states: list[DeleteTopicState], code: ErrorCode, text: str) -> None:
    decision = delete_topics(image, DeleteTopicsRequest(topics=states), SETTINGS)
    (result,) = decision.response.responses
    assert (result.error_code, result.error_message) == (code, text)
    assert list(decision.records) == []


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        ("base", ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as none"),
    ],
)
def test_elections(image: ClusterImage, topic: str, code: ErrorCode, text: str) -> None:
    request = ElectLeadersRequest(0, [TopicPartitions(topic, [0])])
    (result,) = elect_leaders(image, request, SETTINGS).response.replica_election_results
    assert [(item.error_code, item.error_message) for item in result.partition_result] == [(code, text)]
