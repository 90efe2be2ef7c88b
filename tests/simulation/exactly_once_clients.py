"""Transactional producers of both versions of the protocol, which do nothing wrong.

They retry what clients retry, for as long as it takes, and begin the next transaction as soon as EndTxn is answered.
Any other error that they hear is a refusal: `Refused`. It is justified only when the producer was replaced by a newer
one of its transactional id, or left its transaction open for longer than its timeout.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import NamedTuple

from exactly_once_cluster import OFFSETS, ORDERS, PARTITIONS, STATE, Broker, Cluster, Connection, LostError, request_of
from logs import batch

from sskafka.coordination.internal_topics import partition_of
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from sskafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from sskafka.wire.messages.end_txn import EndTxnRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

COORDINATOR_AWAY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
RETRIED_BY_PRODUCE = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
CONSUMED = TopicPartition(ORDERS, 0)
PATIENT_MS = 60_000


class Versions(NamedTuple):
    produce: int
    offset_commit: int
    end: int
    bumps_epochs: bool


FIRST = Versions(produce=11, offset_commit=4, end=4, bumps_epochs=False)
SECOND = Versions(produce=12, offset_commit=5, end=5, bumps_epochs=True)

Attempt = Callable[[], Awaitable[ErrorCode]]


class Refused(Exception):  # noqa: N818
    """A request was answered with an error that the client cannot retry."""


class Died(Exception):  # noqa: N818
    """The process has ended in the midst of it."""


class Transaction:
    """The records that a producer wrote, and the outcome that it received."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.attempted: set[tuple[TopicPartition, bytes]] = set()
        self.acknowledged: set[tuple[TopicPartition, bytes]] = set()
        self.has_offset = False
        self.outcome: bool | None = None


