"""Transactions that a task begins and the driver, in another process, ends.

Transactions use the protocol before KIP-890 (transaction version 0): every broker supports it, and the producer epoch
does not change when a transaction ends, so a driver that does not know whether its commit arrived may send it again. If
brokers allow two-phase commits (KIP-939), tasks use them: their transactions do not time out.

Each process that runs tasks has its own transactional ids, and no other process initializes them: a late attempt of a
task cannot abort the attempt that replaced it. Ids are reused, because coordinators remember each of them for days. A
process reuses one of its ids for a later batch of the same epoch: Spark starts a batch only after the previous one is
committed.
"""

import os
import uuid
from dataclasses import dataclass, field

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnsupportedApiError
from sskafka.client.transactions import (
    FIRST_VERSION,
    NO_TIMEOUT_MS,
    TAKE_OVER_TIMEOUT_MS,
    Transaction,
    describe,
    initialize,
    list_transactions,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.commit_effects import Condition
from sskafka.pipelines.connector.errors import OptionError

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""Errors of a producer whose transactional id another producer has initialized."""
ENDED = FENCED | {ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""Errors of EndTxn for a transaction that is no longer open: it was aborted by its timeout or by a newer producer."""
ONGOING = "Ongoing"
COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
"""States of a transaction that is committed, or will be in any case."""

_without_two_phase: set[str] = set()
"""Clusters that have refused two-phase commits to this process; they are not asked again."""


async def begin(cluster: Cluster, transactional_id: str, timeout_ms: int) -> Transaction:
    """Initialize the id: its open transaction is aborted, and its previous producer is fenced."""
    try:
        taken = await initialize(cluster, transactional_id, timeout_ms)
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            problem = f"{timeout_ms} is above the brokers' transaction.max.timeout.ms; lower it, or raise that"
            raise OptionError("transactionTimeoutMs", problem) from error
        raise
    return taken._replace(version=FIRST_VERSION)


async def begin_without_timeout(
    cluster: Cluster, bootstrap: str, transactional_id: str, timeout_ms: int
) -> Transaction:
    """As `begin`, but the transaction does not time out if the brokers allow two-phase commits."""
    if bootstrap not in _without_two_phase:
        try:
            taken = await initialize(cluster, transactional_id, timeout_ms, two_phase=True)
            return taken._replace(version=FIRST_VERSION)
        except UnsupportedApiError:
            _without_two_phase.add(bootstrap)
        except KafkaError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise
            _without_two_phase.add(bootstrap)
    return await begin(cluster, transactional_id, timeout_ms)


async def fence(cluster: Cluster, transaction: Transaction) -> None:
    """Abort a transaction if it is still the last one of its id, and raise the epoch of its producer.

    EndTxn would leave the epoch as it is: a task that still writes would write outside of any transaction of which the
    coordinator knows, and readers would wait for it."""
    await initialize(cluster, transaction.transactional_id, TAKE_OVER_TIMEOUT_MS, last=transaction)


async def condition_of(cluster: Cluster, transaction: Transaction) -> Condition:
    """Return whether this transaction is open, and how long it may stay open by the clock of this process."""
    try:
        described = await describe(cluster, transaction.transactional_id)
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return Condition(False, "forgotten")
    producer = (described.producer_id, described.producer_epoch)
    if producer != (transaction.producer_id, transaction.producer_epoch):
        return Condition(False, f"{described.transaction_state} of a newer producer")
    is_open = described.transaction_state == ONGOING
    if described.transaction_timeout_ms == NO_TIMEOUT_MS:
        return Condition(is_open, described.transaction_state)
    ends_at_ms = described.transaction_start_time_ms + described.transaction_timeout_ms
    return Condition(is_open, described.transaction_state, ends_at_ms - cluster.clock.now_ms())


async def open_transactions(cluster: Cluster, prefix: str) -> list[str]:
    """Return the ids with this prefix that have an open transaction; none if the brokers do not support listing."""
    try:
        listed = await list_transactions(cluster, [ONGOING])
    except UnsupportedApiError:
        return []
    return sorted(one.transactional_id for one in listed if one.transactional_id.startswith(prefix))


async def open_transaction_of(cluster: Cluster, transactional_id: str) -> Transaction | None:
    """Return the open transaction of an id, in the form that is needed to end exactly this one."""
    try:
        described = await describe(cluster, transactional_id)
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return None
    if described.transaction_state != ONGOING:
        return None
    return Transaction(transactional_id, described.producer_id, described.producer_epoch, FIRST_VERSION)


@dataclass(slots=True)
class ProcessIds:
    """The ids of one process, by prefix and epoch."""

    name: str
    last_batches: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """The batch that last used the first, second, ... id."""

    def next_id(self, prefix: str, epoch: int, batch: int) -> str:
        used = self.last_batches.setdefault((prefix, epoch), [])
        for number, last in enumerate(used):
            if last < batch:
                used[number] = batch
                return transactional_id(prefix, epoch, self.name, number)
        used.append(batch)
        return transactional_id(prefix, epoch, self.name, len(used) - 1)


def transactional_id(prefix: str, epoch: int, process: str, number: int) -> str:
    return f"{prefix}-{epoch}-{process}-{number}"


_ids: dict[int, ProcessIds] = {}


def ids_of_this_process() -> ProcessIds:
    """Return the ids of this process. A worker that Spark has forked must not use the ids of its parent."""
    pid = os.getpid()
    if pid not in _ids:
        _ids.clear()
        _ids[pid] = ProcessIds(uuid.uuid4().hex[:12])
    return _ids[pid]
