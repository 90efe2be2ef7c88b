"""One partition of an internal topic that this broker leads, with the `CoordinatorShard` that keeps its state.

    LOADING ──► ACTIVE ──► STOPPED        leadership is lost, or the broker stops
       ▲          │
       └──────────┘  rolled back: an append failed, so the shard has state that the log does not have

While the disk is full, or the broker lacks descriptors or memory, the log is loaded again once a second until that
succeeds: it would fail in the same way at once, also after each rollback.

Decide, replay, append, complete. An operation decides on the newest state and changes nothing. Its records are encoded
once and replayed at once, so the next operation sees them. The records of one turn of the event loop share one append.
Answers are sent, and effects happen, when the high watermark has passed the records.

What can happen in between, and what others can observe:

    decided, not appended     later decisions build on this one. No client has heard of it.
    the append fails          all decisions since the last append are void. Their requesters get the error, the shard
                              is dropped, and a new one is loaded from the log.
    appended, not committed   later decisions build on this one, and their answers wait for it too, even if they have no
                              records: no client may learn of state that can still be lost.
    not committed in time     requesters get COORDINATOR_NOT_AVAILABLE, and effects do not happen. The records stay in
                              the log and may still be committed.
    leadership is lost        requesters get NOT_COORDINATOR. The next leader may or may not have the records.
    records and markers of    are appended in a batch of their own before they are replayed. The log may reject them
    a transaction             because of the producer's epoch, and then nothing has to be rolled back.

Requests get COORDINATOR_LOAD_IN_PROGRESS while the log is loading, and NOT_COORDINATOR if this broker does not lead the
partition. While too few replicas are in sync, nothing can be written: decisions with records are refused with
COORDINATOR_NOT_AVAILABLE before they are replayed, and timers wait.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from sskafka.coordination.completions import NO_REQUESTER, DelayedEffects, effects_of, refusal_of, refuse
from sskafka.coordination.loading import READ_BYTES, CoordinatorLoader, LoadCounters, UnreadableRecords
from sskafka.coordination.log import CoordinatorLog, PendingBatch, batch_of, fits, size_of, split_records
from sskafka.coordination.timers import CoordinatorTimers, Due
from sskafka.model.coordination import Completion, CoordinatorResult, CoordinatorShard, Respond, StateRecord, Timers
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.records.batch import CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.replication.errors import ReplicationError
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.storage.errors import StorageError, TemporaryStorageError

_log = logging.getLogger(__name__)

S = TypeVar("S", bound=CoordinatorShard[Any])
Operation = Callable[[S, int], CoordinatorResult[Any, Any]]
"""Decides on the state of a shard. Arguments: the shard, and the wall-clock time in milliseconds."""
Perform = Callable[[object], None]
"""Carries out an effect of a decision."""

RETRY_MS = 1_000
EFFECTS_PER_TURN = 200
"""Effects that are carried out in one turn of the event loop. To send as many responses takes about 3 ms."""
AS_THEY_COME = -1
"""Records of one turn of the event loop are appended together at its end."""


class CoordinatorState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    STOPPED = "stopped"


class ShardParameters(NamedTuple):
    """What a context passes to the shard that it creates."""

    partition: int
    leader_epoch: int
    timers: Timers
    is_writable: Callable[[], bool]
    """Return whether records can be written now, that is, whether enough replicas are in sync."""


class CoordinatorEnvironment(NamedTuple):
    """Clock, timers, threads and limits that all contexts of a coordinator share."""

    clock: Clock
    wheel: TimerWheel
    background: Background
    commit_timeout_ms: int
    loading: Background
    """Runs the loading of logs, see loading.py, and what all contexts have to do: one turn at a time."""
    loads: LoadCounters
    linger_ms: int = AS_THEY_COME
    """How long records are collected before they are appended; 0: the records of each decision are appended at once."""
    compression: Compression = Compression.NONE
    load_bytes: int = READ_BYTES
    """Bytes to read at once while a log is loaded. A larger batch is read as a whole."""


class CoordinatorContext(Generic[S]):
    """`perform` carries out the effects of committed decisions, except answers."""

    shard: S
    state: CoordinatorState

    def __init__(
        self,
        partition: int,
        log: CoordinatorLog,
        make_shard: Callable[[ShardParameters], S],
        environment: CoordinatorEnvironment,
        perform: Perform | None = None,
    ) -> None:
        self.partition = partition
        self.log = log
        self.leader_epoch = log.leader_epoch
        self._make_shard = make_shard
        self._environment = environment
        self._perform = perform
        self._timers = CoordinatorTimers(environment.wheel, environment.clock, self._run_timer, self._may_write)
        self._gathered = PendingBatch()
        self._end_offset = log.log_end_offset  # the offset after the last append
        self._put_off: list[Operation[S]] = []
        self._is_retry_due = False
        self.after_load: Operation[S] | None = None
        """Runs, as with `write_eventually`, whenever the log was loaded, also after a rollback."""
        self._load()

    # -- requests

    def write(self, operation: Operation[S], completion: Completion) -> None:
        """Run `operation`. Refuse the completion if the operation raises KafkaError or cannot run here."""
        if self._put_off:
            self._work_off()
        if self._is_refused(completion):
            return
        try:
            decision = operation(self.shard, self._environment.clock.now_ms())
        except KafkaError as error:
            completion.refuse(error.code, error.message)
            return
        except Exception as error:  # soft state of the shard may be partly changed
            completion.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._roll_back(error)
            return
        if decision.records and not self.log.is_writable:
            refuse(effects_of(decision, completion), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._take(decision, completion)

    def read(self, question: Callable[[S, int], Any], completion: Completion) -> None:
        """Run an operation without records: as `write`."""
        self.write(lambda shard, now_ms: CoordinatorResult(answer=question(shard, now_ms)), completion)

    def write_eventually(self, operation: Operation[S]) -> None:
        """As `write`, but in a later turn, when the log is loaded and writable, and before any later operation.

        All contexts are asked at once, so they take turns."""
        self._put_off.append(operation)
        self._environment.loading.soon(self._work_off)

    def _work_off(self) -> None:
        if not self._put_off or self.state is not CoordinatorState.ACTIVE:
            return
        if not self.log.is_writable:
            self._schedule_retry()
            return
        put_off, self._put_off = self._put_off, []
        for operation in put_off:
            self.write(operation, NO_REQUESTER)
        if not self._is_flushed():  # the append failed
            self._put_off[:0] = put_off

    def _schedule_retry(self) -> None:
        """Set one timer. Every request calls this in the meantime."""
        if not self._is_retry_due:
            self._is_retry_due = True
            self._environment.wheel.schedule(RETRY_MS, self._try_again)

    def _try_again(self) -> None:
        self._is_retry_due = False
        self._work_off()

    def end_transaction(
        self, producer: ProducerIdAndEpoch, coordinator_epoch: int, is_committed: bool, completion: Completion
    ) -> None:
        """Write the marker that ends a transaction. The answer is None."""
        if self._is_refused(completion):
            return
        marker = EndTransactionMarker(ControlType.COMMIT if is_committed else ControlType.ABORT, coordinator_epoch)
        record = StateRecord(control_key(marker.type), marker.value())
        if self._append_alone([record], [Respond(completion, None)], producer, is_marker=True):
            self.shard.replay_end_of_transaction(producer, is_committed)
            self._complete_at(self._end_offset, [Respond(completion, None)])

    def stop(self) -> None:
        """Stop: this broker no longer leads the partition. Refuse waiting requests and cancel all timers."""
        if self.state is not CoordinatorState.STOPPED:
            self._release(ErrorCode.NOT_COORDINATOR)
            self._become_stopped()

    def _become_stopped(self) -> None:
        """Let go of the parts that refer to this context. Reference counts then free all of them at once; the garbage
        collector might keep the groups of a lost partition for long (runtime/garbage_collection.py)."""
        self.state = CoordinatorState.STOPPED
        del self.shard, self._timers, self._loader

    # -- decisions

    def _is_refused(self, completion: Completion) -> bool:
        if self.state is CoordinatorState.ACTIVE and self.log.is_leader:
            return False
        is_loading = self.state is CoordinatorState.LOADING and self.log.is_leader
        completion.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)
        return True

    def _take(self, decision: CoordinatorResult[Any, Any], completion: Completion = NO_REQUESTER) -> None:
        effects = effects_of(decision, completion)
        encoded = [self.shard.encode(record) for record in decision.records]
        if not self._may_append(encoded, decision.is_divisible):
            self._take_too_large(decision, completion)
        elif decision.is_divisible:
            self._take_in_parts(decision.records, encoded, effects)
        elif decision.producer is not None:
            if self._append_alone(encoded, effects, decision.producer):
                self._replay(decision.records, decision.producer)
                self._complete_at(self._end_offset, effects)
        else:
            self._collect(decision.records, encoded, effects)

    def _may_append(self, encoded: list[StateRecord], is_divisible: bool) -> bool:
        """Return whether the records fit into a batch, or each of them if they may be split."""
        batch_bytes_max = self.log.batch_bytes_max
        return fits(encoded, batch_bytes_max) or (
            is_divisible and all(fits([record], batch_bytes_max) for record in encoded)
        )

    def _take_too_large(self, decision: CoordinatorResult[Any, Any], completion: Completion) -> None:
        if decision.if_too_large is None:
            refuse(effects_of(decision, completion), ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._take(decision.if_too_large(self._environment.clock.now_ms()), completion)

    def _take_in_parts(self, records: Sequence[Any], encoded: list[StateRecord], effects: Sequence[object]) -> None:
        for part in split_records(encoded, self.log.batch_bytes_max // 2):
            is_last = part.stop >= len(encoded)
            self._collect(records[part], encoded[part], effects if is_last else ())
            if not is_last and self.state is not CoordinatorState.ACTIVE:
                refuse(effects, ErrorCode.NOT_COORDINATOR)
                return

    def _collect(self, records: Sequence[Any], encoded: list[StateRecord], effects: Sequence[object]) -> None:
        """Collect records for the next append, and replay them."""
        if not encoded and not self._gathered.records:
            self._complete_at(self._end_offset, effects)
            return
        size_bytes = size_of(encoded)
        if self._gathered.size_bytes + size_bytes > self.log.batch_bytes_max // 2 and not self._is_flushed():
            refuse(effects, ErrorCode.NOT_COORDINATOR)  # the records that this decision builds on could not be written
            return
        if not self._gathered.records:
            self._flush_later()
        self._gathered.add(encoded, effects, size_bytes)
        self._replay(records, None)
        if self._environment.linger_ms == 0:
            self.flush()

    def _flush_later(self) -> None:
        linger_ms = self._environment.linger_ms
        if linger_ms > 0:
            self._environment.wheel.schedule(linger_ms, self.flush)
        else:
            self._environment.background.soon(self.flush)

    def _is_flushed(self) -> bool:
        """Flush. Return False if that failed: then there is a new shard, and decisions on the old one are void."""
        self.flush()
        return self.state is CoordinatorState.ACTIVE

    def _replay(self, records: Sequence[Any], producer: ProducerIdAndEpoch | None) -> None:
        try:
            for record in records:
                self.shard.replay(record, producer)
        except Exception as error:  # the shard may be partly changed
            self._roll_back(error)

    def flush(self) -> None:
        """Append the records that were collected since the last append."""
        gathered, self._gathered = self._gathered, PendingBatch()
        if not gathered.records or self.state is not CoordinatorState.ACTIVE:
            return
        try:
            self._append(gathered.records, None)
        except Exception as error:  # after any error, the shard has state that the log does not have
            refuse(gathered.effects, refusal_of(error))
            self._roll_back(error)
        else:
            self._complete_at(self._end_offset, gathered.effects)

    def _append_alone(
        self,
        encoded: list[StateRecord],
        effects: Sequence[object],
        producer: ProducerIdAndEpoch,
        is_marker: bool = False,
    ) -> bool:
        """Append a transactional batch. Return False, and refuse the effects, if the log rejects the batch."""
        if not self._is_flushed():
            refuse(effects, ErrorCode.NOT_COORDINATOR)
            return False
        try:
            self._append(encoded, producer, is_marker)
        except Exception as error:
            refuse(effects, refusal_of(error))
            return False
        return True

    def _append(self, encoded: list[StateRecord], producer: ProducerIdAndEpoch | None, is_marker: bool = False) -> None:
        now_ms = self._environment.clock.now_ms()
        compression = Compression.NONE if is_marker else self._environment.compression
        self._end_offset = self.log.append(batch_of(encoded, now_ms, compression, producer, is_marker), now_ms)

    def _complete_at(self, end_offset: int, effects: Sequence[object]) -> None:
        """Carry out the effects once the high watermark has reached `end_offset`."""
        if not effects:
            return
        if self.log.high_watermark >= end_offset:
            self._complete(effects)
        else:
            delayed = DelayedEffects(effects, self._complete)
            delayed.begin(1, self._environment.wheel, self._environment.commit_timeout_ms)
            delayed.wait_for(0, self.log.committed_waiters, end_offset)

    def _complete(self, effects: Sequence[object]) -> None:
        """Carry out the effects, many of them in several turns: a group may have thousands of members."""
        if len(effects) > EFFECTS_PER_TURN:
            left = effects[EFFECTS_PER_TURN:]
            self._environment.background.soon(lambda: self._complete(left))
        for effect in effects[:EFFECTS_PER_TURN]:
            try:
                if isinstance(effect, Respond):
                    effect.completion.answer(effect.response)
                elif self._perform is not None and self.state is not CoordinatorState.STOPPED:
                    self._perform(effect)
            except Exception:  # an effect that fails must not prevent the others
                _log.exception("an effect of a coordinator's decision failed")
                refuse([effect], ErrorCode.UNKNOWN_SERVER_ERROR)

    def _run_timer(self, due: Due) -> None:
        if self.state is not CoordinatorState.ACTIVE:
            return
        try:
            decision = due(self._environment.clock.now_ms())
        except Exception as error:  # soft state of the shard may be partly changed
            self._roll_back(error)
            return
        self._take(decision)

    # -- loading

    def _load(self, delay_ms: int = 0) -> None:
        environment = self._environment
        self.state = CoordinatorState.LOADING
        self._load_began_ms = environment.clock.monotonic_ms() + delay_ms
        self.shard = self._make_shard(self._shard_parameters())
        self._unreadable = UnreadableRecords(self.partition)
        self._loader = CoordinatorLoader(
            self.log,
            self.shard,
            environment.clock,
            environment.loading,
            self._unreadable,
            self._loaded,
            environment.load_bytes,
        )
        if delay_ms:
            environment.wheel.schedule(delay_ms, self._loader.start)
        else:
            self._loader.start()

    def _shard_parameters(self) -> ShardParameters:
        return ShardParameters(self.partition, self.leader_epoch, self._timers, self._may_write)

    def _may_write(self) -> bool:
        """Return whether decisions may have records. If this broker no longer leads, the append reports that."""
        return not self.log.is_leader or self.log.is_writable

    def _loaded(self, error: BaseException | None) -> None:
        if isinstance(error, TemporaryStorageError):
            self._roll_back(error)
            return
        if error is not None:
            self._give_up(error)
            return
        self.state = CoordinatorState.ACTIVE
        took_ms = self._environment.clock.monotonic_ms() - self._load_began_ms
        self._environment.loads.loaded(took_ms, self._unreadable.count)
        self._unreadable.loaded()
        self._end_offset = self.log.log_end_offset
        try:
            decision = self.shard.start(self._environment.clock.now_ms())
        except Exception as unable:  # loading it again would fail in the same way
            self._give_up(unable)
        else:
            self._take(decision)
            if self.after_load is not None and self.after_load not in self._put_off:
                self._put_off.append(self.after_load)
            self._work_off()

    def _give_up(self, error: BaseException) -> None:
        """Stop until leadership moves. Another broker may be able to load the log."""
        is_damage = isinstance(error, CorruptBatchError | StorageError)
        where = f"partition {self.partition} of an internal topic, read up to offset {self._loader.offset},"
        _log.error("%s cannot be loaded: %s", where, error, exc_info=None if is_damage else error)
        self._timers.cancel_all()
        self.shard.stop()
        self._become_stopped()

    def _roll_back(self, error: BaseException) -> None:
        """Drop state that the log does not have: load a new shard from the log."""
        is_temporary = isinstance(error, TemporaryStorageError)  # the directory has logged it
        if not is_temporary:
            trace = None if isinstance(error, ReplicationError) else error
            _log.warning("partition %d of an internal topic is loaded anew: %s", self.partition, error, exc_info=trace)
        self._release(ErrorCode.NOT_COORDINATOR)
        self._load(RETRY_MS if is_temporary else 0)

    def _release(self, error: ErrorCode) -> None:
        self._loader.cancel()
        self._timers.cancel_all()
        gathered, self._gathered = self._gathered, PendingBatch()
        refuse(gathered.effects, error)
        for completion in self.shard.stop():
            completion.refuse(error)
