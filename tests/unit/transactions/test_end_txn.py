"""EndTxn in both versions: which transactions end, which requests are repetitions, and which producers are fenced."""

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.end_txn import EndTxn, decide
from sskafka.transactions.metadata import (
    EPOCH_MAX,
    LAST_USABLE_EPOCH,
    TransactionMetadata,
    TransactionState,
    completed,
    fenced,
)

S = TransactionState
NOW = 1_000
A = TopicPartition("a", 0)
OK = ErrorCode.NONE
INVALID, FENCED, CONCURRENT = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def known(state: S, epoch: int = 3, version: int = 0, **fields: object) -> TransactionMetadata:
    return TransactionMetadata(
        "pay",
        7,
        epoch,
        60_000,
        state,
        frozenset({A}),
        100,
        100,
        client_version=version,
        **fields,  # type: ignore[arg-type]
    )


def commit(epoch: int = 3, version: int = 0, producer_id: int = 7) -> EndTxn:
    return EndTxn(ProducerIdAndEpoch(producer_id, epoch), True, version)


def abort(epoch: int = 3, version: int = 0, producer_id: int = 7) -> EndTxn:
    return EndTxn(ProducerIdAndEpoch(producer_id, epoch), False, version)


@pytest.mark.parametrize(("asked", "state"), [(commit(), S.PREPARE_COMMIT), (abort(), S.PREPARE_ABORT)])
def test_the_first_version_keeps_the_epoch(asked: EndTxn, state: S) -> None:
    verdict = decide(known(S.ONGOING), asked, None, NOW)
    assert verdict.changed is not None
    assert (verdict.error, verdict.changed.state, verdict.changed.producer_epoch) == (OK, state, 3)
    assert verdict.changed.partitions == {A}


@pytest.mark.parametrize(
    ("state", "asked", "error"),
    [
        (S.EMPTY, commit(), INVALID),
        (S.EMPTY, abort(), INVALID),
        (S.PREPARE_COMMIT, commit(), CONCURRENT),
        (S.PREPARE_COMMIT, abort(), INVALID),
        (S.PREPARE_ABORT, abort(), CONCURRENT),
        (S.PREPARE_ABORT, commit(), INVALID),
        (S.COMPLETE_COMMIT, commit(), OK),
        (S.COMPLETE_COMMIT, abort(), INVALID),
        (S.COMPLETE_ABORT, abort(), OK),
        (S.COMPLETE_ABORT, commit(), INVALID),
        (S.ONGOING, commit(2), FENCED),
        (S.ONGOING, commit(4), FENCED),
        (S.ONGOING, commit(producer_id=8), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_the_first_version_by_state(state: S, asked: EndTxn, error: ErrorCode) -> None:
    verdict = decide(known(state), asked, None, NOW)
    assert (verdict.error, verdict.changed) == (error, None)


@pytest.mark.parametrize(("asked", "state"), [(commit(3, 2), S.PREPARE_COMMIT), (abort(3, 2), S.PREPARE_ABORT)])
def test_the_second_version_bumps_the_epoch(asked: EndTxn, state: S) -> None:
    verdict = decide(known(S.ONGOING, version=2), asked, None, NOW)
    assert verdict.changed is not None
    assert (verdict.changed.state, verdict.changed.producer_epoch, verdict.identity) == (state, 4, (7, 4))


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_second_version_may_abort_what_has_no_partitions(state: S) -> None:
    verdict = decide(known(state, version=2), abort(3, 2), None, NOW)
    assert verdict.changed is not None
    assert (verdict.changed.state, verdict.identity, verdict.changed.start_ms) == (S.PREPARE_ABORT, (7, 4), NOW)
    assert decide(known(state, version=2), commit(3, 2), None, NOW).error is INVALID


@pytest.mark.parametrize(
    ("state", "asked", "error"),
    [
        (S.PREPARE_COMMIT, commit(3, 2), CONCURRENT),
        (S.PREPARE_COMMIT, abort(3, 2), INVALID),
        (S.PREPARE_ABORT, abort(3, 2), CONCURRENT),
        (S.PREPARE_COMMIT, commit(4, 2), CONCURRENT),
        (S.COMPLETE_COMMIT, commit(3, 2), OK),
        (S.COMPLETE_COMMIT, abort(3, 2), INVALID),
        (S.COMPLETE_ABORT, abort(3, 2), OK),
        (S.COMPLETE_ABORT, commit(3, 2), INVALID),
        (S.COMPLETE_COMMIT, commit(2, 2), FENCED),
        (S.ONGOING, commit(3, 2), FENCED),
        (S.ONGOING, commit(5, 2), FENCED),
        (S.EMPTY, commit(3, 2), FENCED),
    ],
)
def test_the_second_version_knows_repetitions_by_their_epoch(state: S, asked: EndTxn, error: ErrorCode) -> None:
    """What is stored has epoch 4."""
    verdict = decide(known(state, 4, version=2), asked, None, NOW)
    assert (verdict.error, verdict.changed) == (error, None)
    if error is OK:
        assert verdict.identity == (7, 4)


@pytest.mark.parametrize("asked", [commit(3, 2), abort(3, 2)])
def test_the_end_of_a_fenced_producer_is_no_repetition(asked: EndTxn) -> None:
    aborted = fenced(known(S.ONGOING, version=2), NOW)
    assert decide(aborted, asked, None, NOW).error is FENCED
    assert decide(completed(aborted, NOW), asked, None, NOW).error is FENCED


def test_the_last_epoch_ends_with_a_new_producer_id() -> None:
    ongoing = known(S.ONGOING, LAST_USABLE_EPOCH, version=2)
    end = commit(LAST_USABLE_EPOCH, 2)
    assert decide(ongoing, end, None, NOW).needs_producer_id
    verdict = decide(ongoing, end, 9, NOW)
    prepared = verdict.changed
    assert prepared is not None
    assert (prepared.identity, verdict.identity) == ((7, EPOCH_MAX), (9, 0))
    assert decide(prepared, end, None, NOW).error is CONCURRENT
    assert decide(prepared, abort(0, 2, producer_id=9), None, NOW).error is CONCURRENT
    done = completed(prepared, NOW)
    repeated = decide(done, end, None, NOW)
    assert (repeated.error, repeated.identity) == (OK, (9, 0))


def test_an_unknown_id_has_nothing_to_end() -> None:
    assert decide(None, commit(), None, NOW).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("state", [S.PREPARE_ABORT, S.COMPLETE_ABORT])
@pytest.mark.parametrize("asked", [abort(LAST_USABLE_EPOCH, 2), commit(LAST_USABLE_EPOCH, 2)])
def test_a_fence_in_the_last_epoch_is_no_repeated_end(state: S, asked: EndTxn) -> None:
    """The fence has no number left to skip; the producer must not go on with an epoch that has no successor."""
    changed = fenced(known(S.ONGOING, LAST_USABLE_EPOCH, version=2), NOW)
    assert changed.producer_epoch == EPOCH_MAX
    if state is S.COMPLETE_ABORT:
        changed = completed(changed, NOW)
    assert decide(changed, asked, 99, NOW).error is FENCED


def test_who_claims_the_epoch_of_the_markers_has_to_wait() -> None:
    preparing = decide(known(S.ONGOING, LAST_USABLE_EPOCH, version=2), commit(LAST_USABLE_EPOCH, 2), 99, NOW).changed
    assert preparing is not None
    assert preparing.producer_epoch == EPOCH_MAX
    verdict = decide(preparing, commit(EPOCH_MAX, 2), 100, NOW)
    assert (verdict.error, verdict.changed) == (CONCURRENT, None)
