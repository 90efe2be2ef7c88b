"""Bugs that this producer has had, to be switched on one at a time."""

from collections.abc import Callable, Mapping

import pytest

from sskafka.client import transactions
from sskafka.client.accumulator import NO_IDENTITY, Accumulator, OutgoingBatch
from sskafka.client.errors import ClientError
from sskafka.client.producer import ProducerEngine, Sequences
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.client.transactions import Transaction
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

Bug = Callable[[pytest.MonkeyPatch], None]


def a_batch_that_may_be_stored_lends_its_sequence(patch: pytest.MonkeyPatch) -> None:
    """The leader takes the next batch for a duplicate: it is acknowledged and lost."""

    def settle(self: ProducerEngine, batch: OutgoingBatch, error: Exception) -> None:
        if isinstance(error, KafkaError) and not error.retriable:
            self._sequences.reuse(batch)
        else:
            self._sequences.abandon(batch)

    patch.setattr(ProducerEngine, "_settle_sequence", settle)


def a_batch_is_in_flight_only_once_it_has_a_leader(patch: pytest.MonkeyPatch) -> None:
    """An abort in the meantime drops the batch, which then enters the next transaction."""

    async def take(self: ProducerEngine) -> dict[int, list[OutgoingBatch]]:
        return await _take_ready(self, marks_early=False)

    patch.setattr(ProducerEngine, "_take_ready", take)


def the_producer_id_is_taken_before_the_leader_is_known(patch: pytest.MonkeyPatch) -> None:
    """Another batch fails in the meantime, and the id is dropped."""

    async def take(self: ProducerEngine) -> dict[int, list[OutgoingBatch]]:
        return await _take_ready(self, marks_early=True)

    def number(self: Sequences, batch: OutgoingBatch) -> None:
        if self.identity == NO_IDENTITY and batch.sequence < 0:  # without the assertion
            batch.identity, batch.sequence = NO_IDENTITY, 0
        else:
            numbered(self, batch)

    numbered = Sequences.number
    patch.setattr(Sequences, "number", number)
    patch.setattr(ProducerEngine, "_take_ready", take)


async def _take_ready(engine: ProducerEngine, *, marks_early: bool) -> dict[int, list[OutgoingBatch]]:
    now_ms = engine._cluster.clock.monotonic_ms()
    ready = [batch for batch in engine._accumulator.heads() if engine._ready_at(batch) <= now_ms]
    for batch in ready:
        batch.is_in_flight = marks_early
    by_leader: dict[int, list[OutgoingBatch]] = {}
    for batch in ready:
        try:
            await engine._prepare(batch)
            leader = (await engine._cluster.leader_of(batch.partition)).leader
        except (ClientError, KafkaError) as error:
            engine._retry_or_fail(batch, error)
        else:
            batch.is_closed = batch.is_in_flight = True
            engine._sequences.number(batch)
            by_leader.setdefault(leader, []).append(batch)
    return by_leader


def records_do_not_belong_to_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """A `send` that waits for metadata buffers its record in the next transaction."""
    append = Accumulator.append
    patch.setattr(Accumulator, "append", lambda self, *arguments: append(self, *arguments[:-1]))
    patch.setattr(TransactionalProducer, "_require_writable", lambda self, _: _require_unfailed(self))


def _require_unfailed(producer: TransactionalProducer) -> Transaction:
    if producer._failure is not None:
        raise producer._failure
    return producer._require_open()


def offsets_begin_a_transaction_when_they_are_answered(patch: pytest.MonkeyPatch) -> None:
    """If the answer is lost, no EndTxn is sent, and the next transaction commits the offsets of the aborted one."""

    async def send(self: TransactionalProducer, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        await transactions.commit_offsets(self._cluster, self._require_open(), group_id, offsets)
        self._has_begun = True

    patch.setattr(TransactionalProducer, "send_offsets", send)


def the_end_does_not_wait_for_offsets(patch: pytest.MonkeyPatch) -> None:
    """Another task still sends them, and they reach the next transaction of the same epoch."""

    async def send(self: TransactionalProducer, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._has_begun = True
        await transactions.commit_offsets(self._cluster, self._require_open(), group_id, offsets)

    patch.setattr(TransactionalProducer, "send_offsets", send)


def an_unknown_commit_counts_as_an_abort(patch: pytest.MonkeyPatch) -> None:
    """The coordinator refuses the abort of a transaction that was committed, as of one that it never knew."""
    end = TransactionalProducer._end_at_coordinator

    async def lenient(self: TransactionalProducer, transaction: Transaction, *, commit: bool) -> None:
        try:
            await end(self, transaction, commit=commit)
        except KafkaError as error:
            if commit or error.code is not ErrorCode.INVALID_TXN_STATE:
                raise

    patch.setattr(TransactionalProducer, "_end_at_coordinator", lenient)


BUGS: list[Bug] = [
    a_batch_that_may_be_stored_lends_its_sequence,
    a_batch_is_in_flight_only_once_it_has_a_leader,
    the_producer_id_is_taken_before_the_leader_is_known,
    records_do_not_belong_to_a_transaction,
    offsets_begin_a_transaction_when_they_are_answered,
    the_end_does_not_wait_for_offsets,
    an_unknown_commit_counts_as_an_abort,
]
