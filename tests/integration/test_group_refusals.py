"""Refusals of group requests on the wire, field by field as Apache Kafka 4.3.1 answers them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker_process import BrokerProcess
from group_fixtures import group_broker
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import parse_uuid
from sskafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from sskafka.wire.messages.delete_groups import DeleteGroupsRequest
from sskafka.wire.messages.describe_groups import DescribeGroupsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from sskafka.wire.messages.list_groups import ListGroupsRequest
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
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from sskafka.wire.messages.sync_group import SyncGroupRequest
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

__all__ = ["group_broker"]

NO_ERROR = 0


@pytest.fixture
def wire(group_broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(group_broker.bootstrap) as connection:
        wait_until(lambda: connection.call(FindCoordinatorRequest("any"), 0).error_code == 0, "there is a coordinator")
        wait_until(lambda: connection.call(ListGroupsRequest(), 0).error_code == 0, "groups are loaded")
        yield connection


@pytest.fixture
def group(new_topic: Callable[[str], str]) -> str:
    return new_topic("group")


@pytest.fixture
def two_partitions(wire: Connection, topic: str) -> str:
    wire.create_topic(topic, 2)
    return topic


def joining(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    wanted: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol("range", b"topics")],
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **wanted | fields)


def committing(group: str, topic: str, partition: int = 0, epoch: int = -1, member_id: str = "") -> OffsetCommitRequest:
    offsets = [OffsetCommitRequestPartition(partition, 5, -1, "")]
    topics = [OffsetCommitRequestTopic(topic, partitions=offsets)]
    return OffsetCommitRequest(group, epoch, member_id, topics=topics)


def committed(wire: Connection, version: int = 9, **fields: Any) -> int:
    return int(wire.call(committing(**fields), version).topics[0].partitions[0].error_code)


def deleted(wire: Connection, group: str, topic: str, *partitions: int) -> Any:
    asked = [OffsetDeleteRequestPartition(partition) for partition in partitions]
    return wire.call(OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, asked)]), 0)


# -- the empty group id

EMPTY_GROUP_IDS = [
    (joining(""), 9, ErrorCode.INVALID_GROUP_ID),
    (SyncGroupRequest("", 1, "m", protocol_type="consumer", protocol_name="range"), 5, ErrorCode.INVALID_GROUP_ID),
    (HeartbeatRequest("", 1, "m"), 4, ErrorCode.INVALID_GROUP_ID),
    (LeaveGroupRequest("", members=[MemberIdentity("m")]), 5, ErrorCode.INVALID_GROUP_ID),
    (LeaveGroupRequest("", "m"), 0, ErrorCode.INVALID_GROUP_ID),
    (OffsetDeleteRequest(""), 0, ErrorCode.INVALID_GROUP_ID),
    (ConsumerGroupHeartbeatRequest("", "m", 0), 1, ErrorCode.INVALID_REQUEST),
    (FindCoordinatorRequest(""), 2, ErrorCode.NONE),
]


@pytest.mark.parametrize(("request_message", "version", "code"), EMPTY_GROUP_IDS)
def test_requests_without_a_group_id(wire: Connection, request_message: Any, version: int, code: ErrorCode) -> None:
    assert wire.call(request_message, version).error_code == code


def test_administration_without_a_group_id(wire: Connection, two_partitions: str) -> None:
    """Offsets may be kept under the empty name; there is no consumer group and no transaction of that name."""
    assert committed(wire, group="", topic=two_partitions, epoch=3, member_id="m") == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(wire, 8, group="", topic=two_partitions, epoch=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert committed(wire, group="", topic=two_partitions) == NO_ERROR
    wanted = OffsetFetchRequestGroup("", topics=[OffsetFetchRequestTopics(two_partitions, bytes(16), [0])])
    (fetched,) = wire.call(OffsetFetchRequest(groups=[wanted]), 9).groups
    assert (fetched.error_code, fetched.topics[0].partitions[0].committed_offset) == (NO_ERROR, 5)
    (described,) = wire.call(DescribeGroupsRequest([""]), 6).groups
    assert (described.error_code, described.group_state) == (NO_ERROR, "Empty")
    (described,) = wire.call(ConsumerGroupDescribeRequest([""]), 1).groups
    assert described.error_code == ErrorCode.INVALID_GROUP_ID
    offsets = [TxnOffsetCommitRequestTopic(two_partitions, [TxnOffsetCommitRequestPartition(0, 1)])]
    transactional = wire.call(TxnOffsetCommitRequest("t", "", 1000, 0, topics=offsets), 3)
    assert transactional.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
    for code in (NO_ERROR, ErrorCode.GROUP_ID_NOT_FOUND):
        (result,) = wire.call(DeleteGroupsRequest([""]), 2).results
        assert result.error_code == code


# -- classic groups


@pytest.mark.parametrize("version", range(10))
def test_join_group_refusals(wire: Connection, group: str, version: int) -> None:
    no_name = None if version >= 7 else ""

    def refused(**fields: Any) -> tuple[Any, ...]:
        answer = wire.call(joining(group, **fields), version)
        assert (answer.generation_id, answer.protocol_type, answer.leader, answer.members) == (-1, None, "", [])
        assert answer.protocol_name == no_name
        return answer.error_code, answer.member_id

    assert refused(session_timeout_ms=1) == (ErrorCode.INVALID_SESSION_TIMEOUT, "")
    assert refused(session_timeout_ms=1, member_id="m") == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")
    assert refused(member_id="nobody") == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")
    assert refused(protocols=[]) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert refused(protocol_type="") == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    if version >= 4:
        code, member_id = refused()
        assert code == ErrorCode.MEMBER_ID_REQUIRED
        assert member_id.startswith("raw-")


def test_sync_group_names_its_protocol_from_version_five_on(wire: Connection, group: str) -> None:
    asked = SyncGroupRequest(group, 1, "m", protocol_type="consumer", protocol_name="range")
    assert wire.call(asked, 5).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    asked.protocol_name = None
    answer = wire.call(asked, 5)
    assert (answer.error_code, answer.protocol_type, answer.protocol_name) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        None,
        None,
    )
    assert wire.call(asked, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leave_group_names_every_member_of_a_group_that_is_not_there(wire: Connection, group: str) -> None:
    members = [MemberIdentity("m"), MemberIdentity("", "i")]
    answer = wire.call(LeaveGroupRequest(group, members=members), 5)
    assert answer.error_code == NO_ERROR
    assert [(left.member_id, left.group_instance_id, left.error_code) for left in answer.members] == [
        ("m", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert wire.call(LeaveGroupRequest(group, "m"), 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_was_only_given_an_id_does_not_keep_its_group(wire: Connection, group: str) -> None:
    assert wire.call(joining(group), 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
    (result,) = wire.call(DeleteGroupsRequest([group]), 2).results
    assert result.error_code == NO_ERROR


def test_a_group_that_is_not_there_is_dead(wire: Connection, group: str) -> None:
    (described,) = wire.call(DescribeGroupsRequest([group], True), 5).groups
    assert (described.error_code, described.group_state, described.authorized_operations) == (NO_ERROR, "Dead", 3400)
    (described,) = wire.call(DescribeGroupsRequest([group], True), 6).groups
    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {group} not found.",
    )
    assert described.authorized_operations == -(2**31)


def test_groups_named_twice_are_deleted_once_and_described_twice(wire: Connection, group: str) -> None:
    assert len(wire.call(DeleteGroupsRequest([group, group]), 2).results) == 1
    assert len(wire.call(DescribeGroupsRequest([group, group]), 6).groups) == 2


# -- offsets


def test_offsets_of_partitions_that_are_not_there(wire: Connection, group: str, two_partitions: str) -> None:
    for partition in (2, -1):
        code = committed(wire, group=group, topic=two_partitions, partition=partition)
        assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert committed(wire, group=group, topic=two_partitions, partition=1) == NO_ERROR


def test_deleting_offsets_of_what_is_not_there(wire: Connection, group: str, two_partitions: str) -> None:
    unknown = deleted(wire, group, two_partitions, 0)
    assert (unknown.error_code, unknown.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    committed(wire, group=group, topic=two_partitions)
    answer = deleted(wire, group, "no-such-topic", 0)
    assert answer.error_code == NO_ERROR
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = deleted(wire, group, two_partitions, 0, 9, -1, 1)
    assert [(item.partition_index, item.error_code) for item in answer.topics[0].partitions] == [
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, NO_ERROR),
        (1, NO_ERROR),
    ]


def test_topics_without_partitions(wire: Connection, group: str, two_partitions: str) -> None:
    """Only OffsetFetch repeats them."""
    committed(wire, group=group, topic=two_partitions)
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(two_partitions, partitions=[])])
    assert wire.call(request, 9).topics == []
    assert deleted(wire, group, two_partitions).topics == []
    wanted = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(two_partitions, bytes(16), [])])
    (fetched,) = wire.call(OffsetFetchRequest(groups=[wanted]), 9).groups
    assert [(topic.name, topic.partitions) for topic in fetched.topics] == [(two_partitions, [])]


# -- consumer groups


def test_a_consumer_group_shows_what_its_members_have_and_give_up(
    wire: Connection, group: str, two_partitions: str
) -> None:
    def join(member_id: str) -> Any:
        return wire.call(
            ConsumerGroupHeartbeatRequest(
                group,
                member_id,
                0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=[two_partitions],
                topic_partitions=[],
            ),
            1,
        )

    def described() -> Any:
        (found,) = wire.call(ConsumerGroupDescribeRequest([group], True), 1).groups
        assert (found.error_code, found.error_message, found.authorized_operations) == (NO_ERROR, None, 3400)
        return found

    def partitions(assignment: Any) -> list[int]:
        return sorted(index for topic in assignment.topic_partitions for index in topic.partitions)

    first = join("a")
    topic_id = first.assignment.topic_partitions[0].topic_id
    assert first.member_epoch == 2
    found = described()
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    (member,) = found.members
    assert (member.subscribed_topic_regex, member.instance_id, member.rack_id) == ("", None, None)
    assert join("b").member_epoch == 2, "within the assignment interval"
    assert described().group_state == "Assigning"
    wait_until(
        lambda: wire.call(ConsumerGroupHeartbeatRequest(group, "b", 2), 1).member_epoch == 3, "there is a new target"
    )
    wire.call(ConsumerGroupHeartbeatRequest(group, "a", 2), 1)
    found = described()
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Reconciling", 3, 3)
    giving = next(member for member in found.members if member.member_id == "a")
    assert partitions(giving.assignment) == [0, 1], "with what it has not given up yet"
    assert len(partitions(giving.target_assignment)) == 1
    kept = [TopicPartitions(topic_id, partitions(giving.target_assignment))]
    wire.call(ConsumerGroupHeartbeatRequest(group, "a", 2, topic_partitions=kept), 1)
    wire.call(ConsumerGroupHeartbeatRequest(group, "b", 3), 1)
    assert described().group_state == "Stable"


def test_groups_of_another_kind_are_not_described(wire: Connection, group: str, two_partitions: str) -> None:
    (found,) = wire.call(ConsumerGroupDescribeRequest([group]), 1).groups
    assert (found.error_code, found.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} not found.")
    committed(wire, group=group, topic=two_partitions)
    (found,) = wire.call(ConsumerGroupDescribeRequest([group]), 1).groups
    assert found.error_message == f"Group {group} is not a consumer group."


def test_a_refused_heartbeat_says_why(wire: Connection, group: str) -> None:
    answer = wire.call(ConsumerGroupHeartbeatRequest(group, "m", 7), 1)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Consumer group {group} not found.",
    )


def test_a_member_without_an_id_is_given_one_in_base64(wire: Connection, group: str, two_partitions: str) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group, "", 0, rebalance_timeout_ms=30_000, subscribed_topic_names=[two_partitions], topic_partitions=[]
    )
    answer = wire.call(request, 0)
    assert answer.error_code == NO_ERROR
    assert (len(answer.member_id), len(parse_uuid(answer.member_id))) == (22, 16)
