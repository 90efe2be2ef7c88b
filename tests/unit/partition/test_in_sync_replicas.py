import pytest

from sskafka.model.errors import ErrorCode
from sskafka.partition.in_sync_replicas import InSyncReplicas, IsrChange, Outcome, outcome_of


def change_to(*isr: int, partition_epoch: int = 7) -> IsrChange:
    return IsrChange(leader_epoch=3, partition_epoch=partition_epoch, isr=isr, broker_epochs=(-1,) * len(isr))


def test_the_maximal_isr_includes_joining_and_leaving_replicas() -> None:
    growing, shrinking = InSyncReplicas((1, 2), 7), InSyncReplicas((1, 2), 7)
    growing.propose(change_to(1, 2, 3))
    shrinking.propose(change_to(1))
    assert growing.maximal == {1, 2, 3}
    assert shrinking.maximal == {1, 2}
    assert growing.committed == shrinking.committed == (1, 2)


def test_a_commit_ends_the_pending_change() -> None:
    isr = InSyncReplicas((1, 2), 7)
    isr.propose(change_to(1, 2, 3))
    assert isr.commit((1,), 8)
    assert (isr.committed, isr.maximal, isr.pending, isr.partition_epoch) == ((1,), {1}, None, 8)


def test_an_older_partition_epoch_is_ignored() -> None:
    isr = InSyncReplicas((1, 2), 7)
    isr.propose(change_to(1, 2, 3))
    assert not isr.commit((1, 2), 7)
    assert isr.pending is not None


def test_a_rejected_change_restores_the_committed_isr() -> None:
    isr = InSyncReplicas((1, 2), 7)
    change = change_to(1, 2, 3)
    isr.propose(change)
    isr.not_applied(change)
    assert (isr.maximal, isr.pending) == ({1, 2}, None)


def test_a_late_rejection_does_not_affect_a_newer_change() -> None:
    isr = InSyncReplicas((1, 2), 7)
    old = change_to(1, 2, 3)
    isr.propose(old)
    isr.commit((1, 2, 3), 8)
    isr.propose(change_to(1, 2, partition_epoch=8))
    isr.not_applied(old)
    assert isr.pending is not None


def test_only_one_change_may_be_pending() -> None:
    isr = InSyncReplicas((1, 2), 7)
    isr.propose(change_to(1))
    with pytest.raises(AssertionError):
        isr.propose(change_to(1, 2, 3))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, Outcome.NOT_APPLIED),
        (ErrorCode.INVALID_UPDATE_VERSION, Outcome.SUPERSEDED),
        (ErrorCode.FENCED_LEADER_EPOCH, Outcome.SUPERSEDED),
        (ErrorCode.NOT_CONTROLLER, Outcome.UNKNOWN),
        (ErrorCode.REQUEST_TIMED_OUT, Outcome.UNKNOWN),
    ],
)
def test_only_a_rejection_in_the_current_epoch_means_not_applied(error: ErrorCode, outcome: Outcome) -> None:
    assert outcome_of(error) is outcome
