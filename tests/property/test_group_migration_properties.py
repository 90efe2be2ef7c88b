"""A group that becomes a classic one again: while it is Stable, every subscribed partition has one owner."""

from collections import Counter

from consumer_lab import ConsumerLab, LabConsumer
from group_lab import GROUP
from hypothesis import given, settings
from hypothesis import strategies as st
from old_consumer import OldConsumer

from sskafka.client.group.assignors import decode_assignment
from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.members import LEAVING_EPOCH, STATIC_LEAVING_EPOCH

PARTITIONS = 6
JOIN = -1
moves = st.lists(st.integers(JOIN, 3), max_size=25)
"""A further member joins, or one of the members sends a heartbeat."""


def owners(lab: ConsumerLab) -> Counter[int]:
    """Count the owners of each partition."""
    group = lab.shard.groups[GROUP]
    if isinstance(group, ClassicGroup):
        return Counter(index for member in group.members.values() for _, index in decode_assignment(member.assignment))
    return Counter(index for member in lab.consumers.members.values() for _, index in member.assigned)


def check(lab: ConsumerLab) -> None:
    found = owners(lab)
    assert not found or max(found.values()) == 1
    if lab.shard.groups[GROUP].state_name == "Stable":
        assert set(found) == set(range(PARTITIONS))


@settings(max_examples=200)
@given(moves, st.sampled_from([LEAVING_EPOCH, STATIC_LEAVING_EPOCH]))
def test_a_stable_group_leaves_no_partition_unassigned(moves: list[int], leaving_epoch: int) -> None:
    lab = ConsumerLab({"orders": PARTITIONS})
    new = LabConsumer(lab, "new", instance_id="i")
    new.join()
    members: list[LabConsumer | OldConsumer] = [new]
    for move in moves:
        if move == JOIN:
            members.append(OldConsumer(lab))
            members[-1].join()
        else:
            members[move % len(members)].beat()
        check(lab)
    new.leave(leaving_epoch)
    check(lab)
    if leaving_epoch == STATIC_LEAVING_EPOCH:
        OldConsumer(lab, instance_id="i").join()
        check(lab)
