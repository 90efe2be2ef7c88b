"""Static members: a restart causes no rebalance, and the newer of two members with the same instance id is kept."""

import pytest
from group_lab import SESSION_MS, Asked, GroupLab

from sskafka.groups.classic_group import State
from sskafka.groups.group import OffsetCommitter
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.leave_group import MemberIdentity

GENERATION = 1


@pytest.fixture
def lab() -> GroupLab:
    return GroupLab()


def static_group(lab: GroupLab, *instances: str) -> dict[str, str]:
    """Member ids by instance id."""
    joins = {instance: lab.join(instance_id=instance) for instance in instances}
    lab.pass_time(1)
    while not all(join.is_answered for join in joins.values()):
        joins = {
            instance: lab.join(join.response.member_id, instance_id=instance) if join.is_answered else join
            for instance, join in joins.items()
        }
    members = {instance: str(join.response.member_id) for instance, join in joins.items()}
    lab.assign(list(members.values()))
    return members


def test_a_static_member_joins_without_asking_for_an_id(lab: GroupLab) -> None:
    joined = lab.join(instance_id="i")
    lab.pass_time(1)
    assert joined.code is ErrorCode.NONE
    assert joined.response.member_id.startswith("i-")


def test_a_restarted_member_gets_its_assignment_back_without_a_rebalance(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    follower = next(instance for instance, member in members.items() if member != lab.group.leader_id)
    generation = lab.group.generation
    back = lab.join(instance_id=follower)
    assert back.code is ErrorCode.NONE
    assert back.response.generation_id == generation
    assert not back.response.skip_assignment
    new_id = back.response.member_id
    assert new_id != members[follower]
    assert lab.sync(new_id, generation, instance_id=follower).response.assignment == members[follower].encode()
    assert lab.group.state is State.STABLE


def test_a_restarted_leader_is_told_to_skip_the_assignment(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    leader = next(instance for instance, member in members.items() if member == lab.group.leader_id)
    back = lab.join(instance_id=leader)
    assert back.response.skip_assignment
    assert len(back.response.members) == 2
    assert back.response.leader == back.response.member_id


def test_a_restarted_leader_of_an_older_version_is_not_told_that_it_leads(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    leader = next(instance for instance, member in members.items() if member == lab.group.leader_id)
    back = lab.join(instance_id=leader, version=8)
    assert back.response.leader == members[leader], "the id it had before"
    assert back.response.members == []


def test_the_older_of_two_with_one_id_is_fenced(lab: GroupLab) -> None:
    old = static_group(lab, "a")["a"]
    generation = lab.group.generation
    lab.join(instance_id="a")
    assert lab.heartbeat(old, generation, "a") is ErrorCode.FENCED_INSTANCE_ID
    assert lab.sync(old, generation, instance_id="a").code is ErrorCode.FENCED_INSTANCE_ID
    assert lab.join(old, instance_id="a").code is ErrorCode.FENCED_INSTANCE_ID
    assert lab.commit(7, OffsetCommitter(old, "a", generation)) is ErrorCode.FENCED_INSTANCE_ID
    left = lab.leave(MemberIdentity(old, "a"))
    assert left.response.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_what_the_fenced_one_waits_for_is_answered(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    waiting = lab.join(members["a"], (("range", b"changed"),), instance_id="a")
    assert not waiting.is_answered
    newer = lab.join(instance_id="a")
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    assert not newer.is_answered


def test_coming_back_in_the_middle_of_a_rebalance_begins_it_anew(lab: GroupLab) -> None:
    joins: dict[str, Asked] = {instance: lab.join(instance_id=instance) for instance in ("a", "b")}
    lab.pass_time(1)
    joins = {
        instance: join if not join.is_answered else lab.join(join.response.member_id, instance_id=instance)
        for instance, join in joins.items()
    }
    assert lab.group.state is State.COMPLETING
    lab.join(instance_id="a")
    assert lab.group.state is State.PREPARING


def test_a_changed_choice_of_protocols_rebalances(lab: GroupLab) -> None:
    joined = lab.join(protocols=(("range", b""), ("sticky", b"")), instance_id="a")
    lab.pass_time(1)
    lab.assign([joined.response.member_id])
    back = lab.join(protocols=(("sticky", b""), ("range", b"")), instance_id="a")
    assert back.response.generation_id == 2


def test_a_static_member_that_is_away_stays_until_its_session_ends(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    new = lab.join(instance_id="c")
    lab.join(members["a"], instance_id="a")
    lab.pass_time(SESSION_MS // 2)
    assert members["b"] in lab.group.members
    assert not new.is_answered
    lab.pass_time(SESSION_MS)
    assert members["b"] not in lab.group.members
    assert new.is_answered


def test_an_administrator_removes_by_instance_id(lab: GroupLab) -> None:
    static_group(lab, "a", "b")
    left = lab.leave(MemberIdentity("", "a"), MemberIdentity("", "nobody"))
    assert [member.error_code for member in left.response.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(lab.group.static_members) == ["b"]


def test_static_members_survive_a_new_coordinator(lab: GroupLab) -> None:
    members = static_group(lab, "a", "b")
    generation = lab.group.generation
    lab.fail_over()
    assert lab.group.static_members == members
    assert lab.join(instance_id="a").response.generation_id == generation


def test_the_session_of_the_old_id_does_not_end_the_new_one(lab: GroupLab) -> None:
    static_group(lab, "a")
    lab.pass_time(SESSION_MS // 2)
    new_id = lab.join(instance_id="a").response.member_id
    lab.pass_time(SESSION_MS // 2 + 1)
    assert new_id in lab.group.members
    assert [key for key in lab.timers.pending if "session" in str(key)] == [("session", "g", new_id)]
