"""Every version of every API of classic groups on the wire, as old and new clients send them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker_process import BrokerProcess
from group_fixtures import group_broker
from waiting import wait_until
from wire_connection import Connection, values_batch

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.delete_groups import DeleteGroupsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
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
from sskafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

__all__ = ["group_broker"]

COMMIT_VERSION, FETCH_VERSION = 9, 9
SERVED = {
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    42: (0, 2),
    47: (0, 0),
}


@pytest.fixture
def wire(group_broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(group_broker.bootstrap) as connection:
        coordinator_is_ready(connection)
        yield connection


@pytest.fixture
def group(new_topic: Callable[[str], str]) -> str:
    return new_topic("group")


def coordinator_is_ready(wire: Connection) -> None:
    wait_until(lambda: wire.call(FindCoordinatorRequest("any"), 0).error_code == 0, "there is a coordinator")
    wait_until(lambda: wire.call(ListGroupsRequest(), 0).error_code == 0, "groups are loaded")


def join(wire: Connection, group: str, version: int = 9, **fields: Any) -> Any:
    wanted = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol("range", b"topics")],
        **fields,
    }
    return wire.call(JoinGroupRequest(**wanted), version)


def join_fully(wire: Connection, group: str, version: int = 9) -> Any:
    joined = join(wire, group, version)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = join(wire, group, version, member_id=joined.member_id)
    assert joined.error_code == ErrorCode.NONE
    return joined


def sync(wire: Connection, group: str, joined: Any, version: int = 5) -> Any:
    assignment = [SyncGroupRequestAssignment(joined.member_id, b"everything")]
    request = SyncGroupRequest(
        group, joined.generation_id, joined.member_id, None, "consumer", "range", assignments=assignment
    )
    return wire.call(request, version)


def commit(wire: Connection, group: str, topic: str, offset: int, version: int = COMMIT_VERSION, **fields: Any) -> int:
    topic_id = fields.pop("topic_id", bytes(16))
    partition = OffsetCommitRequestPartition(0, offset, 3, fields.pop("metadata", "note"))
    topics = [OffsetCommitRequestTopic(topic, topic_id, [partition])]
    response = wire.call(OffsetCommitRequest(group, topics=topics, **fields), version)
    return int(response.topics[0].partitions[0].error_code)


def fetch(wire: Connection, group: str, topic: str, version: int = FETCH_VERSION, topic_id: bytes = bytes(16)) -> Any:
    if version < 8:
        request = OffsetFetchRequest(group, topics=[OffsetFetchRequestTopic(topic, [0])])
        return wire.call(request, version).topics[0].partitions[0]
    asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, topic_id, [0])])
    (answered,) = wire.call(OffsetFetchRequest(groups=[asked]), version).groups
    assert answered.error_code == ErrorCode.NONE
    return answered.topics[0].partitions[0]


def test_the_versions_that_clients_look_for_are_offered(wire: Connection) -> None:
    offered = {api.api_key: (api.min_version, api.max_version) for api in wire.call(ApiVersionsRequest(), 0).api_keys}
    assert {key: offered.get(key) for key in SERVED} == SERVED


def test_the_group_protocol_is_a_finalized_feature(wire: Connection) -> None:
    features = wire.call(ApiVersionsRequest("raw", "1"), 4).finalized_features
    assert {feature.name: feature.max_version_level for feature in features}["group.version"] == 1


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(wire: Connection, group_broker: BrokerProcess, group: str, version: int) -> None:
    request = (
        FindCoordinatorRequest(group) if version < 4 else FindCoordinatorRequest(coordinator_keys=[group, "other"])
    )
    response = wire.call(request, version)
    coordinators = [response] if version < 4 else response.coordinators
    host, port = group_broker.address
    assert {(one.error_code, one.node_id, one.host, one.port) for one in coordinators} == {(0, 1, host, port)}


def test_coordinators_of_other_kinds_are_refused(wire: Connection) -> None:
    assert wire.call(FindCoordinatorRequest("key", key_type=9), 3).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(10))
def test_a_life_in_a_group(wire: Connection, group: str, version: int) -> None:
    """Each API in the version of that number, or in its newest."""
    sync_version, heartbeat_version, leave_version = min(version, 5), min(version, 4), min(version, 5)
    joined = join_fully(wire, group, version)
    assert joined.leader == joined.member_id
    assert [member.metadata for member in joined.members] == [b"topics"]
    assert sync(wire, group, joined, sync_version).assignment == b"everything"
    heartbeat = HeartbeatRequest(group, joined.generation_id, joined.member_id)
    assert wire.call(heartbeat, heartbeat_version).error_code == ErrorCode.NONE
    assert wire.call(HeartbeatRequest(group, 99, joined.member_id), heartbeat_version).error_code == (
        ErrorCode.ILLEGAL_GENERATION
    )
    leave = LeaveGroupRequest(group, members=[MemberIdentity(joined.member_id)])
    if leave_version < 3:
        leave = LeaveGroupRequest(group, joined.member_id)
    left = wire.call(leave, leave_version)
    assert left.error_code == ErrorCode.NONE
    assert [member.error_code for member in left.members] == [ErrorCode.NONE] * (leave_version >= 3)
    assert wire.call(heartbeat, heartbeat_version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_in_every_version(wire: Connection, group: str, topic: str, version: int) -> None:
    topic_id = wire.create_topic(topic)
    name = topic if version < 10 else ""
    assert commit(wire, group, name, 42, version, topic_id=topic_id) == ErrorCode.NONE
    found = fetch(wire, group, topic)
    assert (found.committed_offset, found.metadata) == (42, "note")
    assert found.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched_in_every_version(wire: Connection, group: str, topic: str, version: int) -> None:
    topic_id = wire.create_topic(topic)
    name = topic if version < 10 else ""
    assert fetch(wire, group, name, version, topic_id).committed_offset == -1
    commit(wire, group, topic, 42)
    found = fetch(wire, group, name, version, topic_id)
    assert (found.committed_offset, found.metadata, found.error_code) == (42, "note", 0)
    assert found.committed_leader_epoch == (3 if version >= 5 else -1)


def test_unknown_topics_cannot_be_committed(wire: Connection, group: str, topic: str) -> None:
    assert commit(wire, group, topic, 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, group, "", 1, 10, topic_id=b"x" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetch(wire, group, "", 10, b"x" * 16).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_partitions_that_do_not_exist_are_told_so_whatever_the_group_says(
    wire: Connection, group: str, topic: str
) -> None:
    wire.create_topic(topic)
    partitions = [OffsetCommitRequestPartition(index, 1) for index in (0, 9)]
    request = OffsetCommitRequest(group, 7, "nobody", topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])
    (answered,) = wire.call(request, 5).topics
    assert [partition.error_code for partition in answered.partitions] == [
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_all_offsets_of_several_groups(wire: Connection, group: str, topic: str) -> None:
    wire.create_topic(topic)
    commit(wire, group, topic, 1)
    commit(wire, f"{group}-b", topic, 2)
    groups = [OffsetFetchRequestGroup(name, topics=None) for name in (group, f"{group}-b", f"{group}-c")]
    answered = wire.call(OffsetFetchRequest(groups=groups, require_stable=True), FETCH_VERSION).groups
    found = {
        one.group_id: [(part.name, item.committed_offset) for part in one.topics for item in part.partitions]
        for one in answered
    }
    assert found == {group: [(topic, 1)], f"{group}-b": [(topic, 2)], f"{group}-c": []}
    everything = wire.call(OffsetFetchRequest(group, topics=None), 7)
    assert [part.name for part in everything.topics] == [topic]


def test_whose_word_does_not_count_is_told_so_for_each_partition(wire: Connection, group: str, topic: str) -> None:
    wire.create_topic(topic)
    joined = join_fully(wire, group)
    sync(wire, group, joined)
    member = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    assert commit(wire, group, topic, 1, **member) == ErrorCode.NONE
    assert commit(wire, group, topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    stale = {**member, "generation_id_or_member_epoch": 7}
    assert commit(wire, group, topic, 1, **stale) == ErrorCode.ILLEGAL_GENERATION
    assert commit(wire, group, topic, 1, metadata="x" * 5_000, **member) == ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(wire: Connection, group: str, version: int) -> None:
    joined = join_fully(wire, group)
    sync(wire, group, joined)
    known, unknown = wire.call(DescribeGroupsRequest([group, f"{group}-unknown"]), version).groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == ("Stable", "consumer", "range")
    (member,) = known.members
    assert (member.member_id, member.client_id) == (joined.member_id, "raw")
    assert (member.member_metadata, member.member_assignment) == (b"topics", b"everything")
    assert member.client_host.startswith("/127.0.0.1")
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


@pytest.mark.parametrize("version", range(6))
def test_list_groups(wire: Connection, group: str, topic: str, version: int) -> None:
    wire.create_topic(topic)
    sync(wire, group, join_fully(wire, group))
    commit(wire, f"{group}-simple", topic, 1)
    listed = {one.group_id: one for one in wire.call(ListGroupsRequest(), version).groups}
    assert listed[group].protocol_type == "consumer"
    assert listed[f"{group}-simple"].protocol_type == ""
    if version >= 4:
        stable = wire.call(ListGroupsRequest(["stable"]), version).groups
        assert group in {one.group_id for one in stable}
        assert {one.group_state for one in stable} == {"Stable"}
    if version >= 5:
        assert wire.call(ListGroupsRequest(types_filter=["share"]), version).groups == []
        assert listed[group].group_type == "classic"


@pytest.mark.parametrize("version", range(3))
def test_delete_groups(wire: Connection, group: str, topic: str, version: int) -> None:
    wire.create_topic(topic)
    commit(wire, group, topic, 1)
    sync(wire, f"{group}-busy", join_fully(wire, f"{group}-busy"))
    results = wire.call(DeleteGroupsRequest([group, f"{group}-busy", "unknown"]), version).results
    assert {result.group_id: result.error_code for result in results} == {
        group: ErrorCode.NONE,
        f"{group}-busy": ErrorCode.NON_EMPTY_GROUP,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert fetch(wire, group, topic).committed_offset == -1


def test_delete_offsets(wire: Connection, group: str, topic: str) -> None:
    wire.create_topic(topic)
    commit(wire, group, topic, 1)
    partition = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
    assert wire.call(OffsetDeleteRequest("unknown", partition), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deleted = wire.call(OffsetDeleteRequest(group, partition), 0)
    assert (deleted.error_code, deleted.topics[0].partitions[0].error_code) == (0, 0)
    assert fetch(wire, group, topic).committed_offset == -1


def test_offsets_go_with_their_topic(wire: Connection, group: str, topic: str) -> None:
    wire.create_topic(topic)
    commit(wire, group, topic, 1)
    wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(topic)]), 6)
    wait_until(lambda: fetch(wire, group, topic).committed_offset == -1, "the offset is forgotten")


def test_answers_wait_for_the_whole_group_and_keep_their_order(
    wire: Connection, group_broker: BrokerProcess, group: str
) -> None:
    """The second member's JoinGroup is parked; a request behind it on the same connection is answered after it."""
    first = join_fully(wire, group)
    sync(wire, group, first)
    with Connection(group_broker.bootstrap) as other:
        member_id = join(other, group).member_id
        request = JoinGroupRequest(
            group, 30_000, 30_000, member_id, None, "consumer", [JoinGroupRequestProtocol("range", b"topics")]
        )
        joining = other.send(request, 9)
        listing = other.send(ListGroupsRequest(), 4)
        heartbeat = HeartbeatRequest(group, first.generation_id, first.member_id)
        wait_until(
            lambda: wire.call(heartbeat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS, "a rebalance has begun"
        )
        again = join(wire, group, member_id=first.member_id)
        answered, joined = other.receive()
        assert answered == joining
        assert joined.generation_id == again.generation_id == first.generation_id + 1
        assert other.receive()[0] == listing


def test_a_new_member_whose_connection_is_lost_leaves_no_ghost(
    wire: Connection, group_broker: BrokerProcess, group: str
) -> None:
    first = join_fully(wire, group)
    sync(wire, group, first)
    with Connection(group_broker.bootstrap) as other:
        member_id = join(other, group).member_id
        protocols = [JoinGroupRequestProtocol("range", b"topics")]
        other.send(JoinGroupRequest(group, 30_000, 30_000, member_id, None, "consumer", protocols), 9)
        wait_until(lambda: members_of(wire, group) == {first.member_id, member_id}, "it waits to join")
    wait_until(lambda: members_of(wire, group) == {first.member_id}, "it is forgotten")


def members_of(wire: Connection, group: str) -> set[str]:
    return {member.member_id for member in wire.call(DescribeGroupsRequest([group]), 5).groups[0].members}


def test_clients_do_not_write_to_internal_topics(wire: Connection) -> None:
    refused = wire.produce("__consumer_offsets", values_batch(b"forged"))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
