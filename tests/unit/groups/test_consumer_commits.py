"""Which commits a consumer group accepts: by member epoch, and by the epoch since which a partition is owned."""

import pytest
from consumer_lab import ConsumerLab, LabConsumer

from sskafka.groups import consumer_records
from sskafka.groups.group import OffsetCommitter
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch

PRODUCER = ProducerIdAndEpoch(1, 0)


@pytest.fixture
def lab() -> ConsumerLab:
    return ConsumerLab({"t": 4})


def committed(lab: ConsumerLab, member: str, epoch: int, partition: int = 0, **options: object) -> ErrorCode:
    return lab.commit(5, OffsetCommitter(member, generation=epoch), partition=partition, **options)  # type: ignore[arg-type]


def split(lab: ConsumerLab) -> tuple[LabConsumer, LabConsumer]:
    """Alice has had 0 and 1 since epoch 2 and is in epoch 3; bob has had 2 and 3 since epoch 3."""
    alice, bob = LabConsumer(lab, "alice", "t"), LabConsumer(lab, "bob", "t")
    alice.join()
    bob.join()
    for _ in range(2):
        alice.beat()
        bob.beat()
    assert (alice.epoch, alice.numbers, bob.epoch, bob.numbers) == (3, [0, 1], 3, [2, 3])
    return alice, bob


def test_the_current_epoch_counts(lab: ConsumerLab) -> None:
    LabConsumer(lab, "alice", "t").join()
    assert committed(lab, "alice", 2) is ErrorCode.NONE
    assert committed(lab, "alice", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(lab, "alice", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(lab, "nobody", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_older_epoch_counts_for_what_has_been_owned_since_then(lab: ConsumerLab) -> None:
    split(lab)
    assert committed(lab, "alice", 2, partition=0) is ErrorCode.NONE
    assert committed(lab, "alice", 2, partition=3) is ErrorCode.STALE_MEMBER_EPOCH, "bob's by now"
    assert committed(lab, "bob", 2, partition=3) is ErrorCode.STALE_MEMBER_EPOCH, "not bob's yet in that epoch"
    lab.fail_over()
    assert committed(lab, "alice", 2, partition=0) is ErrorCode.NONE
    assert committed(lab, "bob", 2, partition=3) is ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_being_given_up_can_still_be_committed(lab: ConsumerLab) -> None:
    alice, bob = LabConsumer(lab, "alice", "t"), LabConsumer(lab, "bob", "t")
    alice.join()
    bob.join()
    alice.beat()
    assert lab.consumers.members["alice"].pending_revocation
    assert committed(lab, "alice", 2, partition=3) is ErrorCode.NONE


def test_assignments_written_without_epochs_are_as_old_as_the_member(lab: ConsumerLab) -> None:
    split(lab)
    member = lab.consumers.members["alice"]
    record = consumer_records.current_record("g", member)
    topics = record.value.assigned_partitions = list(record.value.assigned_partitions)
    for topic in topics:
        topic.assignment_epochs = None
    written = lab.shard.decode(lab.shard.encode(record))
    assert written is not None
    lab.shard.replay(written, None)
    assert set(lab.consumers.members["alice"].assignment_epochs) == {3}
    assert committed(lab, "alice", 2) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_stale_epoch_in_a_transaction_is_an_illegal_generation(lab: ConsumerLab) -> None:
    """Clients abort the transaction on that; STALE_MEMBER_EPOCH would be fatal to them."""
    split(lab)
    assert committed(lab, "bob", 2, partition=3, producer=PRODUCER) is ErrorCode.ILLEGAL_GENERATION
    assert committed(lab, "bob", 9, partition=3, producer=PRODUCER) is ErrorCode.ILLEGAL_GENERATION
    assert committed(lab, "alice", 2, partition=0, producer=PRODUCER) is ErrorCode.NONE
    assert lab.commit(5, producer=PRODUCER) is ErrorCode.NONE, "a producer that names no member"


def test_commits_that_know_of_no_member_epochs_are_refused(lab: ConsumerLab) -> None:
    LabConsumer(lab, "alice", "t").join()
    old = OffsetCommitter("alice", generation=2, is_too_old_for_epochs=True)
    assert lab.commit(5, old) is ErrorCode.UNSUPPORTED_VERSION
    assert lab.commit(5, old._replace(member_id="nobody")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_left_for_a_while_owns_since_the_beginning(lab: ConsumerLab) -> None:
    one = LabConsumer(lab, "one", "t", instance_id="i")
    one.join()
    one.leave(-2)
    assert set(lab.consumers.members["one"].assignment_epochs) == {0}
    assert lab.consumers.members["one"].previous_epoch == 0
