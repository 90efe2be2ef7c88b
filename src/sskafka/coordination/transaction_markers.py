"""Bringing the outcome of a prepared transaction to every partition in it.

    prepared -> by leader of each partition -> this broker: written at once
                                            -> another one: one WriteTxnMarkers under way, the rest gathers behind it
    all partitions done -> complete

A partition whose leader moves, is away, or lacks replicas is tried again, for as long as this broker coordinates. A
partition that was deleted needs no marker. A coordinator that was replaced stops when the leaders say so.
"""

import logging
from collections.abc import Callable, Iterable

from sskafka.coordination.broker_links import BrokerLinks
from sskafka.coordination.transaction_marker_writer import Marker, MarkerWriter
from sskafka.metadata.image import ClusterImage
from sskafka.model.coordination import TransactionalProducer
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.transactions.machine import Prepared, TransactionMachine
from sskafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_log = logging.getLogger(__name__)

RETRY_MS = 50
MARKERS_IN_REQUEST_MAX = 500

Completed = Callable[[TransactionMachine, Prepared], None]


class Delivery:
    """One transaction's markers on their way."""

    __slots__ = ("machine", "marker", "prepared", "waiting")

    def __init__(self, machine: TransactionMachine, prepared: Prepared) -> None:
        transaction = prepared.transaction
        self.machine = machine
        self.prepared = prepared
        self.waiting = set(transaction.partitions)
        self.marker = Marker(
            TransactionalProducer(*transaction.identity),
            prepared.is_commit,
            prepared.coordinator_epoch,
            transaction.client_version,
        )

    @property
    def is_wanted(self) -> bool:
        return self.machine.is_in_charge


class MarkerSender:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], ClusterImage],
        writer: MarkerWriter,
        links: BrokerLinks,
        timers: TimerWheel,
        completed: Completed,
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._writer = writer
        self._links = links
        self._timers = timers
        self._completed = completed
        self._queues: dict[int, _Queue] = {}

    def send(self, machine: TransactionMachine, prepared: Prepared) -> None:
        delivery = Delivery(machine, prepared)
        if delivery.waiting:
            self._route(delivery, sorted(delivery.waiting))
        else:
            self._completed(machine, prepared)

    def _route(self, delivery: Delivery, partitions: Iterable[TopicPartition]) -> None:
        if not delivery.is_wanted:
            return
        image, unled = self._image(), []
        for target in partitions:
            state = image.partition(*target)
            if state is None:
                self._done(delivery, target)  # deleted, with all that was written to it
            elif state.leader < 0:
                unled.append(target)
            elif state.leader == self._broker_id:
                self._write_here(delivery, target)
            else:
                self._queue_for(state.leader).add(delivery, target)
        if unled:
            self._retry_later(delivery, unled)

    def _queue_for(self, broker_id: int) -> "_Queue":
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(broker_id, self._links, self.partition_answered)
        return queue

    def _write_here(self, delivery: Delivery, target: TopicPartition) -> None:
        self._writer.write(delivery.marker, target, lambda error: self.partition_answered(delivery, target, error))

    def partition_answered(self, delivery: Delivery, target: TopicPartition, error: ErrorCode) -> None:
        match error:
            case ErrorCode.NONE:
                self._done(delivery, target)
            case ErrorCode.INVALID_PRODUCER_EPOCH:
                # The producer has gone on to a newer epoch there, which it could only with this transaction ended.
                _log.warning("%s has ended %s already", target, delivery.prepared.transaction.transactional_id)
                self._done(delivery, target)
            case ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                _log.info("another broker coordinates %s", delivery.prepared.transaction.transactional_id)
                delivery.machine.markers_failed(delivery.prepared)
            case _:
                self._retry_later(delivery, [target])

    def _retry_later(self, delivery: Delivery, targets: list[TopicPartition]) -> None:
        self._timers.schedule(RETRY_MS, lambda: self._route(delivery, targets))

    def _done(self, delivery: Delivery, target: TopicPartition) -> None:
        delivery.waiting.discard(target)
        if not delivery.waiting and delivery.is_wanted:
            self._completed(delivery.machine, delivery.prepared)


Answered = Callable[[Delivery, TopicPartition, ErrorCode], None]


class _Queue:
    """Markers for one other broker: one request under way, the rest gathers behind it."""

    def __init__(self, broker_id: int, links: BrokerLinks, answered: Answered) -> None:
        self._broker_id = broker_id
        self._links = links
        self._answered = answered
        self._gathered: dict[Delivery, list[TopicPartition]] = {}
        self._is_busy = False

    def add(self, delivery: Delivery, target: TopicPartition) -> None:
        self._gathered.setdefault(delivery, []).append(target)
        if not self._is_busy:
            self._is_busy = True
            self._links.soon(self._send)

    def _send(self) -> None:
        deliveries = [delivery for delivery in self._gathered if delivery.is_wanted][:MARKERS_IN_REQUEST_MAX]
        sent = {delivery: self._gathered[delivery] for delivery in deliveries}
        for delivery in [known for known in self._gathered if known in sent or not known.is_wanted]:
            del self._gathered[delivery]
        self._is_busy = bool(sent)
        if not sent:
            return
        request = WriteTxnMarkersRequest([_marker(delivery, targets) for delivery, targets in sent.items()])
        link = self._links.to(self._broker_id)
        link.ask(request, WriteTxnMarkersResponse, lambda outcome: self._received(sent, outcome))

    def _received(
        self, sent: dict[Delivery, list[TopicPartition]], outcome: WriteTxnMarkersResponse | Exception
    ) -> None:
        errors = {} if isinstance(outcome, Exception) else _errors(outcome)
        for delivery, targets in sent.items():
            producer_id = delivery.marker.producer.producer_id
            for target in targets:
                error = errors.get((producer_id, *target), ErrorCode.NETWORK_EXCEPTION)
                self._answered(delivery, target, error)
        self._send()


def _marker(delivery: Delivery, targets: list[TopicPartition]) -> WritableTxnMarker:
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
