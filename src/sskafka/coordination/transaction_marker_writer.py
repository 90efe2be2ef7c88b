"""Writing the end of a transaction into a partition that this broker leads.

The marker of a data partition is a control batch in its log. A partition of `__consumer_offsets` has a machine on top
of its log: the coordinator of groups writes the marker there, so that the offsets which wait for it count, or vanish.
Whoever asked is told once the marker is committed.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.model.clock import Clock
from sskafka.model.coordination import Asker, TransactionalProducer
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.replication.partition import ACKS_ALL, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.transactions.metadata import BUMPING_VERSION

COMMIT_TIMEOUT_MS = 15_000

Written = Callable[[ErrorCode], None]


class Marker(NamedTuple):
    producer: TransactionalProducer
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int

    def batch(self, now_ms: int) -> bytearray:
        end = EndTransactionMarker(ControlType.COMMIT if self.is_commit else ControlType.ABORT, self.coordinator_epoch)
        return build_batch(
            [NewRecord(control_key(end.type), end.value(), timestamp=now_ms)],
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            transactional=True,
            control=True,
        )


class GroupTransactions(Protocol):
    """The coordinator of groups, as far as transactions reach it."""

    def end_transaction(
        self,
        partition: int,
        producer: TransactionalProducer,
        coordinator_epoch: int,
        is_committed: bool,
        asker: Asker,
    ) -> None: ...


class MarkerWriter:
    """`code_of` gives the protocol's code for what the layers below raise."""

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupTransactions,
        clock: Clock,
        timers: TimerWheel,
        code_of: Callable[[Exception], ErrorCode],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._timers = timers
        self._code_of = code_of

    def write(self, marker: Marker, target: TopicPartition, written: Written) -> None:
        try:
            partition = self._replicas.find(*target)
            if marker.transaction_version >= BUMPING_VERSION:
                partition.log.producers.check_bumped_marker(*marker.producer)
            if target.topic == CONSUMER_OFFSETS:
                self._end_offsets(marker, target.partition, written)
            else:
                self._append(marker, partition, written)
        except Exception as error:  # each partition fails for itself
            written(self._code_of(error))

    def _end_offsets(self, marker: Marker, index: int, written: Written) -> None:
        asker = _Told(written)
        self._groups.end_transaction(index, marker.producer, marker.coordinator_epoch, marker.is_commit, asker)

    def _append(self, marker: Marker, partition: Partition, written: Written) -> None:
        now_ms = self._clock.now_ms()
        batch = memoryview(marker.batch(now_ms))
        end_offset = partition.append(batch, ACKS_ALL, now_ms, from_client=False).last_offset + 1
        if partition.high_watermark >= end_offset:
            written(ErrorCode.NONE)
            return
        waiting = _Waiting(written)
        timer = self._timers.schedule(COMMIT_TIMEOUT_MS, lambda: waiting.end(ErrorCode.REQUEST_TIMED_OUT))

        def released(outcome: ErrorCode) -> None:
            timer.cancel()
            waiting.end(outcome)

        partition.committed_waiters.add(end_offset, released)


class _Waiting:
    """Is told once, whatever comes first."""

    __slots__ = ("_written",)

    def __init__(self, written: Written) -> None:
        self._written: Written | None = written

    def end(self, outcome: ErrorCode) -> None:
        written, self._written = self._written, None
        if written is not None:
            written(outcome)


class _Told:
    __slots__ = ("_written",)

    def __init__(self, written: Written) -> None:
        self._written = written

    def answer(self, response: None) -> None:
        self._written(ErrorCode.NONE)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._written(error)
