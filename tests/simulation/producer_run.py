"""The real producer of the client in virtual time, while requests are slow, lost, refused, or fail after they were
carried out, brokers' metadata is behind, and callers are cancelled.

Invariants
    acknowledged    an acknowledged record is in the log, at the offset of its delivery
    once            no record is in the log twice
    in order        the acknowledged records that one task sent to a partition are in the log in that order
    identified      every batch has a producer id
    all or nothing  read_committed consumers see every record of a committed transaction and none of an aborted one;
                    the group has the offsets of the last committed transaction that sent some
    ended           no record is left in an open transaction
    alive           every call returns, and every delivery is decided
"""

import asyncio
from dataclasses import dataclass, field
from random import Random

from scripted_cluster import Fate, ScriptedCluster
from virtual_loop import run_virtually

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.config import ProducerConfig
from sskafka.client.errors import ClientError
from sskafka.client.producer import ProducerEngine
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.metadata import MetadataRequest
from sskafka.wire.messages.produce import ProduceRequest

PARTITIONS = 3
GROUP = "group"
INPUT = TopicPartition("input", 0)
HANGS_AFTER_S = 3600
PRODUCE_REFUSALS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.MESSAGE_TOO_LARGE,
)
PRODUCE_FAILURES = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
COORDINATOR_ERRORS = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
Failure = (ClientError, KafkaError, TimeoutError)


class GiveUpError(Exception):
    """What the user's block raises."""


class Weather:
    def __init__(self, random: Random, *, has_late_requests: bool) -> None:
        self._random = random
        self._has_late_requests = has_late_requests
        self._trouble = random.choice((0.02, 0.1, 0.3))
        self.is_calm = False

    def happens(self, chance: float) -> bool:
        return not self.is_calm and self._random.random() < chance

    def is_behind(self) -> bool:
        return self.happens(self._trouble)

    def fate(self, request: object) -> Fate:
        slow = 300 if self.happens(self._trouble) else 5
        way = {"to_broker_ms": self._random.uniform(0, slow), "to_client_ms": self._random.uniform(0, slow)}
        if self.happens(self._trouble / 2):
            return Fate(**way, is_request_lost=True, late_ms=self._late_ms(request))
        if self.happens(self._trouble / 2):
            return Fate(**way, is_answer_lost=True)
        if isinstance(request, MetadataRequest) or not self.happens(self._trouble):
            return Fate(**way)
        is_produce = isinstance(request, ProduceRequest)
        if self.happens(0.5):
            return Fate(**way, refusal=self._random.choice(PRODUCE_REFUSALS if is_produce else COORDINATOR_ERRORS))
        return Fate(**way, failure=self._random.choice(PRODUCE_FAILURES if is_produce else COORDINATOR_ERRORS))

    def _late_ms(self, request: object) -> float | None:
        """A late InitProducerId that names no identity would fence the producer that sent it: nobody can tell."""
        may_be_late = self._has_late_requests and not isinstance(request, InitProducerIdRequest)
        return self._random.uniform(0, 500) if may_be_late and self.happens(0.3) else None


@dataclass(eq=False)
class Transaction:
    number: int
    records: set[bytes] = field(default_factory=set)
    """Those for which `send` returned within the block."""
    has_offsets: bool = False
    may_have_offsets: bool = False
    outcome: bool | None = None
    """Whether it was committed or aborted; None if that is unknown."""


