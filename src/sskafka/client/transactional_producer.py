"""Transactional producer: the records of a transaction become visible together or not at all.

    async with TransactionalProducer(cluster, "orders-1") as producer:
        async with producer.transaction():
            await producer.send("orders", b"value")
            await producer.send_offsets("group", {TopicPartition("input", 0): 42})

A transaction commits when its block ends normally and aborts when the block raises. `hand_over` returns an open
transaction whose records are all delivered; a process that receives it ends it with `transactions.end`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sskafka.client import transactions
from sskafka.client.accumulator import OutgoingBatch, ProducerIdentity
from sskafka.client.backoff import Randomness
from sskafka.client.cluster import Cluster
from sskafka.client.config import ProducerConfig
from sskafka.client.errors import ConfigError
from sskafka.client.producer import ProducerEngine
from sskafka.client.transactions import Transaction
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.produce import ProduceRequest, TopicProduceData

DEFAULT_TIMEOUT_MS = 60_000


class TransactionalProducer(ProducerEngine):
    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        config: ProducerConfig | None = None,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        randomness: Randomness | None = None,
    ) -> None:
        """`timeout_ms`: time after which the coordinator aborts an open transaction."""
        super().__init__(cluster, config, randomness=randomness)
        if not self.config.is_idempotent:
            raise ConfigError("a transactional producer needs enable.idempotence=true and acks=all")
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._current: Transaction | None = None
        self._partitions: set[TopicPartition] = set()
        self._is_open = False
        self._has_begun = False
        """Whether the coordinator may know about the open transaction."""
        self._needs_epoch = False
        """Whether brokers may still carry out a request of an earlier transaction (first version of the protocol)."""
        self._offsets_lock = asyncio.Lock()
        """Held while offsets are sent and while the transaction ends."""
        self._failure: Exception | None = None
        self._ending: bool | None = None
        """Whether the open transaction is being committed or aborted; None while it accepts records."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        await self.begin()
        try:
            yield
        except BaseException:
            await self.abort_transaction()
            raise
        await self.commit()

    async def begin(self) -> None:
        if self._is_open:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a transaction is already open")
        if self._current is None or self._needs_epoch:
            last = self._current
            self._adopt(await transactions.initialize(self._cluster, self._transactional_id, self._timeout_ms, last))
            self._needs_epoch = False
        self._is_open, self._ending, self._failure = True, None, None
        self._transaction += 1

    async def commit(self) -> None:
        """Commit. If a record was not delivered, raise its error; the transaction is then still open: abort it."""
        await self._end(commit=True)

    async def abort_transaction(self) -> None:
        """Abort. The futures of buffered records are cancelled; records that are being sent are waited for first."""
        self._require_open()
        self._begin_end(commit=False)
        self._accumulator.discard()
        self._progress.set()
        await self._end(commit=False)

    async def send_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group with the transaction. After an error the transaction can only be aborted."""
        number = self._transaction
        async with self._offsets_lock:
            transaction = self._require_writable(number)
            if not offsets:
                return
            self._has_begun = True
            try:
                await transactions.commit_offsets(self._cluster, transaction, group_id, offsets)
            except BaseException as error:
                text = f"the offsets of group {group_id!r} may be missing from the transaction: {error!r}"
                self._failure = self._failure or KafkaError(ErrorCode.TRANSACTION_ABORTABLE, text)
                raise

    async def hand_over(self) -> Transaction:
        """Return the open transaction for another process to end. This producer then has none and starts a new one."""
        async with self._offsets_lock:
            await self.flush()
            transaction = self._require_open()
            self._begin_end(commit=True)
            self._current = None
            self._close()
        return transaction

    async def _end(self, *, commit: bool) -> None:
        async with self._offsets_lock:
            await self.flush()  # last: a record that is sent until now belongs to the transaction
            transaction = self._require_open()
            self._begin_end(commit=commit)
            if self._has_begun:
                await self._end_at_coordinator(transaction, commit=commit)
            self._close()

    async def _end_at_coordinator(self, transaction: Transaction, *, commit: bool) -> None:
        """In the first version of the protocol all transactions have one epoch, and a coordinator refuses to abort a
        transaction that it does not know. After a failure, a request may still be on its way, and it is unknown whether
        the broker stored a batch: the next transaction needs a new epoch, which restarts the sequences."""
        is_first_version = not transaction.bumps_epochs
        self._needs_epoch |= is_first_version and self._failure is not None
        try:
            self._adopt(await transactions.end(self._cluster, transaction, commit=commit))
        except BaseException as error:
            self._needs_epoch = is_first_version
            is_invalid = isinstance(error, KafkaError) and error.code == ErrorCode.INVALID_TXN_STATE
            if not (is_first_version and is_invalid and self._ending is False):  # no commit was asked for before
                raise

    def _begin_end(self, *, commit: bool) -> None:
        """Accept no more records. What was asked for first remains: an abort drops records, so no commit may follow."""
        if commit and self._ending is False:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction is being aborted")
        if commit and self._failure is not None:
            raise self._failure
        if self._ending is None:
            self._ending = commit

    def _require_open(self) -> Transaction:
        if not self._is_open or self._current is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "no transaction is open")
        return self._current

    def _require_writable(self, number: int) -> Transaction:
        """Return the open transaction. Raise unless it is number `number`, accepts records, and none has failed."""
        transaction = self._require_open()
        if self._ending is not None or number != self._transaction:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction of these records has ended")
        if self._failure is not None:
            raise self._failure
        return transaction

    def _adopt(self, transaction: Transaction) -> None:
        if transaction != self._current:
            identity = ProducerIdentity(transaction.producer_id, transaction.producer_epoch, True)
            self._sequences.begin(identity)
        self._current = transaction

    def _close(self) -> None:
        self._is_open = self._has_begun = False
        self._transaction += 1
        self._partitions.clear()

    # Overrides of the idempotent producer

    async def _prepare(self, batch: OutgoingBatch) -> None:
        transaction = self._require_writable(batch.transaction)
        self._has_begun = True
        if batch.partition not in self._partitions:
            if not transaction.bumps_epochs:
                await transactions.add_partitions(self._cluster, transaction, [batch.partition])
            self._partitions.add(batch.partition)

    def _produce_request(self, timeout_ms: int, data: list[TopicProduceData]) -> tuple[ProduceRequest, int | None]:
        newest = None if self._require_open().bumps_epochs else transactions.FIRST_PRODUCE_VERSION_MAX
        return ProduceRequest(self._transactional_id, self._acks, timeout_ms, data), newest

    def _may_retry(self, batch: OutgoingBatch, error: Exception, now_ms: float) -> bool:
        return self._ending is None and super()._may_retry(batch, error, now_ms)

    def _settle_sequence(self, batch: OutgoingBatch, error: Exception) -> None:
        """Keep the sequences: nothing more is sent in this transaction, and its end starts a new epoch."""
        if self._is_open and batch.transaction == self._transaction:
            self._failure = self._failure or error
