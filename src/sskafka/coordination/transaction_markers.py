"""Transaction markers: send the outcome of a prepared transaction to all of its partitions, and append it there.

    SendMarkers -> by leader of each partition -> this broker: `MarkerWriter` appends, some in each turn of the loop
                                               -> another one: one WriteTxnMarkers in flight, further markers wait
    all partitions done -> `completed`

Markers are sent again if the leader of a partition moves, is down or lacks in-sync replicas, as long as this broker
coordinates the transaction. A deleted partition needs no marker. A coordinator that was replaced stops when a leader
responds TRANSACTION_COORDINATOR_FENCED.

The marker of a data partition is a control batch in its log. In a partition of `__consumer_offsets` the group
coordinator appends the marker, because the pending offsets of the transaction take effect, or are dropped, with it.
Completions are called when the marker is committed.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from sskafka.client.broker_link import BrokerLinks, CallLater, Link, RequestQueue
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.metadata.image import ClusterImage
from sskafka.model.coordination import CallbackCompletion, Completion
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.replication.partition import ACKS_ALL, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.delayed_operation import DelayedCallback
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.transactions.metadata import BUMPING_VERSION
from sskafka.transactions.shard import SendMarkers
from sskafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_log = logging.getLogger(__name__)

COMMIT_TIMEOUT_MS = 15_000
RETRY_MS = 50
MARKERS_IN_REQUEST_MAX = 500
ROUTED_PER_TURN = 50
"""Partitions whose markers are written here, or queued for other brokers, in one turn. That takes up to 5 ms."""

Written = Callable[[ErrorCode], None]


class Marker(NamedTuple):
    producer: ProducerIdAndEpoch
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
    """The group coordinator, as far as transactions use it."""

    def end_transaction(
        self,
        partition: int,
        producer: ProducerIdAndEpoch,
        coordinator_epoch: int,
        is_committed: bool,
        completion: Completion,
    ) -> None: ...


class MarkerWriter:
    """`code_of` maps errors of the layers below to error codes."""

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
                partition.producers.check_bumped_marker(*marker.producer)
            if target.topic == CONSUMER_OFFSETS:
                self._end_offsets(marker, target.partition, written)
            else:
                self._append(marker, partition, written)
        except Exception as error:  # a partition that fails does not affect the others
            written(self._code_of(error))

    def _end_offsets(self, marker: Marker, index: int, written: Written) -> None:
        completion = CallbackCompletion(lambda _: written(ErrorCode.NONE), lambda error, _: written(error))
        self._groups.end_transaction(index, marker.producer, marker.coordinator_epoch, marker.is_commit, completion)

    def _append(self, marker: Marker, partition: Partition, written: Written) -> None:
        now_ms = self._clock.now_ms()
        batch = memoryview(marker.batch(now_ms))
        end_offset = partition.append(batch, ACKS_ALL, now_ms, from_client=False).last_offset + 1
        if partition.high_watermark >= end_offset:
            written(ErrorCode.NONE)
            return
        delayed = DelayedCallback(written)
        delayed.begin(1, self._timers, COMMIT_TIMEOUT_MS)
        delayed.wait_for(0, partition.committed_waiters, end_offset, partition)


class PendingMarkers:
    """Markers of one transaction that are being sent. `is_wanted`: this broker still coordinates the transaction."""

    __slots__ = ("completed", "is_wanted", "marker", "markers", "waiting")

    def __init__(
        self, markers: SendMarkers, is_wanted: Callable[[], bool], completed: Callable[[SendMarkers], None]
    ) -> None:
        transaction = markers.transaction
        self.markers = markers
        self.is_wanted = is_wanted
        self.completed = completed
        self.waiting = set(transaction.partitions)
        self.marker = Marker(
            transaction.identity,
            markers.is_commit,
            markers.coordinator_epoch,
            transaction.client_version,
        )

    @property
    def transactional_id(self) -> str:
        return self.markers.transaction.transactional_id


Routed: TypeAlias = tuple[PendingMarkers, TopicPartition]


class MarkerSender:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], ClusterImage],
        writer: MarkerWriter,
        links: BrokerLinks[Link],
        call_later: CallLater,
        timers: TimerWheel,
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._writer = writer
        self._links = links
        self._call_later = call_later
        self._timers = timers
        self._queues: dict[int, _Queue] = {}
        self._under_way: dict[str, PendingMarkers] = {}
        self._to_route: deque[Routed] = deque()
        self._is_routing = False

    @property
    def under_way_count(self) -> int:
        return sum(delivery.is_wanted() for delivery in self._under_way.values())

    def send(
        self, markers: SendMarkers, is_wanted: Callable[[], bool], completed: Callable[[SendMarkers], None]
    ) -> None:
        """Send markers, and call `completed` when every partition has one. Stop when `is_wanted` returns False.

        Do nothing if the same markers are being sent already."""
        transactional_id = markers.transaction.transactional_id
        known = self._under_way.get(transactional_id)
        if known is not None and known.markers == markers:
            return
        delivery = self._under_way[transactional_id] = PendingMarkers(markers, is_wanted, completed)
        if delivery.waiting:
            self._route(delivery, sorted(delivery.waiting))
        else:
            self._complete(delivery)

    def _is_wanted(self, delivery: PendingMarkers) -> bool:
        is_newest = self._under_way.get(delivery.transactional_id) is delivery
        if is_newest and delivery.is_wanted():
            return True
        self._give_up(delivery)
        return False

    def _give_up(self, delivery: PendingMarkers) -> None:
        if self._under_way.get(delivery.transactional_id) is delivery:
            del self._under_way[delivery.transactional_id]

    def _route(self, delivery: PendingMarkers, partitions: Iterable[TopicPartition]) -> None:
        self._to_route += ((delivery, target) for target in partitions)
        if not self._is_routing:
            self._route_some()

    def _route_some(self) -> None:
        """Route markers of as many partitions as fit into a turn. A transaction may have thousands."""
        self._is_routing = True
        unled: dict[PendingMarkers, list[TopicPartition]] = {}
        for _ in range(min(ROUTED_PER_TURN, len(self._to_route))):
            delivery, target = self._to_route.popleft()
            if self._is_wanted(delivery) and not self._is_routed(delivery, target):
                unled.setdefault(delivery, []).append(target)
        for delivery, targets in unled.items():
            self._retry_later(delivery, targets)
        self._is_routing = bool(self._to_route)
        if self._is_routing:
            self._call_later(0, self._route_some)

    def _is_routed(self, delivery: PendingMarkers, target: TopicPartition) -> bool:
        """Return False if the partition has no leader."""
        state = self._image().partition(*target)
        if state is None:
            self._done(delivery, target)  # deleted, with all of its records
        elif state.leader < 0:
            return False
        elif state.leader == self._broker_id:
            self._write_here(delivery, target)
        else:
            self._queue_for(state.leader).add((delivery, target))
        return True

    def _queue_for(self, broker_id: int) -> "_Queue":
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(
                self._links.to(broker_id), self._call_later, self.partition_answered, self._is_wanted
            )
        return queue

    def _write_here(self, delivery: PendingMarkers, target: TopicPartition) -> None:
        self._writer.write(delivery.marker, target, lambda error: self.partition_answered(delivery, target, error))

    def partition_answered(self, delivery: PendingMarkers, target: TopicPartition, error: ErrorCode) -> None:
        match error:
            case ErrorCode.NONE:
                self._done(delivery, target)
            case ErrorCode.INVALID_PRODUCER_EPOCH:
                # The producer has a newer epoch there, which it can only have after the end of this transaction.
                _log.warning("%s has ended %s already", target, delivery.transactional_id)
                self._done(delivery, target)
            case ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                _log.info("another broker coordinates %s", delivery.transactional_id)
                self._give_up(delivery)
            case _:
                self._retry_later(delivery, [target])

    def _retry_later(self, delivery: PendingMarkers, targets: list[TopicPartition]) -> None:
        self._timers.schedule(RETRY_MS, lambda: self._route(delivery, targets))

    def _done(self, delivery: PendingMarkers, target: TopicPartition) -> None:
        delivery.waiting.discard(target)
        if not delivery.waiting and self._is_wanted(delivery):
            self._complete(delivery)

    def _complete(self, delivery: PendingMarkers) -> None:
        self._give_up(delivery)
        delivery.completed(delivery.markers)


class _Queue(RequestQueue[Routed, WriteTxnMarkersResponse]):
    """Markers for the partitions that one other broker leads."""

    def __init__(
        self,
        link: Link,
        call_later: CallLater,
        answered: Callable[[PendingMarkers, TopicPartition, ErrorCode], None],
        is_wanted: Callable[[PendingMarkers], bool],
    ) -> None:
        super().__init__(link, call_later, WriteTxnMarkersResponse)
        self._partition_answered = answered
        self._is_wanted = is_wanted

    def _select(self, waiting: Sequence[Routed]) -> tuple[Sequence[Routed], Sequence[Routed]]:
        deliveries = [delivery for delivery in _targets(waiting) if self._is_wanted(delivery)]
        sent, later = set(deliveries[:MARKERS_IN_REQUEST_MAX]), set(deliveries[MARKERS_IN_REQUEST_MAX:])
        return [item for item in waiting if item[0] in sent], [item for item in waiting if item[0] in later]

    def _request(self, items: Sequence[Routed]) -> WriteTxnMarkersRequest:
        return WriteTxnMarkersRequest([_marker(delivery, targets) for delivery, targets in _targets(items).items()])

    def _answered(self, items: Sequence[Routed], outcome: WriteTxnMarkersResponse | Exception) -> float:
        errors = {} if isinstance(outcome, Exception) else _errors(outcome)
        for delivery, target in items:
            error = errors.get((delivery.marker.producer.producer_id, *target), ErrorCode.NETWORK_EXCEPTION)
            self._partition_answered(delivery, target, error)
        return 0


def _targets(items: Sequence[Routed]) -> dict[PendingMarkers, list[TopicPartition]]:
    targets: dict[PendingMarkers, list[TopicPartition]] = {}
    for delivery, target in items:
        targets.setdefault(delivery, []).append(target)
    return targets


def _marker(delivery: PendingMarkers, targets: list[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for topic, index in targets:
        topics.setdefault(topic, WritableTxnMarkerTopic(topic)).partition_indexes.append(index)
    producer, is_commit, coordinator_epoch, version = delivery.marker
    return WritableTxnMarker(*producer, is_commit, list(topics.values()), coordinator_epoch, version)


def _errors(response: WriteTxnMarkersResponse) -> dict[tuple[int, str, int], ErrorCode]:
    return {
        (marker.producer_id, topic.name, result.partition_index): ErrorCode(result.error_code)
        for marker in response.markers
        for topic in marker.topics
        for result in topic.partitions
    }