class ProducerRun:
    def __init__(self, seed: int, bumps_epochs: bool = True) -> None:
        """In the first version of the protocol, where epochs stay, a late request may enter the next transaction."""
        self.random = Random(seed)
        self.weather = Weather(self.random, has_late_requests=bumps_epochs)
        self.cluster = ScriptedCluster(PARTITIONS, bumps_epochs=bumps_epochs)
        self.cluster.fate = self.weather.fate
        self.cluster.is_behind = self.weather.is_behind
        self.deliveries: dict[bytes, asyncio.Future[Delivery]] = {}
        self.order: dict[tuple[int, int], list[bytes]] = {}
        """Values by task and partition."""
        self.transactions: list[Transaction] = []
        self.strays: list[asyncio.Task[None]] = []
        self.config = ProducerConfig(
            linger_ms=self.random.choice((0, 2)),
            delivery_timeout_ms=self.random.choice((30, 300, 3000)),
            batch_size=self.random.choice((200, 1000)),
            buffer_memory=self.random.choice((700, 5000)),
        )

    def client(self) -> Cluster:
        timeout_ms = self.random.choice((20, 200, 2000))
        return self.cluster.client(
            self.random, retry_backoff_ms=2, retry_backoff_max_ms=50, default_api_timeout_ms=timeout_ms
        )

    async def run(self) -> None:
        try:
            async with asyncio.timeout(HANGS_AFTER_S), self.client() as client:
                forgetting = asyncio.create_task(self.forget_metadata(client))
                await self.live(client)
                await asyncio.gather(*self.strays, return_exceptions=True)
                forgetting.cancel()
        except TimeoutError:
            raise AssertionError("alive: the producer hangs") from None
        except LookupError as error:  # of the sender
            raise AssertionError(f"alive: the producer died of {error!r}") from error
        self.check()

    async def forget_metadata(self, client: Cluster) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0, 0.1))
            client.forget("t")

    async def live(self, client: Cluster) -> None:
        async with ProducerEngine(client, self.config, randomness=self.random) as producer:
            await asyncio.gather(*(self.send_some(producer, task) for task in range(3)))
            self.weather.is_calm = True

    async def send_some(self, producer: ProducerEngine, task: int) -> None:
        for number in range(20):
            value = f"{task}/{number}".encode()
            try:
                async with asyncio.timeout(self.patience_s()):
                    await self.send(producer, value, task)
                    if self.random.random() < 0.3:
                        await self.deliveries[value]
            except Failure:
                pass
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.uniform(0, 0.05))

    def patience_s(self) -> float | None:
        return self.random.uniform(0, 0.1) if self.weather.happens(0.2) else None

    async def send(self, producer: ProducerEngine, value: bytes, task: int = 0) -> None:
        partition = self.random.randrange(PARTITIONS)
        self.deliveries[value] = await producer.send("t", value, partition=partition)
        self.order.setdefault((task, partition), []).append(value)

    # Invariants

    def acknowledged(self) -> dict[bytes, Delivery]:
        decided = {value: future for value, future in self.deliveries.items() if future.done()}
        assert len(decided) == len(self.deliveries), f"alive: undecided {self.deliveries.keys() - decided.keys()}"
        return {
            value: future.result()
            for value, future in decided.items()
            if not future.cancelled() and future.exception() is None
        }

    def check(self) -> None:
        logs = {number: self.cluster.values(number) for number in range(PARTITIONS)}
        stored = [value for values in logs.values() for value in values]
        assert len(stored) == len(set(stored)), "once: a record is in the log twice"
        assert all(header.producer_id >= 0 for header in self.cluster.attempts), "identified: a batch has no id"
        acknowledged = self.acknowledged()
        for value, delivery in acknowledged.items():
            log = logs[delivery.partition.partition]
            assert value in log, f"acknowledged: {value!r} is lost"
            assert delivery.offset in {-1, log.index(value)}, f"acknowledged: {value!r} is not at its offset"
        for (_, number), values in self.order.items():
            offsets = [logs[number].index(value) for value in values if value in acknowledged]
            assert offsets == sorted(offsets), "in order: records of a task were swapped"


