"""The transactional ids of one partition of `__transaction_state`: decisions on them, and what the log says of them.

    request -> decision (initialization, enrolment, ending) -> record committed -> answer
                                                            -> a PREPARE state: markers go out -> `complete`

Who prepares a transaction is told so by `Prepared`, once that is committed. Markers that were under way when the
coordinator changed, or when its log had to be read again, are sent anew: `start` and a sweep name every prepared
transaction that nobody works on. A marker written twice does no harm.

An error after which the producer gives up is told only when the log has taken the state that it rests on once more: a
coordinator that was replaced and does not know it yet cannot commit anything, and so refuses nobody.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sskafka.model.coordination import Answer, Asker, Decision, StateRecord, Timers, TransactionalProducer
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.transactions import ending, enrolment, initialization
from sskafka.transactions.counters import TransactionCounters
from sskafka.transactions.ending import Ending
from sskafka.transactions.expiry import has_expired, has_timed_out
from sskafka.transactions.initialization import Initialization
from sskafka.transactions.log_records import decode_key, decode_value, encode_key, encode_value, value_version
from sskafka.transactions.metadata import ProducerIdentity, TransactionMetadata, completed, fenced
from sskafka.transactions.states import TransactionState
from sskafka.transactions.verdict import FINAL_ERRORS, Verdict

SWEEP = "sweep"
EXPIRY = "expiry"


class Prepared(NamedTuple):
    """A transaction whose outcome is certain and whose partitions wait for their markers."""

    transaction: TransactionMetadata
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


class TransactionLimits(NamedTuple):
    timeout_max_ms: int
    expiration_ms: int
    sweep_interval_ms: int
    expiry_interval_ms: int
    allows_two_phase: bool = False


class TransactionMachine:
    """`on_prepared` sees to the markers, and calls `complete` with the same `Prepared`, or `markers_failed`."""

    def __init__(
        self,
        coordinator_epoch: int,
        timers: Timers,
        limits: TransactionLimits,
        transaction_version: Callable[[], int],
        on_prepared: Callable[["TransactionMachine", Prepared], None],
        counters: TransactionCounters | None = None,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self._counters = counters or TransactionCounters()
        self.transactions: dict[str, TransactionMetadata] = {}
        self._timers = timers
        self._limits = limits
        self._transaction_version = transaction_version
        self.on_prepared = on_prepared
        self._under_way: dict[str, Prepared] = {}
        self.is_in_charge = True

    # -- what producers ask

    def initialize(self, asked: Initialization, spare_id: int | None, asker: Asker, now_ms: int) -> Decision:
        error = self._refused(asked)
        if error is not ErrorCode.NONE:
            return _answered(asker, Verdict(error))
        known = self.transactions.get(asked.transactional_id)
        verdict = initialization.decide(known, asked, spare_id, now_ms)
        return self._carry_out(asked.transactional_id, verdict, asker)

    def _refused(self, asked: Initialization) -> ErrorCode:
        if (asked.two_phase or asked.keep_prepared) and not self._limits.allows_two_phase:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if asked.keep_prepared and not value_version(self._transaction_version()):
            return ErrorCode.UNSUPPORTED_VERSION  # the log could not say who took the transaction over
        return initialization.refused(asked, self._limits.timeout_max_ms)

    def enrol(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        client_version: int,
        asker: Asker,
        now_ms: int,
    ) -> Decision:
        known = self.transactions.get(transactional_id)
        verdict = enrolment.decide(known, producer, partitions, client_version, now_ms)
        return self._carry_out(transactional_id, verdict, asker)

    def verify(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        known = self.transactions.get(transactional_id)
        return {partition: enrolment.verify(known, producer, partition) for partition in partitions}

    def verify_surely(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        asker: Asker,
    ) -> Decision:
        """As `verify`, with final errors confirmed by the log."""
        outcome = self.verify(transactional_id, producer, partitions)
        decision = Decision(answers=[Answer(asker, outcome)], is_replayed=False)
        if not FINAL_ERRORS.isdisjoint(outcome.values()):
            decision.records.append(self._as_it_is(transactional_id))
        return decision

    def end(self, transactional_id: str, asked: Ending, spare_id: int | None, asker: Asker, now_ms: int) -> Decision:
        verdict = ending.decide(self.transactions.get(transactional_id), asked, spare_id, now_ms)
        return self._carry_out(transactional_id, verdict, asker)

    def complete(self, prepared: Prepared, now_ms: int) -> Decision:
        """Every partition has its marker. Nothing happens when the markers were another coordinator's."""
        transactional_id = prepared.transaction.transactional_id
        if self._under_way.get(transactional_id) is not prepared:
            return Decision()
        del self._under_way[transactional_id]
        if prepared.is_commit:
            self._counters.committed += 1
        else:
            self._counters.aborted += 1
        return Decision(records=[self._keep(completed(prepared.transaction, now_ms))], is_replayed=False)

    # -- what time brings

    def start(self, now_ms: int) -> Decision:
        self._timers.schedule(SWEEP, self._limits.sweep_interval_ms, self._sweep)
        self._timers.schedule(EXPIRY, self._limits.expiry_interval_ms, self._expire)
        return Decision(answers=self._resumed())

    def _sweep(self, now_ms: int) -> Decision:
        """Abort what has been open for too long, and send the markers that nobody is sending."""
        self._timers.schedule(SWEEP, self._limits.sweep_interval_ms, self._sweep)
        decision = Decision(answers=self._resumed(), is_replayed=False, is_divisible=True)
        for known in [known for known in self.transactions.values() if has_timed_out(known, now_ms)]:
            self._counters.timed_out += 1
            self._change(fenced(known, now_ms), decision)
        return decision

    def _expire(self, now_ms: int) -> Decision:
        self._timers.schedule(EXPIRY, self._limits.expiry_interval_ms, self._expire)
        expired = [
            known.transactional_id
            for known in self.transactions.values()
            if has_expired(known, now_ms, self._limits.expiration_ms)
        ]
        for transactional_id in expired:
            del self.transactions[transactional_id]
        tombstones = [StateRecord(encode_key(name), None) for name in expired]
        return Decision(records=tombstones, is_replayed=False, is_divisible=True)

    def _resumed(self) -> list[Answer]:
        waiting = [
            known
            for known in self.transactions.values()
            if known.state.is_preparing and known.transactional_id not in self._under_way
        ]
        return [self._begin_markers(known) for known in waiting]

    # -- what changes

    def _carry_out(self, transactional_id: str, verdict: Verdict, asker: Asker) -> Decision:
        decision = _answered(asker, verdict)
        if verdict.changed is not None:
            self._change(verdict.changed, decision)
        elif verdict.error in FINAL_ERRORS:
            decision.records.append(self._as_it_is(transactional_id))
        return decision

    def _as_it_is(self, transactional_id: str) -> StateRecord:
        known = self.transactions.get(transactional_id)
        return StateRecord(encode_key(transactional_id), None) if known is None else self._keep(known)

    def _change(self, changed: TransactionMetadata, decision: Decision) -> None:
        decision.records.append(self._keep(changed))
        if changed.state.is_preparing:
            decision.answers.append(self._begin_markers(changed))

    def _keep(self, changed: TransactionMetadata) -> StateRecord:
        self.transactions[changed.transactional_id] = changed
        version = value_version(self._transaction_version())
        return StateRecord(encode_key(changed.transactional_id), encode_value(changed, version))

    def _begin_markers(self, transaction: TransactionMetadata) -> Answer:
        prepared = Prepared(transaction, self.coordinator_epoch)
        self._under_way[transaction.transactional_id] = prepared
        return Answer(_WhenCommitted(self, prepared), None)

    def markers_failed(self, prepared: Prepared) -> None:
        """Nobody is sending them any more; the next sweep begins anew."""
        if self._under_way.get(prepared.transaction.transactional_id) is prepared:
            del self._under_way[prepared.transaction.transactional_id]

    # -- what the log says (StateMachine)

    def replay(self, record: StateRecord, producer: TransactionalProducer | None) -> None:
        transactional_id = decode_key(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = decode_value(transactional_id, record.value)

    def replay_end_of_transaction(self, producer: TransactionalProducer, is_committed: bool) -> None:
        """The log of transactions has none in itself."""

    def stop(self) -> list[Asker]:
        self.is_in_charge = False
        self._under_way.clear()
        return []

    # -- what administrators ask

    @property
    def markers_under_way(self) -> int:
        """Of how many transactions."""
        return len(self._under_way)

    def find(self, transactional_id: str) -> TransactionMetadata | None:
        return self.transactions.get(transactional_id)

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return iter(self.transactions.values())


class _WhenCommitted:
    """Waits for a PREPARE state to be committed: only then is the outcome certain."""

    __slots__ = ("_machine", "_prepared")

    def __init__(self, machine: TransactionMachine, prepared: Prepared) -> None:
        self._machine = machine
        self._prepared = prepared

    def answer(self, response: None) -> None:
        if self._machine.is_in_charge:
            self._machine.on_prepared(self._machine, self._prepared)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._machine.markers_failed(self._prepared)


def _answered(asker: Asker, verdict: Verdict) -> Decision:
    return Decision(answers=[Answer(asker, verdict)], is_replayed=False)
