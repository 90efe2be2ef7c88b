"""The shard of one partition of `__transaction_state`: records, answers, markers and timeouts."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from sskafka.model.coordination import CoordinatorResult, StateRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.log_records import TransactionRecord
from sskafka.transactions.metadata import TransactionState
from sskafka.transactions.shard import (
    EXPIRY,
    SWEEP,
    SendMarkers,
    TransactionCoordinatorShard,
    TransactionLimits,
    TransactionOutcome,
)

A, B, C = TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("c", 2)
LIMITS = TransactionLimits(timeout_max_ms=900_000, expiration_ms=7_000, sweep_interval_ms=100, expiry_interval_ms=500)
S = TransactionState


class Timers:
    def __init__(self) -> None:
        self.due: dict[Hashable, Callable[[int], CoordinatorResult[TransactionRecord, None]]] = {}

    def schedule(
        self, key: Hashable, delay_ms: int, due: Callable[[int], CoordinatorResult[TransactionRecord, None]]
    ) -> None:
        self.due[key] = due

    def cancel(self, key: Hashable) -> None:
        del self.due[key]


class Coordinator:
    """A shard with a log in which everything is committed at once, unless `is_stuck`; it sends no markers."""

    def __init__(self, log: list[StateRecord] | None = None, epoch: int = 5) -> None:
        self.log = log if log is not None else []
        self.prepared: list[SendMarkers] = []
        self.outcomes: Counter[TransactionOutcome] = Counter()
        self.timers = Timers()
        self.is_stuck = False
        self.shard = TransactionCoordinatorShard(epoch, self.timers, LIMITS, lambda: 2)
        for record in self.log:
            decoded = self.shard.decode(record)
            assert decoded is not None
            self.shard.replay(decoded, None)
        self.take(self.shard.start(0))

    def take(self, decision: CoordinatorResult[TransactionRecord, Any]) -> Any:
        """What the requester hears."""
        for record in decision.records:
            self.log.append(self.shard.encode(record))
            self.shard.replay(record, None)
        if self.is_stuck:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        for effect in decision.effects:
            if isinstance(effect, TransactionOutcome):
                self.outcomes[effect] += 1
            else:
                assert isinstance(effect, SendMarkers)
                self.prepared.append(effect)
        return decision.answer

    def initialize(self, spare_id: int | None = 9, now_ms: int = 0) -> Any:
        return self.take(self.shard.init_producer_id(InitProducerId("pay", 1_000), spare_id, now_ms))

    def add(self, *partitions: TopicPartition, epoch: int = 0, now_ms: int = 0) -> Any:
        return self.take(self.shard.add_partitions("pay", ProducerIdAndEpoch(9, epoch), partitions, 2, now_ms))

    def end(self, *, commit: bool = True, epoch: int = 0, now_ms: int = 0) -> Any:
        asked = EndTxn(ProducerIdAndEpoch(9, epoch), commit, 2)
        return self.take(self.shard.end_txn("pay", asked, None, now_ms))

    @property
    def state(self) -> TransactionState:
        return self.shard.transactions["pay"].state


def ongoing() -> Coordinator:
    coordinator = Coordinator()
    assert coordinator.initialize().identity == (9, 0)
    assert coordinator.add(A, B).error is ErrorCode.NONE
    return coordinator


def test_a_transaction_from_beginning_to_end() -> None:
    coordinator = ongoing()
    assert coordinator.end().identity == (9, 1)
    (prepared,) = coordinator.prepared
    assert prepared.is_commit
    assert (prepared.coordinator_epoch, prepared.transaction.partitions) == (5, {A, B})
    coordinator.take(coordinator.shard.complete(prepared, 10))
    assert coordinator.state is S.COMPLETE_COMMIT
    assert len(coordinator.log) == 4


def test_whoever_reads_the_log_knows_what_the_writer_knew() -> None:
    coordinator = ongoing()
    coordinator.end()
    coordinator.take(coordinator.shard.complete(coordinator.prepared[0], 10))
    later = Coordinator(list(coordinator.log))
    known, written = later.shard.transactions["pay"], coordinator.shard.transactions["pay"]
    assert (known.state, known.identity, known.partitions) == (written.state, written.identity, frozenset())


def test_the_next_coordinator_goes_on_with_the_markers() -> None:
    first = ongoing()
    first.end()
    second = Coordinator(list(first.log), epoch=6)
    (prepared,) = second.prepared
    assert prepared.coordinator_epoch == 6
    second.take(second.shard.complete(prepared, 10))
    assert second.state is S.COMPLETE_COMMIT


def test_completion_by_another_coordinator_is_no_completion() -> None:
    first = ongoing()
    first.end()
    second = Coordinator(list(first.log), epoch=6)
    assert second.shard.complete(first.prepared[0], 10) == CoordinatorResult(answer=None)
    assert second.state is S.PREPARE_COMMIT


def test_markers_wait_until_the_outcome_is_committed() -> None:
    coordinator = ongoing()
    coordinator.is_stuck = True
    assert coordinator.end() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.prepared == []
    coordinator.is_stuck = False
    coordinator.take(coordinator.timers.due[SWEEP](10))
    assert len(coordinator.prepared) == 1


def test_a_sweep_asks_for_the_same_markers_until_they_are_written() -> None:
    """Who sends them knows what is under way, and what has failed."""
    coordinator = ongoing()
    coordinator.end()
    coordinator.take(coordinator.timers.due[SWEEP](10))
    first, second = coordinator.prepared
    assert first == second
    coordinator.take(coordinator.shard.complete(first, 15))
    coordinator.take(coordinator.timers.due[SWEEP](20))
    assert len(coordinator.prepared) == 2


def test_decisions_change_nothing() -> None:
    coordinator = ongoing()
    shard, before = coordinator.shard, dict(coordinator.shard.transactions)
    asked = EndTxn(ProducerIdAndEpoch(9, 0), True, 2)
    (record,) = shard.end_txn("pay", asked, None, 0).records
    assert shard.transactions == before
    assert shard.end_txn("pay", asked, None, 0).records == [record]
    coordinator.timers.due[SWEEP](1_001)
    coordinator.timers.due[EXPIRY](1_000_000)
    assert shard.transactions == before
    coordinator.end()
    prepared = dict(shard.transactions)
    shard.complete(coordinator.prepared[0], 10)
    assert shard.transactions == prepared


def test_a_transaction_open_for_too_long_is_aborted_and_its_producer_fenced() -> None:
    coordinator = ongoing()
    coordinator.take(coordinator.timers.due[SWEEP](1_000))
    assert coordinator.state is S.ONGOING
    coordinator.take(coordinator.timers.due[SWEEP](1_001))
    assert coordinator.state is S.PREPARE_ABORT
    assert [prepared.is_commit for prepared in coordinator.prepared] == [False]
    assert coordinator.outcomes == {TransactionOutcome.TIMED_OUT: 1}
    assert coordinator.end().error is ErrorCode.PRODUCER_FENCED


def test_what_became_of_transactions_is_counted() -> None:
    outcomes: Counter[TransactionOutcome] = Counter()
    for commit in (True, True, False):
        coordinator = ongoing()
        coordinator.end(commit=commit)
        coordinator.take(coordinator.shard.complete(coordinator.prepared[-1], 1))
        coordinator.take(coordinator.shard.complete(coordinator.prepared[-1], 1))  # told twice
        outcomes += coordinator.outcomes
    assert outcomes == {TransactionOutcome.COMMITTED: 2, TransactionOutcome.ABORTED: 1}


def test_an_id_nobody_uses_is_forgotten_with_a_tombstone() -> None:
    coordinator = Coordinator()
    coordinator.initialize(now_ms=100)
    coordinator.take(coordinator.timers.due[EXPIRY](7_099))
    assert "pay" in coordinator.shard.transactions
    coordinator.take(coordinator.timers.due[EXPIRY](7_100))
    assert "pay" not in coordinator.shard.transactions
    assert coordinator.log[-1].value is None
    assert Coordinator(list(coordinator.log)).shard.transactions == {}


def test_an_open_transaction_is_not_forgotten() -> None:
    coordinator = ongoing()
    coordinator.take(coordinator.timers.due[EXPIRY](1_000_000))
    assert coordinator.state is S.ONGOING


def test_verifying_tells_of_each_partition() -> None:
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.add(A)
    assert coordinator.shard.verify("pay", ProducerIdAndEpoch(9, 0), [A, B]) == {
        A: ErrorCode.NONE,
        B: ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_errors_that_end_a_producer_are_written_before_they_are_told() -> None:
    """A coordinator that was replaced cannot write, and so turns nobody away who has gone on with the next one."""
    coordinator = ongoing()
    before = len(coordinator.log)
    known = coordinator.shard.transactions["pay"]
    assert coordinator.end(epoch=7).error is ErrorCode.PRODUCER_FENCED
    assert coordinator.add(A, epoch=7).error is ErrorCode.PRODUCER_FENCED
    assert len(coordinator.log) == before + 2
    assert Coordinator(list(coordinator.log)).shard.transactions["pay"] == known


def test_errors_that_pass_need_no_write() -> None:
    coordinator = ongoing()
    coordinator.end()
    before = len(coordinator.log)
    assert coordinator.add(A, epoch=1).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert len(coordinator.log) == before


def test_an_id_that_nobody_knows_is_forgotten_once_more_before_that_is_told() -> None:
    coordinator = Coordinator()
    assert coordinator.end().error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert [record.value for record in coordinator.log] == [None]


def test_a_leader_is_refused_like_a_producer() -> None:
    coordinator = ongoing()
    before = len(coordinator.log)
    for partition, error, written in (A, ErrorCode.NONE, 0), (C, ErrorCode.TRANSACTION_ABORTABLE, 1):
        heard = coordinator.take(
            coordinator.shard.verify_with_confirmation("pay", ProducerIdAndEpoch(9, 0), [partition])
        )
        assert heard == {partition: error}
        assert len(coordinator.log) == before + written