class TransactionalRun(ProducerRun):
    async def live(self, client: Cluster) -> None:
        producer = await self.new_producer(client)
        for number in range(1, 13):
            transaction = Transaction(number)
            self.transactions.append(transaction)
            if not await self.transact(producer, transaction):
                await producer.abort()
                producer = await self.new_producer(client)
            await self.check_offsets()
        await producer.abort()
        self.weather.is_calm = True
        await asyncio.sleep(1)
        async with await self.new_producer(client) as last:
            await last.begin()

    async def new_producer(self, client: Cluster) -> TransactionalProducer:
        return TransactionalProducer(client, "id", self.config, randomness=self.random)

    async def transact(self, producer: TransactionalProducer, transaction: Transaction) -> bool:
        """Return whether the producer can be used for the next transaction."""
        if producer._sender is None:
            producer.start()
        try:
            async with asyncio.timeout(self.patience_s()), producer.transaction():
                await self.fill(producer, transaction)
        except (*Failure, GiveUpError):
            return await self.give_up(producer, transaction)
        transaction.outcome = True
        return True

    async def fill(self, producer: TransactionalProducer, transaction: Transaction) -> None:
        for step in range(self.random.randint(0, 5)):
            action = self.random.choice((self.write, self.write, self.write, self.commit_offsets))
            if self.random.random() < 0.25:
                transaction.may_have_offsets |= action == self.commit_offsets
                self.strays.append(asyncio.create_task(action(producer, transaction, step, is_stray=True)))
                await asyncio.sleep(0)  # it has called the producer when the block ends
            else:
                await action(producer, transaction, step)
            if self.weather.happens(0.05):
                raise GiveUpError
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.uniform(0, 0.02))

    async def write(
        self, producer: TransactionalProducer, transaction: Transaction, step: int, *, is_stray: bool = False
    ) -> None:
        value = f"{transaction.number}#{step}".encode()
        await self.send(producer, value, task=transaction.number)
        if not is_stray:
            transaction.records.add(value)
        if self.random.random() < 0.2:
            await asyncio.shield(self.deliveries[value])

    async def commit_offsets(
        self, producer: TransactionalProducer, transaction: Transaction, _: int, *, is_stray: bool = False
    ) -> None:
        transaction.may_have_offsets = True
        await producer.send_offsets(GROUP, {INPUT: transaction.number})
        transaction.has_offsets |= not is_stray

    async def give_up(self, producer: TransactionalProducer, transaction: Transaction) -> bool:
        """Abort. If the transaction was committed before, repeat the commit."""
        end, outcome = producer.abort_transaction, False
        for _ in range(8):
            if not producer._is_open:
                transaction.outcome = outcome
                return True
            try:
                async with asyncio.timeout(self.patience_s()):
                    await end()
            except KafkaError as error:
                if error.code is ErrorCode.INVALID_TXN_STATE:
                    end, outcome = producer.commit, True
                elif not error.retriable:
                    return False
            except Failure:
                pass
        return False

    # Invariants

    async def check_offsets(self) -> None:
        allowed: set[int | None] = {None}
        for transaction in self.transactions:
            if transaction.outcome and transaction.has_offsets:
                allowed = {transaction.number}
            elif transaction.outcome is not False and transaction.may_have_offsets:
                allowed.add(transaction.number)
        found = self.cluster.offsets.get(GROUP)
        assert found in allowed, f"all or nothing: the offset is of transaction {found}, not one of {allowed}"

    def check(self) -> None:
        super().check()
        committed = {value for number in range(PARTITIONS) for value in self.cluster.committed(number)}
        acknowledged = self.acknowledged().keys()
        for transaction in self.transactions:
            prefix = f"{transaction.number}#".encode()
            visible = {value for value in committed if value.startswith(prefix)}
            if transaction.outcome is False:
                assert not visible, f"all or nothing: {visible} were aborted"
            if transaction.outcome:
                missing = transaction.records | {value for value in acknowledged if value.startswith(prefix)}
                assert missing <= visible, f"all or nothing: {missing - visible} were committed"
        for partition, log in self.cluster.logs.items():
            for offset in range(len(log)):
                assert (partition, offset) in self.cluster.ended, f"ended: {log[offset].value!r} is not"


KINDS = (ProducerRun, TransactionalRun, TransactionalRun)


def run_seed(seed: int) -> ProducerRun:
    """Run an idempotent producer, or a transactional one with the first or the second version of the protocol."""
    run = KINDS[seed % 3](seed, bumps_epochs=seed % 3 != 1)
    try:
        run_virtually(run.run())
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return run
