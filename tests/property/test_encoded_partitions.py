"""Arrays of topics that are encoded from sets of partitions have the bytes that the codec makes of objects."""

from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.groups.consumer_records import current_record, partitions_of, target_record
from sskafka.groups.encoded_partitions import encoded_assignment
from sskafka.groups.log_records import decode_record, encode_record, encode_value
from sskafka.groups.members import ConsumerMember
from sskafka.groups.partition_set import BLOCK, PartitionSet
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from sskafka.wire.messages.consumer_protocol import TopicPartition as NamedPartitions
from sskafka.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
    TopicPartitions,
)

TOPICS = [bytes([number]) * 16 for number in range(5)]
Partition = tuple[bytes, int]

indexes = st.integers(0, 12) | st.integers(BLOCK - 3, BLOCK + 3) | st.integers(0, (1 << 31) - 1)
items = st.tuples(st.sampled_from(TOPICS), indexes)


@settings(deadline=None)
@given(st.frozensets(items, max_size=40))
def test_targets(some: frozenset[Partition]) -> None:
    target = PartitionSet.of(some)
    record = target_record("g", "m", target)
    decoded = decode_record(encode_record(record))
    assert decoded is not None
    assert partitions_of(decoded.value.topic_partitions) == target
    topics = sorted(decoded.value.topic_partitions, key=lambda topic: topic.topic_id)
    assert topics == [TopicPartition(*item) for item in target.by_topic()], "no topic comes twice"
    assert list(record.value.topic_partitions) == topics
    as_written = ConsumerGroupTargetAssignmentMemberValue(list(decoded.value.topic_partitions))
    assert encode_value(as_written, 0) == encode_record(record).value


@settings(deadline=None)
@given(st.dictionaries(items, st.tuples(st.integers(1, 4), st.booleans()), max_size=40))
def test_assignments_with_epochs(owned: dict[Partition, tuple[int, bool]]) -> None:
    epochs = {
        epoch: PartitionSet.of(item for item, (since, _) in owned.items() if since == epoch)
        for epoch in {since for since, _ in owned.values()}
    }
    member = ConsumerMember(
        "m",
        assigned=PartitionSet.of(item for item, (_, is_pending) in owned.items() if not is_pending),
        pending_revocation=PartitionSet.of(item for item, (_, is_pending) in owned.items() if is_pending),
        assignment_epochs=MappingProxyType(epochs),
    )
    record = current_record("g", member)
    decoded = decode_record(encode_record(record))
    assert decoded is not None
    for array, partitions in (
        (decoded.value.assigned_partitions, member.assigned),
        (decoded.value.partitions_pending_revocation, member.pending_revocation),
    ):
        expected = [
            TopicPartitions(topic, indexes, [owned[topic, index][0] for index in indexes])
            for topic, indexes in partitions.by_topic()
        ]
        assert sorted(array, key=lambda topic: topic.topic_id) == expected
    value = decoded.value
    as_written = ConsumerGroupCurrentMemberAssignmentValue(
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        list(value.assigned_partitions),
        list(value.partitions_pending_revocation),
    )
    assert encode_value(as_written, 0) == encode_record(record).value


@settings(deadline=None)
@given(st.frozensets(items, max_size=40), st.sets(st.sampled_from(TOPICS)))
def test_classic_assignments(some: frozenset[Partition], known: set[bytes]) -> None:
    partitions = PartitionSet.of(some)
    names = {topic: f"topic-{topic[0]}" for topic in known}
    decoded = decode(ConsumerProtocolAssignment, 3, encoded_assignment(partitions, names))
    topics = sorted(decoded.assigned_partitions, key=lambda topic: topic.topic)
    expected = [NamedPartitions(names[topic], indexes) for topic, indexes in partitions.by_topic() if topic in names]
    assert topics == expected
    assert encode(ConsumerProtocolAssignment(decoded.assigned_partitions), 3) == encoded_assignment(partitions, names)
