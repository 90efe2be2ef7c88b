"""Produce with a transactional id: the first batch of a transaction in a partition waits for the coordinator.

    the transaction is open in all partitions    the batches are appended at once, as in any other request
    it is not open in some of them               the request is parked until the coordinator has confirmed these

Up to version 11, clients have added the partitions themselves, and the coordinator only verifies them; from version 12
on, this request adds them. Requests of one transactional id are carried out in order, so all requests after a parked
one wait for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sskafka.coordination.transaction_verifier import Outcome, Question, TransactionVerifier
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS, ProducerIdAndEpoch, TopicPartition
from sskafka.records.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader, read_header
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.handlers.batch_inspection import NOT_INSPECTED, Inspections, copied
from sskafka.servers.kafka.handlers.transaction_refusals import refusal_for_client
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.storage.transactions.verification import Verification
from sskafka.wire.produce import ProduceRequestView, Topic

ADDS_FROM = 12
ABORTABLE_KNOWN_FROM = 11

Refusals = dict[tuple[Topic, int], ErrorCode]


class RetryPauses(NamedTuple):
    """Pauses between retries while the previous transaction is being completed, so that the client need not retry."""

    pause_ms: int
    longest_ms: int


class _Unverified(NamedTuple):
    topic: Topic
    partition: Partition
    header: BatchHeader


class Waiting:
    """A request whose batches are not appended yet."""

    __slots__ = ("inspections", "produce", "request", "slot", "verified", "waited_ms")

    def __init__(
        self,
        request: Request,
        slot: ResponseSlot,
        produce: ProduceRequestView,
        inspections: Inspections,
        verified: "asyncio.Future[Refusals] | None" = None,
    ) -> None:
        """`verified`: the request is a part of a longer one, whose handler waits for this and appends the batches."""
        self.request = request
        self.slot = slot
        self.produce = produce
        self.inspections = inspections
        self.verified = verified
        self.waited_ms = 0


CarryOut = Callable[[Waiting, Refusals], None]


class TransactionalProduce:
    """`carry_out` appends the partitions that were not refused and completes the response slot."""

    def __init__(
        self,
        replicas: ReplicaManager,
        verifier: TransactionVerifier,
        timers: TimerWheel,
        pauses: RetryPauses,
        carry_out: CarryOut,
    ) -> None:
        self._replicas = replicas
        self._verifier = verifier
        self._timers = timers
        self._pauses = pauses
        self._carry_out = carry_out
        self._queues: dict[str, deque[Waiting]] = {}

    def must_wait(
        self,
        request: Request,
        produce: ProduceRequestView,
        inspections: Inspections = NOT_INSPECTED,
        slot: ResponseSlot | None = None,
    ) -> bool:
        """Return True if the request was parked, False if it can be carried out now. `slot`: it is parked already."""
        if not self._is_to_wait(request, produce):
            return False
        self._put(Waiting(request, slot or request.park(), copied(produce), inspections))
        return True

    def verify(self, request: Request, produce: ProduceRequestView) -> "asyncio.Future[Refusals] | None":
        """Verify a part of a parked request. Return the partitions that must not be appended; None: nothing to ask."""
        if not self._is_to_wait(request, produce):
            return None
        verified: asyncio.Future[Refusals] = asyncio.get_running_loop().create_future()
        self._put(Waiting(request, request.park(), copied(produce), NOT_INSPECTED, verified))
        return verified

    def _is_to_wait(self, request: Request, produce: ProduceRequestView) -> bool:
        assert produce.transactional_id is not None
        return produce.transactional_id in self._queues or bool(self._unverified(produce, request))

    def _put(self, waiting: Waiting) -> None:
        transactional_id = waiting.produce.transactional_id or ""
        queue = self._queues.get(transactional_id)
        if queue is None:
            self._queues[transactional_id] = deque([waiting])
            self._ask(waiting)
        else:
            queue.append(waiting)

    def _unverified(self, produce: ProduceRequestView, request: Request) -> list[_Unverified]:
        found: list[_Unverified] = []
        adds = request.version >= ADDS_FROM
        for topic, entries in produce.topics:
            for index, records in entries:
                partition = self._replicas.maybe_find(topic, index)
                if partition is None or records is None or len(records) < HEADER_BYTES:
                    continue  # the append will report the error
                header = read_header(records)
                if _opens_transaction(partition, header, adds) and _may_write(request, partition):
                    found.append(_Unverified(topic, partition, header))
        return found

    def _ask(self, waiting: Waiting) -> None:
        produce = waiting.produce
        unverified = self._unverified(produce, waiting.request)
        if len({(header.producer_id, header.producer_epoch) for _, _, header in unverified}) != 1:
            self._continue(waiting, _of_several_producers(unverified))
            return
        adds = waiting.request.version >= ADDS_FROM
        verifications: dict[TopicPartition, tuple[Topic, Partition, Verification]] = {}
        for topic, partition, header in unverified:
            verification = partition.producers.begin_verification(
                header.producer_id, header.producer_epoch, header.base_sequence, supports_epoch_bump=adds
            )
            verifications[partition.topic_partition] = (topic, partition, verification)
        header = unverified[0].header
        self._verifier.ask(
            Question(
                produce.transactional_id or "",
                ProducerIdAndEpoch(header.producer_id, header.producer_epoch),
                list(verifications),
                adds,
                lambda outcome: self._verified(waiting, verifications, outcome),
            )
        )

    def _verified(
        self,
        waiting: Waiting,
        verifications: dict[TopicPartition, tuple[Topic, Partition, Verification]],
        outcome: Outcome,
    ) -> None:
        adds = waiting.request.version >= ADDS_FROM
        if adds and ErrorCode.CONCURRENT_TRANSACTIONS in outcome.values() and self._may_ask_again(waiting):
            waiting.waited_ms += self._pauses.pause_ms
            self._timers.schedule(self._pauses.pause_ms, lambda: self._ask(waiting))
            return
        refusals: Refusals = {}
        has_lapsed = False
        for target, (topic, partition, verification) in verifications.items():
            error = outcome.get(target, ErrorCode.NETWORK_EXCEPTION)
            if error is ErrorCode.NONE:
                has_lapsed |= not partition.producers.verified(verification)
            else:
                refusals[topic, target.partition] = code = _for_client(error, waiting.request.version)
                if not is_retriable(code):
                    partition.producers.give_up_verification(verification)
        if has_lapsed:
            self._ask(waiting)  # a marker arrived in between, perhaps of the previous transaction
        else:
            self._continue(waiting, refusals)

    def _may_ask_again(self, waiting: Waiting) -> bool:
        return waiting.waited_ms + self._pauses.pause_ms <= self._pauses.longest_ms

    def _continue(self, waiting: Waiting, refusals: Refusals) -> None:
        """Carry out the request, then the next request of the same producer."""
        try:
            if waiting.verified is not None:
                waiting.verified.set_result(refusals)
            elif not waiting.request.connection.closed:
                self._carry_out(waiting, refusals)
        finally:
            self._next(waiting.produce.transactional_id or "")

    def _next(self, transactional_id: str) -> None:
        queue = self._queues[transactional_id]
        queue.popleft()
        if queue:
            self._verifier.soon(lambda: self._ask(queue[0]))
        else:
            del self._queues[transactional_id]


def is_retriable(error: ErrorCode) -> bool:
    """Return whether the client will retry the batch, so that later batches must not overtake it."""
    return error in {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS}


def _opens_transaction(partition: Partition, header: BatchHeader, adds: bool) -> bool:
    """Return whether the coordinator must be asked. If the leader adds partitions, it must, verified or not."""
    if not header.attributes & TRANSACTIONAL or header.producer_id < 0 or not partition.is_leader:
        return False
    producers = partition.producers
    if not adds and not producers.verifies_transactions:
        return False
    return not producers.has_open_transaction(header.producer_id, header.producer_epoch)


def _may_write(request: Request, partition: Partition) -> bool:
    """Return whether the client may write. Other partitions must not be added: they would get a marker all the same."""
    name = partition.topic_partition.topic
    return name not in INTERNAL_TOPICS and request.may_see(ResourceType.TOPIC, name, AclOperation.WRITE)


def _of_several_producers(unverified: list[_Unverified]) -> Refusals:
    """Refuse batches of several producers. The coordinator confirms one; a transaction of another would never end."""
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return {(topic, partition.topic_partition.partition): error for topic, partition, _ in unverified}


def _for_client(error: ErrorCode, version: int) -> ErrorCode:
    return refusal_for_client(
        error,
        away=ErrorCode.NOT_ENOUGH_REPLICAS,
        adds=version >= ADDS_FROM,
        knows_abortable=version >= ABORTABLE_KNOWN_FROM,
    )