class History:
    """Of all producers of one transactional id, whose group is named like it."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.transactions: list[Transaction] = []
        self.asked: list[Producer] = []
        """Whose InitProducerId reached a coordinator, in order, and again when it was answered."""

    def begin(self) -> Transaction:
        number = len(self.transactions) + 1
        self.transactions.append(Transaction(f"{self.transactional_id}/{number}", number))
        return self.transactions[-1]


class Producer:
    def __init__(self, cluster: Cluster, history: History, versions: Versions, random: Random) -> None:
        self._cluster = cluster
        self._history = history
        self._id = history.transactional_id
        self._versions = versions
        self._random = random
        self._is_slow = random.random() < 0.1
        self._timeout_ms = 400 if self._is_slow else PATIENT_MS
        self._identity = (-1, -1)
        self._sequences: Counter[TopicPartition] = Counter()
        self._connections: dict[int, Connection] = {}
        self._began_s = 0.0

    @property
    def is_replaced(self) -> bool:
        """Another producer of the same id was initialized after this one had asked for that."""
        asked = self._history.asked
        return self in asked and any(other is not self for other in asked[asked.index(self) :])

    @property
    def has_overslept(self) -> bool:
        return (asyncio.get_running_loop().time() - self._began_s) * 1000 > self._timeout_ms

    # -- its life

    async def live(self, is_over: Callable[[], bool]) -> None:
        """Returns when it is over; raises Died, or Refused where that is justified."""
        try:
            await self.initialize()
            while not is_over():
                await self._transact()
        except Refused as error:
            if not self.is_replaced and not self.has_overslept:
                raise AssertionError(f"{self._id} {self._identity} is refused: {error}") from None
            raise

    async def _transact(self) -> None:
        self._began_s = asyncio.get_running_loop().time()
        random, transaction = self._random, self._history.begin()
        steps: list[Callable[[Transaction], Awaitable[None]]] = [self._write] * random.randint(0, 3)
        if random.random() < 0.5:
            steps.append(self._commit_offset)
        random.shuffle(steps)
        for step in steps:
            self._maybe_die()
            if self._is_slow and random.random() < 0.2:
                await asyncio.sleep(random.uniform(0, 1))
            await step(transaction)
        if random.random() < 0.05:
            await self._give_up_writing(transaction)
        elif steps:
            await self._end(transaction, commit=random.random() < 0.8)
        else:
            await asyncio.sleep(0.005)

    def _maybe_die(self) -> None:
        if self._cluster.weather.happens(0.01):
            raise Died

    # -- requests

    async def initialize(self, *, recovers: bool = False) -> None:
        """`recovers`: it goes on under its own identity, with a newer epoch."""
        expected = self._identity if recovers else (-1, -1)
        request = InitProducerIdRequest(self._id, self._timeout_ms, *expected)

        async def initialized(broker: Broker) -> ErrorCode:
            self._history.asked.append(self)
            response = await broker.transactions.initialize(request, request_of(5))
            self._history.asked.append(self)
            if response.error_code == 0:
                answers.append((response.producer_id, response.producer_epoch))
            return ErrorCode(response.error_code)

        answers: list[tuple[int, int]] = []
        # One that names no identity and arrives late would fence the very producer that sent it: nobody can tell.
        attempt = self._at_coordinator(initialized, may_be_late=recovers)
        await self._until_done("InitProducerId", attempt, COORDINATOR_AWAY)
        self._take(answers[-1])

    def _take(self, identity: tuple[int, int]) -> None:
        if identity != self._identity:
            self._identity = identity
            self._sequences.clear()

    async def _write(self, transaction: Transaction) -> None:
        """One to three batches to a partition, sent one behind the other without waiting.

        Where epochs stay, leaders take any sequence of a producer that they do not know: if its first batch is lost,
        the second is taken for the first. So the first of all goes alone."""
        target = TopicPartition(ORDERS, self._random.randrange(PARTITIONS[ORDERS]))
        if not self._versions.bumps_epochs:
            await self._add_partition(target)
        may_pipeline = self._versions.bumps_epochs or self._sequences[target] > 0
        count = self._random.choice((1, 1, 1, 3)) if may_pipeline else 1
        batches = [self._next_batch(transaction, target) for _ in range(count)]
        connection = self._connection_to(self._cluster.leader_of(target))
        outcomes = await asyncio.gather(*(self._try_write(connection, target, data) for _, data in batches))
        must_wait = False
        for (value, data), outcome in zip(batches, outcomes, strict=True):
            if outcome is not ErrorCode.NONE:
                if outcome not in self._retried_by_produce(behind_another=must_wait):
                    raise Refused(f"Produce: {outcome.name}")
                must_wait = True
                await self._until_done("Produce", self._at_leader(target, data), self._retried_by_produce())
            transaction.acknowledged.add((target, value))

    def _next_batch(self, transaction: Transaction, target: TopicPartition) -> tuple[bytes, bytes]:
        value = f"{transaction.name}#{len(transaction.attempted)}".encode()
        transaction.attempted.add((target, value))
        producer_id, epoch = self._identity
        sequence = self._sequences[target]
        self._sequences[target] += 1
        fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        return value, bytes(batch(value, transactional=True, **fields))

    def _retried_by_produce(self, *, behind_another: bool = False) -> set[ErrorCode]:
        """A batch behind one that was not written comes too early."""
        retried = set(RETRIED_BY_PRODUCE)
        if self._versions.bumps_epochs:
            retried.add(ErrorCode.CONCURRENT_TRANSACTIONS)
        if behind_another:
            retried.add(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return retried

    def _at_leader(self, target: TopicPartition, data: bytes) -> Attempt:
        async def attempt() -> ErrorCode:
            return await self._try_write(self._connection_to(self._cluster.leader_of(target)), target, data)

        return attempt

    async def _try_write(self, connection: Connection, target: TopicPartition, data: bytes) -> ErrorCode:
        async def produced(broker: Broker) -> ErrorCode:
            return await broker.produce(connection, self._id, self._versions.produce, target, bytearray(data))

        try:
            return await connection.ask(produced)
        except LostError:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # as a client takes a connection that ended

    async def _give_up_writing(self, transaction: Transaction) -> None:
        """Nobody waits for the answer: the transaction is aborted, and a batch may or may not have been written."""
        target = TopicPartition(ORDERS, self._random.randrange(PARTITIONS[ORDERS]))
        if not self._versions.bumps_epochs:
            await self._add_partition(target)
        _, data = self._next_batch(transaction, target)
        lost = asyncio.ensure_future(self._at_leader(target, data)())
        await asyncio.sleep(self._random.uniform(0, 0.01))
        await self._end(transaction, commit=False)
        if not self._versions.bumps_epochs:
            await lost  # its connection has ended before the epoch grows
            await self.initialize(recovers=True)

    async def _add_partition(self, target: TopicPartition) -> None:
        topics = [AddPartitionsToTxnTopic(target.topic, [target.partition])]
        request = AddPartitionsToTxnRequest([], self._id, *self._identity, topics)

        async def added(broker: Broker) -> ErrorCode:
            response = await broker.transactions.add_partitions(request, request_of(3))
            (topic,) = response.results_by_topic_v3_and_below
            return ErrorCode(topic.results_by_partition[0].partition_error_code)

        retried = COORDINATOR_AWAY | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await self._until_done("AddPartitionsToTxn", self._at_coordinator(added), retried)

    async def _commit_offset(self, transaction: Transaction) -> None:
        """The number of the transaction, which identifies the producer that committed the offset."""
        if not self._versions.bumps_epochs:
            await self._add_offsets()
        topics = [
            TxnOffsetCommitRequestTopic(
                CONSUMED.topic, [TxnOffsetCommitRequestPartition(CONSUMED.partition, transaction.number)]
            )
        ]
        request = TxnOffsetCommitRequest(self._id, self._id, *self._identity, topics=topics)

        async def committed(broker: Broker) -> ErrorCode:
            response = await broker.offsets.commit(request, request_of(self._versions.offset_commit))
            return ErrorCode(response.topics[0].partitions[0].error_code)

        async def attempt() -> ErrorCode:
            self._cluster.create_topic(OFFSETS)  # as FindCoordinator does
            keeper = TopicPartition(OFFSETS, partition_of(self._id, PARTITIONS[OFFSETS]))
            return await self._connection_to(self._cluster.leader_of(keeper)).ask(committed)

        retried = COORDINATOR_AWAY - {ErrorCode.CONCURRENT_TRANSACTIONS} | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if self._versions.bumps_epochs:
            retried.add(ErrorCode.CONCURRENT_TRANSACTIONS)
        await self._until_done("TxnOffsetCommit", attempt, retried)
        transaction.has_offset = True

    async def _add_offsets(self) -> None:
        request = AddOffsetsToTxnRequest(self._id, *self._identity, self._id)

        async def added(broker: Broker) -> ErrorCode:
            return ErrorCode((await broker.transactions.add_offsets(request, request_of(3))).error_code)

        await self._until_done("AddOffsetsToTxn", self._at_coordinator(added), COORDINATOR_AWAY)

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        request = EndTxnRequest(self._id, *self._identity, commit)

        async def ended(broker: Broker) -> ErrorCode:
            response = await broker.transactions.end(request, request_of(self._versions.end))
            if response.error_code == 0:
                answers.append((response.producer_id, response.producer_epoch))
            return ErrorCode(response.error_code)

        answers: list[tuple[int, int]] = []
        if self._cluster.weather.happens(0.02):  # it dies, and nobody hears the answer
            asyncio.ensure_future(self._unheard(self._at_coordinator(ended)))  # noqa: RUF006
            raise Died
        await self._until_done("EndTxn", self._at_coordinator(ended), COORDINATOR_AWAY)
        transaction.outcome = commit
        if self._versions.bumps_epochs:
            self._take(answers[-1])

    async def _unheard(self, attempt: Attempt) -> None:
        try:
            await attempt()
        except LostError:
            return

    # -- the way to brokers

    async def _until_done(self, what: str, attempt: Attempt, retried: set[ErrorCode]) -> None:
        while True:
            try:
                error = await attempt()
            except LostError:
                error = ErrorCode.NOT_COORDINATOR if ErrorCode.NOT_COORDINATOR in retried else next(iter(retried))
            if error is ErrorCode.NONE:
                return
            if error not in retried:
                raise Refused(f"{what}: {error.name}")
            self._maybe_die()
            await asyncio.sleep(self._random.uniform(0, 0.02))

    def _at_coordinator(self, work: Callable[[Broker], Awaitable[ErrorCode]], *, may_be_late: bool = True) -> Attempt:
        async def attempt() -> ErrorCode:
            keeper = TopicPartition(STATE, partition_of(self._id, PARTITIONS[STATE]))
            connection = self._connection_to(self._cluster.leader_of(keeper))
            return await connection.ask(work, may_be_late=may_be_late)

        return attempt

    def _connection_to(self, broker_id: int) -> Connection:
        known = self._connections.get(broker_id)
        if known is None or known.closed:
            known = self._connections[broker_id] = Connection(self._cluster, broker_id)
        return known
