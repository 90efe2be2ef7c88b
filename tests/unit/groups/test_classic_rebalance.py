"""Rebalances of classic groups, from JoinGroup to the assignment, and their failures."""

import pytest
from group_lab import GROUP, REBALANCE_MS, SESSION_MS, GroupLab

from sskafka.groups.classic_group import State
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.leave_group import MemberIdentity


@pytest.fixture
def lab() -> GroupLab:
    return GroupLab()


def test_a_new_member_is_told_its_id_first(lab: GroupLab) -> None:
    first = lab.join(client_id="reader")
    assert first.code is ErrorCode.MEMBER_ID_REQUIRED
    assert first.response.member_id.startswith("reader-")
    assert not lab.group.members
    joined = lab.join(first.response.member_id)
    lab.pass_time(1)
    assert joined.code is ErrorCode.NONE
    assert joined.response.leader == first.response.member_id
    assert [member.member_id for member in joined.response.members] == [first.response.member_id]
    assert lab.group.state is State.COMPLETING


def test_old_clients_join_at_once(lab: GroupLab) -> None:
    joined = lab.join(version=3)
    lab.pass_time(1)
    assert joined.code is ErrorCode.NONE


def test_an_id_that_nobody_comes_back_with_is_forgotten(lab: GroupLab) -> None:
    lab.join()
    assert len(lab.group.pending_members) == 1
    lab.pass_time(SESSION_MS)
    assert not lab.group.pending_members
    assert not lab.timers.pending


def test_a_pending_id_holds_up_a_rebalance_no_longer_than_its_session(lab: GroupLab) -> None:
    leader = lab.stable_group(1)[0]
    lab.join()
    rejoined = lab.join(leader, (("range", b"changed"),))
    assert not rejoined.is_answered, "somebody else is expected"
    lab.pass_time(SESSION_MS)
    assert rejoined.code is ErrorCode.NONE


def test_the_first_rebalance_waits_for_further_members_as_long_as_they_keep_coming() -> None:
    lab = GroupLab(initial_rebalance_delay_ms=3_000)
    joins = []
    for _ in range(4):
        joins.append(lab.join_fully())
        lab.pass_time(2_000)
    assert not any(join.is_answered for join in joins)
    lab.pass_time(4_000)
    assert {join.response.generation_id for join in joins} == {1}
    assert len(lab.group.members) == 4


def test_the_first_rebalance_ends_at_the_rebalance_timeout_even_if_members_keep_coming() -> None:
    lab = GroupLab(initial_rebalance_delay_ms=3_000)
    first = lab.join_fully(rebalance_ms=10_000)
    for _ in range(8):
        lab.pass_time(2_000)
        lab.join_fully(rebalance_ms=10_000)
    assert first.code is ErrorCode.NONE


def test_everyone_gets_what_the_leader_assigned(lab: GroupLab) -> None:
    members = lab.stable_group(3)
    assert lab.group.state is State.STABLE
    assert {member.member_id: member.assignment for member in lab.group.members.values()} == {
        member: member.encode() for member in members
    }
    assert [lab.heartbeat(member, lab.group.generation) for member in members] == [ErrorCode.NONE] * 3


def test_whom_the_leader_forgets_gets_nothing(lab: GroupLab) -> None:
    joins = [lab.join_fully(), lab.join_fully()]
    lab.pass_time(1)
    leader = lab.group.leader_id
    assert leader is not None
    (other,) = {join.response.member_id for join in joins} - {leader}
    waiting = lab.sync(other, 1)
    assert not waiting.is_answered
    assert lab.sync(leader, 1, {leader: b"all"}).response.assignment == b"all"
    assert waiting.response.assignment == b""


