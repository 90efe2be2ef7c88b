"""Error codes and messages of rejected ConsumerGroupHeartbeats, which are those of Apache Kafka 4.3."""

from typing import Any

import pytest
from consumer_lab import REBALANCE_MS, ConsumerLab, LabConsumer

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions


def joining(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    whole: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": ["orders"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**whole | fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "  "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": "", "group_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"topic_partitions": [TopicPartitions(bytes(16), [0])]}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests(fields: dict[str, Any], message: str) -> None:
    refused = ConsumerLab().heartbeat(joining(**fields))
    assert (refused.code, refused.message) == (ErrorCode.INVALID_REQUEST, message)


def test_the_first_version_gives_out_member_ids() -> None:
    lab = ConsumerLab()
    assert lab.heartbeat(joining(member_id=""), version=0).response.member_id
    leaving = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "", -1), version=0)
    assert (leaving.code, leaving.message) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


def test_assignors_and_patterns_that_cannot_be_used() -> None:
    lab = ConsumerLab()
    refused = lab.heartbeat(joining(server_assignor="best"))
    sentence = "ServerAssignor best is not supported. Supported assignors: uniform, range."
    assert (refused.code, refused.message) == (ErrorCode.UNSUPPORTED_ASSIGNOR, sentence)
    refused = lab.heartbeat(joining(subscribed_topic_regex="a("))
    assert refused.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.message.startswith("SubscribedTopicRegex `a(` is not a valid regular expression: ")


def test_members_and_groups_that_are_not_there() -> None:
    lab = ConsumerLab()
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "m", 3))
    assert (refused.code, refused.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found.")
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "m", -1))
    assert (refused.code, refused.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")
    lab.commit(5, topic="orders")
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "m", 3))
    assert (refused.code, refused.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    LabConsumer(lab, "alice").join()
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "m", 3))
    assert (refused.code, refused.message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g.")


def test_epochs_that_are_not_the_members() -> None:
    lab = ConsumerLab()
    LabConsumer(lab, "alice").join()
    for epoch, size in ((9, "greater"), (1, "smaller")):
        refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "alice", epoch))
        assert (refused.code, refused.message) == (
            ErrorCode.FENCED_MEMBER_EPOCH,
            (
                f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group "
                "coordinator (2). The member must abandon all its partitions and rejoin."
            ),
        )


def test_static_members() -> None:
    lab = ConsumerLab()
    one = LabConsumer(lab, "one", instance_id="i")
    one.join()
    for member_id in ("one", "two"):
        refused = LabConsumer(lab, member_id, instance_id="i").join()
        assert (refused.code, refused.message) == (
            ErrorCode.UNRELEASED_INSTANCE_ID,
            (
                f"Static member {member_id} with instance id i cannot join the group because the instance id is owned "
                "by one member."
            ),
        )
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "two", 2, instance_id="i"))
    assert (refused.code, refused.message) == (
        ErrorCode.FENCED_INSTANCE_ID,
        "Static member two with instance id i was fenced by member one.",
    )
    refused = lab.heartbeat(ConsumerGroupHeartbeatRequest("g", "one", 2, instance_id="j"))
    assert (refused.code, refused.message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown.")


def test_a_full_group() -> None:
    lab = ConsumerLab(consumer_group_size_max=1)
    LabConsumer(lab, "alice").join()
    refused = LabConsumer(lab, "bob").join()
    sentence = "The consumer group has reached its maximum capacity of 1 members."
    assert (refused.code, refused.message) == (ErrorCode.GROUP_MAX_SIZE_REACHED, sentence)
