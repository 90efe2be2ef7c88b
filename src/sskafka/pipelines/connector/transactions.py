"""Transactions that a task begins and the driver, in another process, ends.

The first version of Kafka's transactions is used wherever it runs: every broker has it, and it keeps the epoch when a
transaction ends, so a driver that does not know whether its commit arrived may send it again. Where brokers allow
two-phase commits (KIP-939) tasks use them: their transactions do not time out.
"""

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnsupportedApiError
from sskafka.client.transactions import (
    FIRST_VERSION,
    NO_TIMEOUT_MS,
    Transaction,
    describe,
    initialize,
    list_transactions,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.commit_protocol import Condition
from sskafka.pipelines.connector.errors import OptionError

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""What a producer hears whose transactional id was taken over."""
ENDED = FENCED | {ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""What the end of a transaction meets that is no longer open: it was aborted, by its timeout or by a newer producer."""
ONGOING = "Ongoing"

_without_two_phase: set[str] = set()
"""Clusters that refused two-phase commits to this process: they are not asked again."""


async def begin(cluster: Cluster, transactional_id: str, timeout_ms: int) -> Transaction:
    """Take the id over: an open transaction of it is aborted, and whoever had it before is fenced."""
    try:
        taken = await initialize(cluster, transactional_id, timeout_ms)
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            problem = f"{timeout_ms} is above the brokers' transaction.max.timeout.ms; use less, or raise that"
            raise OptionError("transactionTimeoutMs", problem) from error
        raise
    return taken._replace(version=FIRST_VERSION)


async def begin_without_timeout(
    cluster: Cluster, bootstrap: str, transactional_id: str, timeout_ms: int
) -> Transaction:
    """As `begin`, but the transaction does not time out where brokers allow two-phase commits."""
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


async def condition_of(cluster: Cluster, transaction: Transaction) -> Condition:
    """Whether this very transaction is open, and for how long it may stay so by the clock of this process."""
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
    """Transactional ids that begin with `prefix` and have an open transaction; nothing where brokers cannot list."""
    try:
        listed = await list_transactions(cluster, [ONGOING])
    except UnsupportedApiError:
        return []
    return sorted(one.transactional_id for one in listed if one.transactional_id.startswith(prefix))


async def open_transaction_of(cluster: Cluster, transactional_id: str) -> Transaction | None:
    """The open transaction of an id, as whoever wants to end exactly that one needs it."""
    try:
        described = await describe(cluster, transactional_id)
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return None
    if described.transaction_state != ONGOING:
        return None
    return Transaction(transactional_id, described.producer_id, described.producer_epoch, FIRST_VERSION)
