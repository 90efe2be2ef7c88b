"""Offsets of groups: who may commit, transactional commits, and expiry."""

import pytest
from group_lab import GROUP, GroupLab

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.group import OffsetCommitter
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from sskafka.wire.messages.leave_group import MemberIdentity

DAY_MS = 24 * 3_600_000
PRODUCER = ProducerIdAndEpoch(7, 0)
T0 = TopicPartition("t", 0)


@pytest.fixture
def lab() -> GroupLab:
    lab = GroupLab(offsets_retention_ms=DAY_MS, retention_check_interval_ms=60_000)
    lab.take(lab.shard.start(lab.time.now_ms()))
    return lab


def test_anybody_may_commit_for_a_group_without_members(lab: GroupLab) -> None:
    assert lab.commit(5, metadata="note") is ErrorCode.NONE
    found = lab.fetched().offset
    assert found is not None
    assert (found.offset, found.leader_epoch, found.metadata) == (5, 3, "note")
    assert isinstance(lab.shard.groups[GROUP], ClassicGroup)


def test_a_generation_of_a_group_that_is_not_there_is_refused(lab: GroupLab) -> None:
    """Clients that support member epochs learn that there is no group; other clients know only generations."""
    somebody = OffsetCommitter("somebody", None, 3)
    assert lab.commit(5, somebody) is ErrorCode.GROUP_ID_NOT_FOUND
    assert lab.commit(5, somebody._replace(is_too_old_for_epochs=True)) is ErrorCode.ILLEGAL_GENERATION
    in_transaction = lab.commit(5, somebody, producer=ProducerIdAndEpoch(1, 0))
    assert in_transaction is ErrorCode.ILLEGAL_GENERATION


