"""One partition of an internal topic that this broker leads, and the machine whose state it keeps.

    LOADING ──► ACTIVE ──► STOPPED        lost leadership, or the broker stops
       ▲          │
       └──────────┘  rolled back: an append failed, so the machine knows things that the log does not

An operation is decided at once on the newest state and its records are replayed at once, so the next operation sees
them. The records of one turn of the loop share one append. Answers leave when the high watermark has passed what they
rest on; those that changed nothing wait for the changes before them too, so nobody is told what may yet be lost.

Who comes while the log is loading hears COORDINATOR_LOAD_IN_PROGRESS, who comes when this broker does not lead
NOT_COORDINATOR; whoever waits when that happens is told so as well.

While too few replicas are in sync nothing can be written. Requests that would change something hear
COORDINATOR_NOT_AVAILABLE, and timers wait: rolling back again and again would send everybody away each time.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from sskafka.coordination.askers import NOBODY
from sskafka.coordination.load_counters import LoadCounters
from sskafka.coordination.shard_loader import READ_BYTES, ShardLoader
from sskafka.coordination.shard_log import ShardLog
from sskafka.coordination.shard_timers import Due, ShardTimers
from sskafka.model.clock import Clock
from sskafka.model.coordination import (
    Answer,
    Asker,
    Decision,
    StateMachine,
    StateRecord,
    Timers,
    TransactionalProducer,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.records.batch import HEADER_BYTES, NO_PRODUCER_ID
from sskafka.records.builder import NO_PRODUCER_EPOCH, NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.replication.errors import NotEnoughReplicasError, ReplicationError
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.storage.errors import InvalidProducerEpochError, RecordTooLargeError, TransactionCoordinatorFencedError
from sskafka.storage.flusher import Background

_log = logging.getLogger(__name__)

M = TypeVar("M", bound=StateMachine)

RECORD_OVERHEAD_BYTES = 32
RETRY_MS = 1_000
AS_THEY_COME = -1
"""What is decided in one turn of the loop is appended at its end."""


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    STOPPED = "stopped"


class Place(NamedTuple):
    """Where a machine is in charge."""

    partition: int
    leader_epoch: int
    timers: Timers
    is_writable: Callable[[], bool]
    """Whether records can be written now: enough replicas are in sync."""


class ShardRuntime(NamedTuple):
    """What all shards of a broker share."""

    clock: Clock
    wheel: TimerWheel
    background: Background
    commit_timeout_ms: int
    loading: Background
    """Where logs are loaded, see loading_turns.py."""
    loads: LoadCounters
    linger_ms: int = AS_THEY_COME
    """How long records are gathered before they are appended; 0 appends those of each decision by themselves."""
    compression: Compression = Compression.NONE
    load_bytes: int = READ_BYTES
    """Read at once while a log is loaded; more where a batch is larger."""


class Shard(Generic[M]):
    machine: M
    state: ShardState

    def __init__(
        self, partition: int, log: ShardLog, make_machine: Callable[[Place], M], runtime: ShardRuntime
    ) -> None:
        self.partition = partition
        self.log = log
        self.leader_epoch = log.leader_epoch
        self._make_machine = make_machine
        self._runtime = runtime
        self._timers = ShardTimers(runtime.wheel, runtime.clock, self._run_timer, self._may_write)
        self._gathered = _Gathered()
        self._end_offset = log.log_end_offset  # of what was appended last
        self._put_off: list[Callable[[M, int], Decision]] = []
        self._is_retry_due = False
        self._load()

    # -- what is asked of it

    def write(self, operation: Callable[[M, int], Decision], asker: Asker) -> None:
        """Run `operation` on the machine; the asker is refused when it raises KafkaError, or cannot be run here."""
        if self._put_off:
            self._work_off()
        if self._is_refused(asker):
            return
        try:
            decision = operation(self.machine, self._runtime.clock.now_ms())
        except KafkaError as error:
            asker.refuse(error.code, error.message)
            return
        except Exception as error:  # the machine may be half changed
            asker.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._roll_back(error)
            return
        if decision.records and decision.is_replayed and not self.log.is_writable:
            _refuse(decision.answers, ErrorCode.COORDINATOR_NOT_AVAILABLE)  # nothing has changed yet
        else:
            self._take(decision)

    def change(self, operation: Callable[[M, int], Decision], asker: Asker) -> None:
        """As `write`, for what changes the machine as it is decided: not tried where it would have to be undone."""
        if self.state is ShardState.ACTIVE and not self._may_write():
            asker.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self.write(operation, asker)

    def read(self, question: Callable[[M, int], Any], asker: Asker) -> None:
        """As `write`, for what changes nothing."""
        self.write(lambda machine, now_ms: Decision(answers=[Answer(asker, question(machine, now_ms))]), asker)

    def write_eventually(self, operation: Callable[[M, int], Decision]) -> None:
        """As `write`, but once the log is loaded and can be written to, and before anything else that comes then."""
        self._put_off.append(operation)
        self._work_off()

    def _work_off(self) -> None:
        if not self._put_off or self.state is not ShardState.ACTIVE:
            return
        if not self.log.is_writable:
            self._try_again_later()
            return
        put_off, self._put_off = self._put_off, []
        for operation in put_off:
            self.write(operation, NOBODY)
        if not self._is_flushed():  # the log has not taken it
            self._put_off[:0] = put_off

    def _try_again_later(self) -> None:
        """Every request comes by here meanwhile: one timer is enough."""
        if not self._is_retry_due:
            self._is_retry_due = True
            self._runtime.wheel.schedule(RETRY_MS, self._try_again)

    def _try_again(self) -> None:
        self._is_retry_due = False
        self._work_off()

    def end_transaction(
        self, producer: TransactionalProducer, coordinator_epoch: int, is_committed: bool, asker: Asker
    ) -> None:
        """Write the marker that ends a transaction; the asker is answered with None."""
        if self._is_refused(asker):
            return
        marker = EndTransactionMarker(ControlType.COMMIT if is_committed else ControlType.ABORT, coordinator_epoch)
        record = NewRecord(control_key(marker.type), marker.value(), timestamp=self._runtime.clock.now_ms())
        self._append_first(
            [record],
            [Answer(asker, None)],
            producer,
            lambda: self.machine.replay_end_of_transaction(producer, is_committed),
            is_marker=True,
        )

    def stop(self) -> None:
        """This broker is no longer in charge: everyone who waits is sent away, no timer goes off any more."""
        if self.state is ShardState.STOPPED:
            return
        self._release(ErrorCode.NOT_COORDINATOR)
        self.state = ShardState.STOPPED

    # -- decisions

    def _is_refused(self, asker: Asker) -> bool:
        if self.state is ShardState.ACTIVE and self.log.is_leader:
            return False
        is_loading = self.state is ShardState.LOADING and self.log.is_leader
        asker.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)
        return True

    def _take(self, decision: Decision) -> None:
        if decision.producer is not None:
            self._take_transactional(decision, decision.producer)
        elif decision.is_divisible:
            self._take_in_parts(decision)
        elif self._gather(decision):
            if decision.is_replayed:
                self._replay(decision.records, None)
            if self._runtime.linger_ms == 0:
                self.flush()

    def _take_in_parts(self, decision: Decision) -> None:
        parts = list(_parts(decision.records, self.log.batch_bytes_max // 2))
        for records in parts[:-1]:
            self._take(Decision(records, is_replayed=decision.is_replayed))
            if self.state is not ShardState.ACTIVE:
                _refuse(decision.answers, ErrorCode.NOT_COORDINATOR)
                return
        self._take(Decision(parts[-1], decision.answers, decision.is_replayed))

    def _take_transactional(self, decision: Decision, producer: TransactionalProducer) -> None:
        """A producer's records stand in a batch of their own, and the log may refuse them for the producer's sake."""
        records = self._stamped(decision.records)
        self._append_first(records, decision.answers, producer, lambda: self._replay(decision.records, producer))

    def _gather(self, decision: Decision) -> bool:
        """False when the decision is void: it can never be written, or what it rests on could not."""
        if not decision.records and not self._gathered.records:
            self._tell_at(self._end_offset, decision.answers)
            return True
        size_bytes = sum(_size_of(record) for record in decision.records)
        if decision.is_replayed and HEADER_BYTES + size_bytes > self.log.batch_bytes_max:
            _refuse(decision.answers, ErrorCode.UNKNOWN_SERVER_ERROR)
            return False
        if self._gathered.size_bytes + size_bytes > self.log.batch_bytes_max // 2 and not self._is_flushed():
            _refuse(decision.answers, ErrorCode.NOT_COORDINATOR)
            return False
        if not self._gathered.records:
            self._flush_later()
        self._gathered.add(decision, size_bytes)
        return True

    def _flush_later(self) -> None:
        linger_ms = self._runtime.linger_ms
        if linger_ms > 0:
            self._runtime.wheel.schedule(linger_ms, self.flush)
        else:
            self._runtime.background.soon(self.flush)

    def _is_flushed(self) -> bool:
        """False when that failed: the machine is another one now, and what was decided on the last one is void."""
        self.flush()
        return self.state is ShardState.ACTIVE

    def _replay(self, records: list[StateRecord], producer: TransactionalProducer | None) -> None:
        try:
            for record in records:
                self.machine.replay(record, producer)
        except Exception as error:  # the machine is half changed
            self._roll_back(error)

    def flush(self) -> None:
        """Append what was decided since the last time."""
        gathered, self._gathered = self._gathered, _Gathered()
        if not gathered.records or self.state is not ShardState.ACTIVE:
            return
        try:
            self._append(self._stamped(gathered.records), None)
        except Exception as error:  # whatever it is: the machine knows what the log does not
            _refuse(gathered.answers, refusal_of(error))
            self._roll_back(error)
        else:
            self._tell_at(self._end_offset, gathered.answers)

    def _append_first(
        self,
        records: list[NewRecord],
        answers: list[Answer],
        producer: TransactionalProducer,
        replay: Callable[[], None],
        is_marker: bool = False,
    ) -> None:
        """Replay only what the log has taken: nothing is to be rolled back when it refuses."""
        if not self._is_flushed():
            _refuse(answers, ErrorCode.NOT_COORDINATOR)
            return
        try:
            self._append(records, producer, is_marker)
        except Exception as error:
            _refuse(answers, refusal_of(error))
            return
        replay()
        self._tell_at(self._end_offset, answers)

    def _append(
        self, records: list[NewRecord], producer: TransactionalProducer | None, is_marker: bool = False
    ) -> None:
        batch = build_batch(
            records,
            compression=Compression.NONE if is_marker else self._runtime.compression,
            producer_id=producer.producer_id if producer else NO_PRODUCER_ID,
            producer_epoch=producer.producer_epoch if producer else NO_PRODUCER_EPOCH,
            transactional=producer is not None,
            control=is_marker,
        )
        if len(batch) > self.log.batch_bytes_max:
            raise RecordTooLargeError(f"a batch of {len(batch)} bytes, at most {self.log.batch_bytes_max} are allowed")
        self._end_offset = self.log.append(batch, self._runtime.clock.now_ms())

    def _stamped(self, records: list[StateRecord]) -> list[NewRecord]:
        now_ms = self._runtime.clock.now_ms()
        return [NewRecord(record.key, record.value, timestamp=now_ms) for record in records]

    def _tell_at(self, end_offset: int, answers: list[Answer]) -> None:
        if not answers:
            return
        if self.log.high_watermark >= end_offset:
            _tell(answers)
        else:
            _Uncommitted(answers).wait(self.log, end_offset, self._runtime)

    def _run_timer(self, due: Due) -> None:
        if self.state is not ShardState.ACTIVE:
            return
        try:
            decision = due(self._runtime.clock.now_ms())
        except Exception as error:  # the machine may be half changed
            self._roll_back(error)
            return
        self._take(decision)

    # -- loading

    def _load(self) -> None:
        runtime = self._runtime
        self.state = ShardState.LOADING
        self._load_began_ms = runtime.clock.monotonic_ms()
        self.machine = self._make_machine(self._place())
        self._loader = ShardLoader(
            self.log, self.machine, runtime.clock, runtime.loading, self._loaded, runtime.load_bytes
        )
        self._loader.start()

    def _place(self) -> Place:
        return Place(self.partition, self.leader_epoch, self._timers, self._may_write)

    def _may_write(self) -> bool:
        """Where this broker does not lead any more, the append finds out and says so."""
        return not self.log.is_leader or self.log.is_writable

    def _loaded(self, error: BaseException | None) -> None:
        if error is not None:
            self._give_up(error)
            return
        self.state = ShardState.ACTIVE
        self._runtime.loads.loaded(self._runtime.clock.monotonic_ms() - self._load_began_ms)
        self._end_offset = self.log.log_end_offset
        try:
            decision = self.machine.start(self._runtime.clock.now_ms())
        except Exception as unable:  # loading it again would end the same way
            self._give_up(unable)
        else:
            self._take(decision)
            self._work_off()

    def _give_up(self, error: BaseException) -> None:
        """Until leadership moves; others may be able to read what this broker cannot."""
        _log.error("partition %d of an internal topic cannot be loaded", self.partition, exc_info=error)
        self._timers.cancel_all()
        self.state = ShardState.STOPPED

    def _roll_back(self, error: BaseException) -> None:
        """Forget what the log does not have, by reading all of it again."""
        trace = None if isinstance(error, ReplicationError) else error
        _log.warning("partition %d of an internal topic is loaded anew: %s", self.partition, error, exc_info=trace)
        self._release(ErrorCode.NOT_COORDINATOR)
        self._load()

    def _release(self, error: ErrorCode) -> None:
        self._loader.cancel()
        self._timers.cancel_all()
        gathered, self._gathered = self._gathered, _Gathered()
        _refuse(gathered.answers, error)
        for asker in self.machine.stop():
            asker.refuse(error)


class _Gathered:
    """What was decided in this turn and is not appended yet."""

    __slots__ = ("answers", "records", "size_bytes")

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.answers: list[Answer] = []
        self.size_bytes = 0

    def add(self, decision: Decision, size_bytes: int) -> None:
        self.records += decision.records
        self.answers += decision.answers
        self.size_bytes += size_bytes


class _Uncommitted:
    """Answers that wait for the high watermark."""

    __slots__ = ("_answers",)

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers

    def wait(self, log: ShardLog, end_offset: int, runtime: ShardRuntime) -> None:
        timer = runtime.wheel.schedule(runtime.commit_timeout_ms, self._expired)

        def released(outcome: ErrorCode) -> None:
            timer.cancel()
            answers, self._answers = self._answers, []
            if outcome is ErrorCode.NONE:
                _tell(answers)
            else:
                _refuse(answers, ErrorCode.NOT_COORDINATOR)

        log.when_committed(end_offset, released)

    def _expired(self) -> None:
        answers, self._answers = self._answers, []
        _refuse(answers, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def refusal_of(error: BaseException) -> ErrorCode:
    """What askers hear of an append that failed."""
    match error:
        case KafkaError():
            return error.code
        case NotEnoughReplicasError():
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case RecordTooLargeError():
            return ErrorCode.UNKNOWN_SERVER_ERROR
        case InvalidProducerEpochError():
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case TransactionCoordinatorFencedError():
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        case _:
            return ErrorCode.NOT_COORDINATOR


def _tell(answers: Iterable[Answer]) -> None:
    for asker, response in answers:
        try:
            asker.answer(response)
        except Exception:  # one who cannot take the answer must not keep the others from theirs
            _log.exception("an answer of a coordinator could not be given")
            asker.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refuse(answers: Iterable[Answer], error: ErrorCode) -> None:
    for asker, _ in answers:
        asker.refuse(error)


def _parts(records: list[StateRecord], part_bytes: int) -> Iterator[list[StateRecord]]:
    """At least one, in order; none is larger than `part_bytes` unless a record is."""
    part: list[StateRecord] = []
    size_bytes = 0
    for record in records:
        size_bytes += _size_of(record)
        if part and size_bytes > part_bytes:
            yield part
            part, size_bytes = [], _size_of(record)
        part.append(record)
    yield part


def _size_of(record: StateRecord) -> int:
    return len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES
