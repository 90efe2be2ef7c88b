"""Descriptions of consumer groups: complete, and no step of them is long."""

import gc
from time import thread_time

import pytest

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.members import ClassicSide, Client, ConsumerMember
from sskafka.groups.partition_set import PartitionSet
from sskafka.model.computation import Computation, finished
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import response_frame_in_slices
from sskafka.servers.kafka.handlers.consumer_group_descriptions import Describer, GroupSnapshot, snapshot_of
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import decode, encode_in_slices
from sskafka.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

VERSION = 1
STEP_MS_MAX = 12
TOPICS = {name: Topic(name.encode().ljust(16, b"-"), count) for name, count in {"a": 3, "b": 1, "c": 2000}.items()}


def partitions(**indexes: list[int]) -> PartitionSet:
    return PartitionSet.of_topics((TOPICS[name].topic_id, numbers) for name, numbers in indexes.items())


def described(group: ConsumerGroup, topics: dict[str, Topic] | None = None) -> DescribedGroup:
    snapshot = snapshot_of("g", group, "uniform")
    assert isinstance(snapshot, GroupSnapshot)
    made = finished(Describer(TOPICS if topics is None else topics, VERSION).describe(snapshot))
    encoded = b"".join(finished(encode_in_slices(ConsumerGroupDescribeResponse(groups=[made]), VERSION)))
    return decode(ConsumerGroupDescribeResponse, VERSION, encoded).groups[0]


def assignment(**indexes: list[int]) -> Assignment:
    return Assignment([TopicPartitions(TOPICS[name].topic_id, name, numbers) for name, numbers in indexes.items()])


@pytest.fixture
def group() -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.epoch, group.target_epoch = 9, 8
    group.replay_member(
        ConsumerMember(
            "m1",
            "i1",
            "rack",
            Client("client", "/10.0.0.1"),
            frozenset(["b", "a"]),
            "x.*",
            epoch=8,
            assigned=partitions(a=[0, 2], c=[1, 1500]),
            pending_revocation=partitions(b=[0]),
        )
    )
    group.replay_member(ConsumerMember("m2", classic=ClassicSide(1, (("range", b""),)), server_assignor="range"))
    group.target["m1"] = partitions(a=[1])
    return group


def test_a_group_with_members_of_both_protocols(group: ConsumerGroup) -> None:
    made = described(group)
    for member in made.members:
        member.assignment.topic_partitions.sort(key=lambda topic: topic.topic_name)
    assert made == DescribedGroup(
        group_id="g",
        group_state="Assigning",
        group_epoch=9,
        assignment_epoch=8,
        assignor_name="range",
        members=[
            Member(
                "m1",
                "i1",
                "rack",
                8,
                "client",
                "/10.0.0.1",
                ["a", "b"],
                "x.*",
                assignment(a=[0, 2], b=[0], c=[1, 1500]),
                assignment(a=[1]),
                member_type=1,
            ),
            Member("m2", member_epoch=0, subscribed_topic_regex="", member_type=0),
        ],
    )


def test_topics_that_are_gone_are_left_out(group: ConsumerGroup) -> None:
    made = described(group, {"b": TOPICS["b"]})
    assert [topic.topic_name for topic in made.members[0].assignment.topic_partitions] == ["b"]
    assert made.members[0].target_assignment == Assignment()


def test_the_topics_that_a_description_names(group: ConsumerGroup) -> None:
    snapshot = snapshot_of("g", group, "uniform")
    assert isinstance(snapshot, GroupSnapshot)
    assert finished(Describer(TOPICS, VERSION).topics_of(snapshot)) == {"a", "b", "c"}


@pytest.mark.parametrize("other", [None, ClassicGroup("g")])
def test_other_groups_are_not_found(other: ClassicGroup | None) -> None:
    made = snapshot_of("g", other, "uniform")
    assert isinstance(made, DescribedGroup)
    assert made.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def longest_step_ms(steps: Computation[object]) -> tuple[float, object]:
    longest = 0.0
    while True:
        began = thread_time()
        try:
            next(steps)
        except StopIteration as stop:
            return max(longest, 1000 * (thread_time() - began)), stop.value
        longest = max(longest, 1000 * (thread_time() - began))


@pytest.mark.parametrize("member_count", [1, 300])
def test_no_step_is_long(member_count: int) -> None:
    """10,000 topics and 100 members took 190 ms in one turn, because of the topics for each member."""
    topics = {f"topic-{number:05}": Topic(number.to_bytes(16), 1) for number in range(10_000)}
    group, names = ConsumerGroup("g"), sorted(topics)
    for number in range(member_count):
        share = PartitionSet.of((topics[name].topic_id, 0) for name in names[number::member_count])
        group.replay_member(ConsumerMember(f"m{number}", topic_names=frozenset(names[:10]), assigned=share))
        group.target[f"m{number}"] = share
    snapshot = snapshot_of("g", group, "uniform")
    assert isinstance(snapshot, GroupSnapshot)
    gc.collect()
    gc.disable()
    try:
        longest = []
        for _ in range(4):
            describing, made = longest_step_ms(Describer(topics, VERSION).describe(snapshot))
            assert isinstance(made, DescribedGroup)
            response = ConsumerGroupDescribeResponse(groups=[made])
            encoding, _ = longest_step_ms(
                response_frame_in_slices(ApiKey.CONSUMER_GROUP_DESCRIBE, VERSION, 1, response)
            )
            longest.append(max(describing, encoding))
    finally:
        gc.enable()
    assert min(longest) < STEP_MS_MAX