def test_members_of_the_generation_may_commit_and_nobody_else(lab: GroupLab) -> None:
    leader, _ = lab.stable_group(2)
    assert lab.commit(5, OffsetCommitter(leader, None, 1)) is ErrorCode.NONE
    assert lab.commit(6, OffsetCommitter(leader, None, 0)) is ErrorCode.ILLEGAL_GENERATION
    assert lab.commit(6, OffsetCommitter("nobody", None, 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.commit(6) is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.commit(6, OffsetCommitter(leader, "instance", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.committed() == 5


def test_while_members_wait_for_their_assignment_they_do_not_commit(lab: GroupLab) -> None:
    joined = lab.join_fully()
    lab.pass_time(1)
    committer = OffsetCommitter(joined.response.member_id, None, 1)
    assert lab.commit(5, committer) is ErrorCode.REBALANCE_IN_PROGRESS


def test_what_was_owned_may_be_committed_while_the_next_rebalance_is_prepared(lab: GroupLab) -> None:
    leader, _ = lab.stable_group(2)
    lab.join_fully()
    assert lab.commit(5, OffsetCommitter(leader, None, 1)) is ErrorCode.NONE


def test_long_notes_are_refused(lab: GroupLab) -> None:
    assert lab.commit(5, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert lab.commit(5, metadata="ü" * 2049) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert lab.commit(5, metadata=None) is ErrorCode.NONE
    assert lab.fetched().offset is not None


def test_offsets_survive_a_new_coordinator(lab: GroupLab) -> None:
    lab.commit(5)
    lab.commit(9, partition=1, metadata="note")
    lab.fail_over()
    assert (lab.committed(0), lab.committed(1)) == (5, 9)


def test_all_offsets_can_be_asked_for_at_once(lab: GroupLab) -> None:
    lab.commit(5)
    lab.commit(9, partition=1)
    found = lab.shard.offset_requests.fetch_all(GROUP, require_stable=False)
    assert {partition: offset.offset for partition, offset in found.offsets.items()} == {
        T0: 5,
        TopicPartition("t", 1): 9,
    }


# -- transactions


def test_offsets_of_a_transaction_count_once_it_commits(lab: GroupLab) -> None:
    lab.commit(5)
    assert lab.commit(8, producer=PRODUCER) is ErrorCode.NONE
    assert lab.committed() == 5
    assert lab.fetched(require_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    lab.end_transaction(PRODUCER, True)
    assert lab.committed() == 8
    assert lab.fetched(require_stable=True).error is ErrorCode.NONE


def test_offsets_of_an_aborted_transaction_never_count(lab: GroupLab) -> None:
    lab.commit(5)
    lab.commit(8, producer=PRODUCER)
    lab.end_transaction(PRODUCER, False)
    assert lab.committed() == 5
    lab.end_transaction(PRODUCER, True)
    assert lab.committed() == 5


def test_a_later_commit_outside_the_transaction_stays(lab: GroupLab) -> None:
    lab.commit(8, producer=PRODUCER)
    lab.commit(20)
    lab.end_transaction(PRODUCER, True)
    assert lab.committed() == 20


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_new_coordinator_knows_open_and_ended_transactions(lab: GroupLab, is_committed: bool) -> None:
    lab.commit(5)
    lab.commit(8, producer=PRODUCER)
    lab.fail_over()
    assert lab.fetched(require_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    lab.end_transaction(PRODUCER, is_committed)
    lab.fail_over()
    assert lab.committed() == (8 if is_committed else 5)


def test_a_group_that_only_transactions_commit_for_comes_into_being_with_the_marker(lab: GroupLab) -> None:
    lab.commit(8, producer=PRODUCER, group_id="other")
    lab.fail_over()
    lab.end_transaction(PRODUCER, True)
    assert "other" in lab.shard.groups


def test_a_committer_in_a_transaction_need_not_be_a_member_but_its_generation_must_be_right(lab: GroupLab) -> None:
    leader, _ = lab.stable_group(2)
    assert lab.commit(5, producer=PRODUCER) is ErrorCode.NONE
    assert lab.commit(5, OffsetCommitter(leader, None, 9), producer=PRODUCER) is ErrorCode.ILLEGAL_GENERATION


# -- deleting


def test_offsets_of_topics_that_members_read_are_kept(lab: GroupLab) -> None:
    subscription = b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=["read"]), 1)
    joined = lab.join_fully((("range", subscription),))
    lab.pass_time(1)
    lab.assign([joined.response.member_id])
    committer = OffsetCommitter(joined.response.member_id, None, 1)
    lab.commit(5, committer, topic="read")
    lab.commit(5, committer, topic="unread")
    partitions = [TopicPartition("read", 0), TopicPartition("unread", 0)]
    records, outcomes = lab.shard.offset_requests.delete(lab.group, partitions)
    assert outcomes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert len(records) == 1


def test_a_deleted_group_leaves_nothing(lab: GroupLab) -> None:
    (member,) = lab.stable_group(1)
    lab.commit(5, OffsetCommitter(member, None, 1))
    refused = lab.ask(lambda completion: lab.shard.delete_group(GROUP))
    assert refused.code is ErrorCode.NON_EMPTY_GROUP
    lab.leave(MemberIdentity(member))
    deleted = lab.ask(lambda completion: lab.shard.delete_group(GROUP))
    assert deleted.response is ErrorCode.NONE
    assert lab.committed() is None
    lab.fail_over()
    assert not lab.shard.groups
    with pytest.raises(KafkaError):
        lab.shard.find(GROUP)


def test_offsets_of_deleted_topics_are_forgotten(lab: GroupLab) -> None:
    lab.commit(5)
    lab.commit(5, topic="other")
    lab.take(lab.shard.topics_deleted(["t"]))
    assert list(lab.shard.offsets.committed(GROUP)) == [TopicPartition("other", 0)]


# -- expiry


def test_offsets_of_a_group_without_members_expire_after_the_last_commit(lab: GroupLab) -> None:
    lab.commit(5)
    lab.pass_time(DAY_MS - 120_000)
    assert lab.committed() == 5
    lab.pass_time(180_000)
    assert lab.committed() is None
    assert GROUP not in lab.shard.groups
    lab.fail_over()
    assert GROUP not in lab.shard.groups


def test_offsets_expire_once_the_group_has_been_empty_for_long_enough(lab: GroupLab) -> None:
    (member,) = lab.stable_group(1)
    lab.commit(5, OffsetCommitter(member, None, 1))
    for _ in range(2 * DAY_MS // 5_000 // 100):
        lab.pass_time(5_000)
        lab.heartbeat(member, 1)
    lab.leave(MemberIdentity(member))
    lab.pass_time(DAY_MS - 120_000)
    assert lab.committed() == 5
    lab.pass_time(180_000)
    assert lab.committed() is None


def test_an_old_client_may_say_how_long_its_offset_is_kept(lab: GroupLab) -> None:
    lab.commit(5, retention_ms=3_600_000)
    lab.fail_over()
    lab.pass_time(3_600_000 - 120_000)
    assert lab.committed() == 5
    lab.pass_time(180_000)
    assert lab.committed() is None


def test_an_old_client_may_keep_its_offset_for_ever(lab: GroupLab) -> None:
    """The sum of the time and the longest retention is more than a record can hold."""
    lab.commit(5, retention_ms=2**63 - 1)
    assert lab.committed() == 5


def test_what_a_transaction_is_about_to_change_does_not_expire(lab: GroupLab) -> None:
    lab.commit(5)
    lab.commit(6, producer=PRODUCER)
    lab.pass_time(DAY_MS + 120_000)
    assert lab.committed() == 5


@pytest.mark.parametrize("is_deleted_by", ["group", "topic"])
def test_what_is_deleted_does_not_come_back_with_a_transaction(lab: GroupLab, is_deleted_by: str) -> None:
    lab.commit(5)
    lab.commit(8, producer=PRODUCER)
    lab.commit(9, producer=PRODUCER, partition=1)
    if is_deleted_by == "group":
        lab.ask(lambda completion: lab.shard.delete_group(GROUP))
    else:
        lab.take(lab.shard.topics_deleted(["t"]))
    lab.end_transaction(PRODUCER, True)
    assert [lab.committed(0), lab.committed(1)] == [None, None]
    lab.fail_over()
    assert [lab.committed(0), lab.committed(1)] == [None, None]


def test_offsets_that_go_all_at_once_may_be_more_than_a_batch_holds(lab: GroupLab) -> None:
    """A decision that cannot be written would be made again and again, and disturb every group of the shard."""
    lab.commit(5)
    decision = lab.shard.topics_deleted(["t"])
    assert decision.is_divisible
    assert lab.shard._expire(lab.time.now_ms()).is_divisible
    assert lab.shard.delete_group(GROUP).is_divisible


def test_all_offsets_are_those_that_have_been_committed(lab: GroupLab) -> None:
    """An offset that only an open transaction has written is not listed, also not as an unstable one."""
    producer = ProducerIdAndEpoch(9, 0)
    lab.commit(5, partition=0)
    lab.commit(6, partition=0, producer=producer)
    lab.commit(7, partition=1, producer=producer)
    found = lab.shard.offset_requests.fetch_all(GROUP, require_stable=True)
    assert [item.partition for item in found.offsets] == [0]
    assert TopicPartition("t", 0) in found.unstable
