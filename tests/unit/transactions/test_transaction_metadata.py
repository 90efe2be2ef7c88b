"""The states of a transactional id and their transitions."""

import pytest

from sskafka.model.ids import TopicPartition
from sskafka.transactions.metadata import (
    EPOCH_MAX,
    LAST_USABLE_EPOCH,
    NEXT_STATES,
    STATE_BY_LABEL,
    TransactionMetadata,
    TransactionState,
    completed,
    fenced,
)

S = TransactionState
ORDERS = TopicPartition("orders", 0)


def known(state: S = S.ONGOING, epoch: int = 3, **fields: object) -> TransactionMetadata:
    return TransactionMetadata("pay", 7, epoch, 60_000, state, frozenset({ORDERS}), 100, 100, **fields)  # type: ignore[arg-type]


def test_the_labels_are_kafkas() -> None:
    assert [state.label for state in S] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert STATE_BY_LABEL["PrepareCommit"] is S.PREPARE_COMMIT


def test_every_state_has_its_row_in_the_table() -> None:
    assert set(NEXT_STATES) == set(S)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_the_outcome_of_a_prepared_transaction_cannot_change(state: S) -> None:
    assert len(NEXT_STATES[state]) == 1
    with pytest.raises(AssertionError):
        known(state).becomes(S.ONGOING, 5)


@pytest.mark.parametrize(
    ("prepared", "complete"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_completing_forgets_the_partitions_and_keeps_the_identity(prepared: S, complete: S) -> None:
    done = completed(known(prepared), 500)
    assert (done.state, done.identity, done.partitions, done.last_update_ms) == (complete, (7, 3), frozenset(), 500)


def test_after_the_last_epoch_the_next_producer_id_takes_over() -> None:
    prepared = known(S.PREPARE_COMMIT, EPOCH_MAX, next_producer_id=8, client_version=2)
    done = completed(prepared, 500)
    assert done.identity == (8, 0)
    assert (done.previous_producer_id, done.next_producer_id) == (7, -1)


@pytest.mark.parametrize(
    ("version", "epoch", "after"),
    [(0, 3, 4), (2, 3, 5), (2, LAST_USABLE_EPOCH, EPOCH_MAX), (0, LAST_USABLE_EPOCH, EPOCH_MAX)],
)
def test_fencing_leaves_the_producers_epoch_behind(version: int, epoch: int, after: int) -> None:
    aborted = fenced(known(epoch=epoch, client_version=version, last_producer_epoch=2), 500)
    assert (aborted.state, aborted.producer_epoch, aborted.last_producer_epoch) == (S.PREPARE_ABORT, after, -1)
    assert aborted.partitions == {ORDERS}
