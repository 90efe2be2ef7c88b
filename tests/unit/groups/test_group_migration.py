"""A group migrates between the classic and the consumer protocol, one member at a time, while members keep working."""

from typing import NoReturn

import pytest
from consumer_lab import ConsumerLab, LabConsumer, settle
from group_lab import GROUP
from old_consumer import VERSION, OldConsumer, encoded_assignment

from sskafka.groups.assignors import NOTHING
from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.members import STATIC_LEAVING_EPOCH
from sskafka.model.coordination import StateRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from sskafka.wire.messages.consumer_protocol import TopicPartition as NamedPartitions
from sskafka.wire.messages.leave_group import MemberIdentity
from sskafka.wire.messages.sync_group import SyncGroupRequest


def old_group(lab: ConsumerLab, *members: OldConsumer) -> None:
    """A stable classic group in which each member reads as many of the four partitions."""
    joins = [member.join() for member in members]
    lab.pass_time(lab.settings.initial_rebalance_delay_ms + 1)
    while not all(asked.is_answered for asked in joins):
        joins = [member.join() if asked.is_answered else asked for member, asked in zip(members, joins, strict=True)]
    for member, asked in zip(members, joins, strict=True):
        member.joined(asked)
    share = 4 // len(members)
    shares = {
        member.member_id: encoded_assignment(list(range(place * share, (place + 1) * share)))
        for place, member in enumerate(members)
    }
    leader = lab.group.leader_id
    syncs = [(member, member.sync(shares if member.member_id == leader else None)) for member in members]
    for member, asked in syncs:
        member.synced(asked)
    assert lab.group.state is State.STABLE


def mixed_settle(*members: OldConsumer | LabConsumer, rounds: int = 8) -> None:
    for _ in range(rounds):
        for member in members:
            member.beat()


@pytest.fixture
def lab() -> ConsumerLab:
    return ConsumerLab()


@pytest.fixture
def pair(lab: ConsumerLab) -> tuple[OldConsumer, OldConsumer]:
    pair = OldConsumer(lab), OldConsumer(lab)
    old_group(lab, *pair)
    return pair


# -- from the classic protocol to the newer one


