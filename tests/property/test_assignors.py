"""Assignors: everything is read by exactly one subscriber, evenly, and moves no more than it must."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.groups.assignors import (
    ASSIGNORS,
    NOTHING,
    Assignment,
    Subscriber,
    assign_range,
    assign_uniform,
)
from sskafka.groups.uneven_assignment import UnevenAssignment
from sskafka.model.computation import finished

TOPICS = [bytes([number]) * 16 for number in range(4)]
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
names = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@st.composite
def subscribers(draw: st.DrawFn, is_alike: bool = False) -> list[Subscriber]:
    same = draw(st.frozensets(st.sampled_from(TOPICS), min_size=1))
    some = st.just(same) if is_alike else st.frozensets(st.sampled_from(TOPICS))
    return [Subscriber(name, name, draw(some), NOTHING) for name in draw(names)]


def check_complete(assignment: Assignment, members: list[Subscriber], partitions: dict[bytes, int]) -> None:
    read = {topic for member in members for topic in member.topics}
    expected = {(topic, index) for topic, count in partitions.items() if topic in read for index in range(count)}
    given_out = [partition for assigned in assignment.values() for partition in assigned]
    assert len(given_out) == len(set(given_out)), "nothing has two readers"
    assert set(given_out) == expected, "nothing is left out"
    for member in members:
        assert {topic for topic, _ in assignment[member.member_id]} <= member.topics


@given(subscribers(), counts, st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_reader_who_wants_it(
    members: list[Subscriber], partitions: dict[bytes, int], assignor: str
) -> None:
    check_complete(finished(ASSIGNORS[assignor](members, partitions)), members, partitions)


@given(subscribers(is_alike=True), counts)
def test_equal_subscribers_get_equal_shares(members: list[Subscriber], partitions: dict[bytes, int]) -> None:
    sizes = [len(assigned) for assigned in assign_uniform(members, partitions).values()]
    assert max(sizes) - min(sizes) <= 1


@given(subscribers(is_alike=True), counts, st.data())
def test_when_one_leaves_the_others_keep_what_they_have(
    members: list[Subscriber], partitions: dict[bytes, int], data: st.DataObject
) -> None:
    before = assign_uniform(members, partitions)
    gone = data.draw(st.sampled_from(members))
    rest = [item._replace(assigned=before[item.member_id]) for item in members if item is not gone]
    after = assign_uniform(rest, partitions)
    for member in rest:
        assert before[member.member_id] <= after[member.member_id]


@given(subscribers(), counts)
def test_an_assignment_that_is_even_stays(members: list[Subscriber], partitions: dict[bytes, int]) -> None:
    before = assign_uniform(members, partitions)
    again = [member._replace(assigned=before[member.member_id]) for member in members]
    moved = [name for name, assigned in assign_uniform(again, partitions).items() if assigned != before[name]]
    sizes = {len(before[member.member_id]) for member in members}
    assert not moved or max(sizes) - min(sizes) > 1, "only uneven subscriptions may cause moves"


@given(names, st.integers(1, 9))
def test_range_shares_topics_of_one_size_alike(members: list[str], count: int) -> None:
    topics = frozenset(TOPICS[:2])
    made = assign_range([Subscriber(name, name, topics, NOTHING) for name in members], dict.fromkeys(TOPICS[:2], count))
    for assigned in made.values():
        of_first, of_second = ({index for topic, index in assigned if topic == wanted} for wanted in TOPICS[:2])
        assert of_first == of_second
        assert sorted(of_first) == list(range(min(of_first, default=0), min(of_first, default=0) + len(of_first)))


@settings(deadline=None)
@given(subscribers(is_alike=True), counts, st.data())
def test_sets_of_equal_members_are_assigned_as_partitions_one_by_one_are(
    members: list[Subscriber], partitions: dict[bytes, int], data: st.DataObject
) -> None:
    """`assign_uniform` has a shorter way for members with the same subscription."""
    for number in range(3):
        ordered = sorted(members, key=lambda member: member.name)
        readers = {topic: list(range(len(ordered))) for topic in ordered[0].topics}
        made = assign_uniform(members, partitions)
        assert made == finished(UnevenAssignment(ordered, readers, partitions).steps())
        members = [member._replace(assigned=made[member.member_id]) for member in members]
        gone = data.draw(st.sampled_from(members))
        if len(members) > 1:
            members = [member for member in members if member is not gone]
        members.append(Subscriber(f"new {number}", f"new {number}", gone.topics, NOTHING))
        partitions = data.draw(counts)