def test_a_joining_member_starts_a_rebalance_of_which_the_others_hear_by_heartbeat(lab: GroupLab) -> None:
    members = lab.stable_group(2)
    new = lab.join_fully()
    assert not new.is_answered
    assert [lab.heartbeat(member, 1) for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    joins = [lab.join(member) for member in members]
    assert {join.response.generation_id for join in [*joins, new]} == {2}


def test_who_does_not_join_again_in_time_is_dropped(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    new = lab.join_fully()
    joined = lab.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        lab.pass_time(5_000)
        lab.heartbeat(other, 1)  # alive, but not joining
    assert joined.code is new.code is ErrorCode.NONE
    assert other not in lab.group.members
    assert lab.heartbeat(other, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_dropped_after_its_session_timeout(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    lab.pass_time(SESSION_MS - 1)
    assert lab.heartbeat(leader, 1) is ErrorCode.NONE
    lab.pass_time(2)
    assert other not in lab.group.members
    assert lab.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert lab.join(leader).response.generation_id == 2


def test_waiting_in_a_rebalance_counts_as_being_alive(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    joined = lab.join(leader, (("range", b"changed"),))
    for _ in range(5):
        lab.pass_time(SESSION_MS // 2)
        lab.heartbeat(other, 1)
    assert leader in lab.group.members
    assert not joined.is_answered
    lab.join(other)
    assert joined.code is ErrorCode.NONE


def test_a_lost_answer_to_sync_does_not_wedge_the_group(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    again = lab.sync(other, 1)
    assert again.response.assignment == other.encode()
    assert lab.sync(leader, 1, {}).response.assignment == leader.encode(), "a repeated assignment changes nothing"


def test_a_lost_answer_to_join_is_repeated(lab: GroupLab) -> None:
    joins = [lab.join_fully(), lab.join_fully()]
    lab.pass_time(1)
    for join in joins:
        again = lab.join(join.response.member_id)
        assert again.response == join.response
    assert lab.group.state is State.COMPLETING


def test_a_repeated_join_takes_the_place_of_the_first(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    first = lab.join(leader, (("range", b"changed"),))
    second = lab.join(leader, (("range", b"changed"),))
    assert first.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.is_answered
    lab.join(other)
    assert second.code is ErrorCode.NONE


def test_a_new_member_that_goes_away_while_it_waits_leaves_no_ghost(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    new = lab.join_fully()
    rejoined = lab.join(leader)
    lab.ask(lambda _: lab.shard.classic.abandon_join(GROUP, new, lab.time.now_ms()))
    assert set(lab.group.members) == {leader, other}
    assert new.code is ErrorCode.UNKNOWN_MEMBER_ID
    lab.join(other)
    assert rejoined.code is ErrorCode.NONE


def test_a_known_member_whose_connection_is_lost_may_come_back_over_another(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    waiting = lab.join(leader)
    lab.ask(lambda _: lab.shard.classic.abandon_join(GROUP, waiting, lab.time.now_ms()))
    assert leader in lab.group.members
    again = lab.join(leader)
    lab.join(other)
    assert again.code is ErrorCode.NONE


def test_a_leader_that_never_assigns_is_dropped_and_the_rest_go_on(lab: GroupLab) -> None:
    joins = [lab.join_fully(), lab.join_fully()]
    lab.pass_time(1)
    leader = lab.group.leader_id
    assert leader is not None
    (other,) = {join.response.member_id for join in joins} - {leader}
    waiting = lab.sync(other, 1)
    for _ in range(REBALANCE_MS // 5_000 + 1):
        lab.heartbeat(leader, lab.group.generation)
        lab.pass_time(5_000)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader not in lab.group.members


def test_a_changed_subscription_of_a_follower_rebalances_an_unchanged_one_does_not(lab: GroupLab) -> None:
    _, other = lab.stable_group(2)
    assert lab.join(other).response.generation_id == 1
    assert lab.group.state is State.STABLE
    assert not lab.join(other, (("range", b"more"),)).is_answered
    assert lab.group.state is State.PREPARING


def test_the_leader_may_ask_for_a_rebalance_by_joining(lab: GroupLab) -> None:
    leader, _ = lab.stable_group(2)
    assert not lab.join(leader).is_answered
    assert lab.group.state is State.PREPARING


def test_syncs_that_wait_when_a_rebalance_begins_are_answered(lab: GroupLab) -> None:
    joins = [lab.join_fully(), lab.join_fully()]
    lab.pass_time(1)
    follower = next(j.response.member_id for j in joins if j.response.member_id != lab.group.leader_id)
    waiting = lab.sync(follower, 1)
    lab.join_fully()
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_answers_what_the_member_waits_for(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    waiting = lab.join(leader, (("range", b"changed"),))
    left = lab.leave(MemberIdentity(leader))
    assert left.response.members[0].error_code == ErrorCode.NONE
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(lab.group.members) == [other]


def test_several_leave_at_once_and_each_has_its_own_outcome(lab: GroupLab) -> None:
    leader, other = lab.stable_group(2)
    left = lab.leave(MemberIdentity(leader), MemberIdentity("nobody"), MemberIdentity(other))
    codes = [member.error_code for member in left.response.members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert lab.group.state is State.EMPTY


def test_the_last_member_leaves_an_empty_group_without_timers(lab: GroupLab) -> None:
    (member,) = lab.stable_group(1)
    generation = lab.group.generation
    lab.leave(MemberIdentity(member))
    assert lab.group.state is State.EMPTY
    assert lab.group.generation == generation + 1
    assert not lab.timers.pending
    assert lab.group.leader_id is None


def test_a_pending_member_may_leave(lab: GroupLab) -> None:
    pending = lab.join().response.member_id
    assert lab.leave(MemberIdentity(pending)).response.members[0].error_code == ErrorCode.NONE
    assert not lab.group.pending_members
    assert not lab.timers.pending


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_session_timeouts_are_bounded(lab: GroupLab, session_ms: int) -> None:
    assert lab.join(session_ms=session_ms).code is ErrorCode.INVALID_SESSION_TIMEOUT


def test_unknown_members_and_generations_are_refused(lab: GroupLab) -> None:
    assert lab.heartbeat("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.join("nobody").code is ErrorCode.UNKNOWN_MEMBER_ID
    leader, _ = lab.stable_group(2)
    assert lab.heartbeat(leader, 0) is ErrorCode.ILLEGAL_GENERATION
    assert lab.sync(leader, 2).code is ErrorCode.ILLEGAL_GENERATION
    assert lab.heartbeat("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.join("nobody").code is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_need_a_protocol_in_common(lab: GroupLab) -> None:
    lab.join_fully((("range", b""), ("sticky", b"")))
    assert lab.join(protocols=(("other", b""),)).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert lab.join(protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert lab.join(protocols=()).code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_most_members_want_wins(lab: GroupLab) -> None:
    wishes = [("a", "b"), ("b", "a"), ("b", "a", "c")]
    joins = [lab.join_fully([(name, name.encode()) for name in wish]) for wish in wishes]
    lab.pass_time(1)
    assert {join.response.protocol_name for join in joins} == {"b"}
    leader = next(join for join in joins if join.response.members)
    assert [member.metadata for member in leader.response.members] == [b"b"] * 3


def test_no_more_members_than_allowed() -> None:
    lab = GroupLab(group_size_max=2)
    members = lab.stable_group(2)
    assert lab.join().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert lab.heartbeat(members[0], 1) is ErrorCode.NONE


def test_a_group_that_is_too_large_after_a_restart_shrinks_without_waiting(lab: GroupLab) -> None:
    members = lab.stable_group(3)
    lab.settings = lab.settings._replace(group_size_max=2)
    lab.fail_over()
    joins = [lab.join(member) for member in members]
    assert joins[2].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [join.response.generation_id for join in joins[:2]] == [2, 2]
    assert set(lab.group.members) == set(members[:2])


def test_an_assignment_that_is_too_large_to_be_kept_is_refused() -> None:
    lab = GroupLab()
    lab.batch_bytes_max = 10_000
    joined = lab.join_fully()
    lab.pass_time(1)
    member = joined.response.member_id
    assert lab.sync(member, 1, {member: b"x" * 20_000}).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert lab.group.state is State.PREPARING
    assert not lab.log
    assert lab.join(member).response.generation_id == 2
    assert lab.sync(member, 2, {member: b"less"}).response.assignment == b"less"


def test_a_stable_group_survives_its_coordinator_without_a_rebalance(lab: GroupLab) -> None:
    members = lab.stable_group(3)
    lab.fail_over()
    assert lab.group.state is State.STABLE
    assert [lab.heartbeat(member, 1) for member in members] == [ErrorCode.NONE] * 3
    assert lab.sync(members[1], 1).response.assignment == members[1].encode()


def test_members_that_do_not_find_the_new_coordinator_time_out(lab: GroupLab) -> None:
    lab.stable_group(2)
    lab.fail_over()
    lab.pass_time(SESSION_MS)
    assert lab.group.state is State.EMPTY


def test_who_waits_when_the_coordinator_goes_is_sent_away(lab: GroupLab) -> None:
    leader, _ = lab.stable_group(2)
    joined = lab.join(leader)
    lab.fail_over()
    assert joined.code is ErrorCode.NOT_COORDINATOR
    assert lab.group.generation == 1


def test_a_generation_is_never_used_again_after_the_group_was_empty(lab: GroupLab) -> None:
    (member,) = lab.stable_group(1)
    lab.leave(MemberIdentity(member))
    lab.fail_over()
    joined = lab.join_fully()
    lab.pass_time(1)
    assert joined.response.generation_id == 3


def test_the_shard_forgets_nothing_but_its_timers_when_it_stops(lab: GroupLab) -> None:
    lab.stable_group(2)
    assert lab.shard.stop() == []
    assert GROUP in lab.shard.groups


def test_a_protocol_that_is_named_twice_counts_once(lab: GroupLab) -> None:
    joined = lab.join(version=3, protocols=(("range", b"first"), ("range", b"second")))
    lab.pass_time(1)
    assert joined.code is ErrorCode.NONE
    assert joined.response.protocol_name == "range"


def test_a_client_with_a_very_long_name_can_be_written_down(lab: GroupLab) -> None:
    joined = lab.join_fully(client_id="c" * 32_767)
    lab.pass_time(1)
    member = joined.response.member_id
    assert lab.sync(member, 1, {member: b"all"}).code is ErrorCode.NONE
    lab.fail_over()
    assert lab.group.members[member].client.client_id == "c" * 32_767