def test_an_upgraded_group_keeps_members_epochs_and_partitions(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    first, second = pair
    generation = lab.group.generation
    assert lab.commit(7, OffsetCommitter(first.member_id, generation=generation)) is ErrorCode.NONE
    new = LabConsumer(lab, "new")
    assert new.join().code is ErrorCode.NONE
    group = lab.consumers
    assert set(group.members) == {first.member_id, second.member_id, "new"}
    assert group.epoch == generation + 1
    for member in pair:
        known = group.members[member.member_id]
        assert (known.epoch, known.assigned) == (generation, member.owned)
        assert known.classic is not None
    assert new.numbers == [], "all partitions are still with the others"
    assert lab.committed() == 7


def test_classic_members_of_an_upgraded_group_are_told_to_join_again(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    assert [member.heartbeat() for member in pair] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    mixed_settle(*pair, new)
    numbers = sorted(number for member in (*pair, new) for number in member.numbers)
    assert numbers == [0, 1, 2, 3], "each partition has one reader"
    assert sorted(len(member.numbers) for member in (*pair, new)) == [1, 1, 2]
    assert [member.heartbeat() for member in pair] == [ErrorCode.NONE] * 2
    assert lab.consumers.state_name == "Stable"


def test_no_partition_has_two_readers_on_the_way(lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]) -> None:
    members = (*pair, LabConsumer(lab, "new"))
    members[2].join()
    for _ in range(10):
        for member in members:
            member.beat()
            owned = [number for one in members for number in one.numbers]
            assert len(owned) == len(set(owned))


def test_requests_that_wait_in_the_classic_group_are_answered(lab: ConsumerLab) -> None:
    """One member has joined again and waits for the other when the newer protocol comes in between."""
    first, second = OldConsumer(lab), OldConsumer(lab)
    old_group(lab, first, second)
    leader = first if lab.group.is_leader(first.member_id) else second
    waiting = leader.ask_to_join()
    assert not waiting.is_answered
    assert LabConsumer(lab, "new").join().code is ErrorCode.NONE
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert not [key for key in lab.timers.pending if key[0] in {"join", "sync", "session"}], "classic timers are over"


def test_a_refused_member_leaves_the_classic_group_as_it_was() -> None:
    lab = ConsumerLab(consumer_group_size_max=2)
    first, second = OldConsumer(lab), OldConsumer(lab)
    old_group(lab, first, second)
    leader = first if lab.group.is_leader(first.member_id) else second
    waiting = leader.ask_to_join()
    records = len(lab.log)
    assert LabConsumer(lab, "new").join().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(lab.log) == records
    assert lab.group.state is State.PREPARING
    other = second if leader is first else first
    other.join()
    assert waiting.code is ErrorCode.NONE, "it must not wait for ever"


@pytest.mark.parametrize("step", ["_require_memory", "changed", "maybe_assign", "reconcile"])
def test_requests_go_on_waiting_in_a_classic_group_whose_upgrade_is_refused(
    lab: ConsumerLab, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """For example, there is no memory for the new member, or its pattern takes too much time."""
    pair = OldConsumer(lab), OldConsumer(lab)
    old_group(lab, *pair)
    leader, other = sorted(pair, key=lambda member: not lab.group.is_leader(member.member_id))
    waiting = leader.ask_to_join()
    timers = set(lab.timers.pending)

    def refuse(*_: object) -> NoReturn:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION)

    with monkeypatch.context() as patched:
        patched.setattr(lab.shard.consumer, step, refuse)
        assert LabConsumer(lab, "new").join().code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not waiting.is_answered
    assert set(lab.timers.pending) == timers
    other.join()
    assert waiting.code is ErrorCode.NONE
    assert len(lab.group.members) == 2


def test_a_static_member_changes_its_protocol_without_leaving(lab: ConsumerLab) -> None:
    """Static members do not leave when they are restarted: the newer consumer takes the place of the older one."""
    old = OldConsumer(lab, instance_id="i")
    old_group(lab, old)
    new = LabConsumer(lab, "new", instance_id="i")
    assert new.join().code is ErrorCode.NONE
    settle(new)
    assert new.numbers == [0, 1, 2, 3]
    assert set(lab.consumers.members) == {"new"}
    assert old.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_a_group_of_something_else_is_not_upgraded(lab: ConsumerLab) -> None:
    joined = lab.join_fully(protocol_type="connect")
    lab.pass_time(1)
    assert joined.code is ErrorCode.NONE
    assert LabConsumer(lab, "new").join().code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(lab.shard.groups[GROUP], ClassicGroup)


# -- and back


def test_the_last_newer_member_leaves_a_classic_group_behind(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    mixed_settle(*pair, new)
    epoch = lab.consumers.epoch
    new.leave()
    assert set(lab.group.members) == {member.member_id for member in pair}
    assert lab.group.generation == epoch
    assert lab.group.state is State.PREPARING
    assert [member.heartbeat() for member in pair] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    old_group(lab, *pair)
    assert lab.group.generation == epoch + 1
    assert sorted(number for member in pair for number in member.numbers) == [0, 1, 2, 3]


def test_a_newer_member_that_dies_leaves_a_classic_group_behind(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    mixed_settle(*pair, new)
    for _ in range(10):
        lab.pass_time(lab.settings.consumer_timings.session_timeout_ms // 9)
        for member in pair:
            member.heartbeat()
    assert set(lab.group.members) == {member.member_id for member in pair}


def test_classic_members_must_have_a_protocol_in_common(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    """Otherwise they could not go on once the newer ones are gone."""
    new = LabConsumer(lab, "new")
    new.join()
    stranger = OldConsumer(lab, protocols=("roundrobin",))
    assert stranger.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    friend = OldConsumer(lab, protocols=("roundrobin", "cooperative"))
    assert friend.join().code is ErrorCode.NONE
    new.leave()
    assert set(lab.group.members) == {member.member_id for member in (*pair, friend)}
    assert lab.group.protocol_name == "cooperative"


def test_a_classic_static_member_in_a_consumer_group_is_fenced_by_its_twin(lab: ConsumerLab) -> None:
    LabConsumer(lab, "new").join()
    first, twin = OldConsumer(lab, instance_id="i"), OldConsumer(lab, instance_id="i")
    assert first.join().code is ErrorCode.NONE
    assert twin.join().code is ErrorCode.NONE
    assert first.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert twin.heartbeat() in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
    assert len(lab.consumers.members) == 2


def test_session_timeouts_of_classic_members_are_checked_in_either_group(lab: ConsumerLab) -> None:
    LabConsumer(lab, "new").join()
    assert OldConsumer(lab).ask_to_join(session_ms=1).code is ErrorCode.INVALID_SESSION_TIMEOUT


# -- what the policy allows


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("bidirectional", ErrorCode.NONE),
        ("upgrade", ErrorCode.NONE),
        ("downgrade", ErrorCode.GROUP_ID_NOT_FOUND),
        ("disabled", ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_the_policy_says_who_may_upgrade(policy: str, code: ErrorCode) -> None:
    lab = ConsumerLab(migration_policy=policy)
    old = OldConsumer(lab)
    old_group(lab, old)
    assert LabConsumer(lab, "new").join().code is code
    is_upgraded = isinstance(lab.shard.groups[GROUP], ConsumerGroup)
    assert is_upgraded == (code is ErrorCode.NONE)


@pytest.mark.parametrize(
    ("policy", "is_downgraded"), [("bidirectional", True), ("downgrade", True), ("upgrade", False)]
)
def test_the_policy_says_who_may_downgrade(policy: str, is_downgraded: bool) -> None:
    lab = ConsumerLab(migration_policy=policy)
    new, old = LabConsumer(lab, "new"), OldConsumer(lab)
    new.join()
    assert old.join().code is ErrorCode.NONE
    old.sync()
    new.leave()
    assert isinstance(lab.shard.groups[GROUP], ClassicGroup) == is_downgraded
    if not is_downgraded:
        mixed_settle(old)
        assert old.numbers == [0, 1, 2, 3], "it goes on as a classic member of a consumer group"


def test_classic_members_cannot_join_while_no_migration_is_allowed() -> None:
    lab = ConsumerLab(migration_policy="disabled")
    LabConsumer(lab, "new").join()
    refused = OldConsumer(lab).join()
    assert refused.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused.message == (
        f"Cannot join the consumer group {GROUP} with the classic protocol because the group migration is disabled."
    )


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "downgrade", "disabled"])
def test_groups_without_members_become_what_their_first_member_is(policy: str) -> None:
    lab = ConsumerLab(migration_policy=policy)
    old = OldConsumer(lab)
    old_group(lab, old)
    assert lab.commit(7, OffsetCommitter(old.member_id, generation=old.generation)) is ErrorCode.NONE
    old.leave()
    new = LabConsumer(lab, "new")
    assert new.join().code is ErrorCode.NONE
    assert new.numbers == [0, 1, 2, 3]
    assert lab.committed() == 7
    new.leave()
    another = OldConsumer(lab)
    old_group(lab, another)
    assert another.numbers == [0, 1, 2, 3]
    assert lab.committed() == 7
    lab.fail_over()
    assert set(lab.group.members) == {another.member_id}


def test_who_is_refused_does_not_change_an_empty_group(lab: ConsumerLab) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    new.leave()
    records = len(lab.log)
    assert lab.join("somebody", instance_id=None).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.join(session_ms=1).code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert len(lab.log) == records
    assert lab.consumers.epoch > 0, "still the group that the log says"


# -- another coordinator in the middle


def test_an_upgraded_group_outlives_its_coordinator(lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    pair[0].beat()
    before = dict(lab.consumers.members)
    lab.fail_over()
    assert lab.consumers.members == before
    mixed_settle(*pair, new)
    assert sorted(number for member in (*pair, new) for number in member.numbers) == [0, 1, 2, 3]


def test_a_downgraded_group_outlives_its_coordinator(lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    mixed_settle(*pair, new)
    new.leave()
    generation = lab.group.generation
    lab.fail_over()
    assert set(lab.group.members) == {member.member_id for member in pair}
    assert lab.group.generation == generation
    old_group(lab, *pair)
    assert sorted(number for member in pair for number in member.numbers) == [0, 1, 2, 3]


def test_there_and_back_and_there_again(lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]) -> None:
    """Every record is kept in the order of its newest value, as compaction leaves them."""
    for name in ("one", "two"):
        new = LabConsumer(lab, name)
        new.join()
        mixed_settle(*pair, new)
        new.leave()
        old_group(lab, *pair)
    last = LabConsumer(lab, "three")
    last.join()
    mixed_settle(*pair, last)
    members = dict(lab.consumers.members)
    lab.log = [
        entry
        for place, entry in enumerate(lab.log)
        if isinstance(entry[0], StateRecord) and entry[0].key not in {later[0].key for later in lab.log[place + 1 :]}  # type: ignore[union-attr]
    ]
    lab.fail_over()
    assert lab.consumers.members == members
    assert {member.member_id: lab.consumers.members[member.member_id].assigned for member in pair} == {
        member.member_id: member.owned for member in pair
    }
    assert last.owned != NOTHING


# -- what is refused, and what members of both protocols may do


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        (
            VERSION.pack(1) + encode(ConsumerProtocolAssignment([NamedPartitions("orders", [0])], b"custom"), 1),
            (
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade."
            ),
        ),
        (b"\x00", "the embedded consumer protocol is malformed."),
    ],
)
def test_assignments_that_the_coordinator_could_not_go_on_with_keep_a_group_classic(
    lab: ConsumerLab, assignment: bytes, problem: str
) -> None:
    old = OldConsumer(lab)
    old.join()
    lab.pass_time(1)
    old.joined(old.ask_to_join())
    lab.sync(old.member_id, old.generation, {old.member_id: assignment})
    written = len(lab.log)
    refused = LabConsumer(lab, "new").join()
    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.message == f"Cannot upgrade classic group {GROUP} to consumer group because {problem}"
    assert lab.group.state is State.STABLE
    assert len(lab.log) == written
    assert old.heartbeat() is ErrorCode.NONE


def test_members_of_either_protocol_are_removed_with_leave_group(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice"), LabConsumer(lab, "bob", instance_id="i")
    carol = LabConsumer(lab, "carol")
    for member in (alice, bob, carol):
        member.join()
    asked = lab.leave(
        MemberIdentity("alice"), MemberIdentity("", "i"), MemberIdentity("nobody"), MemberIdentity("x", "i")
    )
    codes = [result.error_code for result in asked.response.members]
    assert codes == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]
    assert list(lab.consumers.members) == ["carol"]
    assert alice.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    settle(carol)
    assert carol.numbers == [0, 1, 2, 3]


def test_a_classic_member_that_does_not_join_again_in_time_is_put_out(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    new = LabConsumer(lab, "new")
    new.join()
    slow, quick = pair
    for _ in range(8):
        assert slow.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        quick.beat()
        new.beat()
        lab.pass_time(4_000)
        if slow.member_id not in lab.consumers.members:
            break
    assert slow.member_id not in lab.consumers.members, "heartbeats alone do not put it off"
    assert quick.member_id in lab.consumers.members


def test_a_classic_member_is_expected_to_join_again_in_every_group_that_it_was_upgraded_to() -> None:
    """It was told to in the consumer group before, in the same epoch."""
    lab = ConsumerLab({"orders": 6})
    new, old, slow = LabConsumer(lab, "new"), OldConsumer(lab), OldConsumer(lab)
    new.join()
    old.join()
    mixed_settle(old, new)
    slow.join()
    mixed_settle(old, new, rounds=2)
    assert slow.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    new.leave()
    another = LabConsumer(lab, "another")
    another.join()
    for _ in range(10):
        assert slow.heartbeat() in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID}
        mixed_settle(old, another, rounds=1)
        lab.pass_time(4_000)
    assert set(lab.consumers.members) == {old.member_id, "another"}


def test_a_classic_member_that_does_not_ask_for_its_assignment_in_time_is_put_out(lab: ConsumerLab) -> None:
    new, old = LabConsumer(lab, "new"), OldConsumer(lab)
    new.join()
    old.join()
    for _ in range(8):
        old.heartbeat()
        new.beat()
        lab.pass_time(4_000)
    assert list(lab.consumers.members) == ["new"]


def test_sync_names_the_protocol_of_the_join(lab: ConsumerLab) -> None:
    new, old = LabConsumer(lab, "new"), OldConsumer(lab)
    new.join()
    old.join()

    def synced(kind: str, name: str) -> ErrorCode:
        request = SyncGroupRequest(GROUP, old.generation, old.member_id, None, kind, name)
        return lab.ask(lambda completion: lab.shard.sync(request, completion, lab.time.now_ms())).code

    assert synced("connect", "cooperative") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert synced("consumer", "range") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert synced("consumer", "cooperative") is ErrorCode.NONE


def test_a_group_larger_than_a_classic_one_may_be_stays_a_consumer_group() -> None:
    lab = ConsumerLab(group_size_max=1)
    new, old, older = LabConsumer(lab, "new"), OldConsumer(lab), OldConsumer(lab)
    new.join()
    for member in (old, older):
        assert member.join().code is ErrorCode.NONE
    new.leave()
    assert isinstance(lab.shard.groups[GROUP], ConsumerGroup)


@pytest.mark.parametrize(("policy", "is_downgraded"), [("bidirectional", True), ("upgrade", False)])
def test_the_last_static_member_changes_its_protocol_without_a_rebalance(policy: str, is_downgraded: bool) -> None:
    lab = ConsumerLab(migration_policy=policy)
    new = LabConsumer(lab, "new", instance_id="i")
    new.join()
    old = OldConsumer(lab, instance_id="i")
    assert old.join().code is ErrorCode.NONE
    assert isinstance(lab.shard.groups[GROUP], ClassicGroup) == is_downgraded
    if is_downgraded:
        assert lab.group.state is State.STABLE
        assert old.generation == lab.group.generation
    assert old.sync().code is ErrorCode.NONE
    assert old.numbers == [0, 1, 2, 3]
    assert old.heartbeat() is ErrorCode.NONE
    lab.fail_over()
    assert old.heartbeat() is ErrorCode.NONE


def test_a_static_member_that_changes_its_protocol_and_its_topics_begins_a_rebalance() -> None:
    lab = ConsumerLab({"orders": 4, "bills": 1})
    new = LabConsumer(lab, "new", "bills", instance_id="i")
    new.join()
    old = OldConsumer(lab, instance_id="i")
    old.join()
    assert lab.group.state is State.PREPARING


def test_a_replacement_amid_a_reconciliation_begins_a_rebalance() -> None:
    """A member waits for partitions that others have given up. In a stable classic group, nobody would get them."""
    lab = ConsumerLab({"orders": 6})
    new, old = LabConsumer(lab, "new", instance_id="i"), OldConsumer(lab)
    new.join()
    old.join()
    mixed_settle(old, new)
    late = OldConsumer(lab)
    late.join()
    mixed_settle(old, new, rounds=2)
    assert late.numbers == []
    assert lab.consumers.state_name == "Reconciling"
    new.leave(STATIC_LEAVING_EPOCH)
    OldConsumer(lab, instance_id="i").join()
    assert lab.group.state is State.PREPARING


def test_who_is_removed_while_it_joins_is_told_no_member_id(
    lab: ConsumerLab, pair: tuple[OldConsumer, OldConsumer]
) -> None:
    """As in Apache Kafka: the id is nobody's any more."""
    leader = next(member for member in pair if lab.group.is_leader(member.member_id))
    parked = leader.ask_to_join()
    leader.leave()
    assert (parked.code, parked.response.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
