"""Transactions that a task begins and the driver, in another process, ends.

The first version of Kafka's transactions is used wherever it runs: every broker has it, and it keeps the epoch when a
transaction ends, so a driver that does not know whether its commit arrived may send it again.
"""

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, UnsupportedApiError
from sskafka.client.transactions import FIRST_VERSION, Transaction, describe, initialize, list_transactions
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.errors import OptionError

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""What a producer hears whose transactional id was taken over."""
ABORTED = FENCED | {ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""What the end of a transaction meets that is no longer open: it was aborted, by its timeout or by a newer producer."""


async def begin(
    cluster: Cluster, transactional_id: str, timeout_ms: int, last: Transaction | None = None
) -> Transaction:
    """Takes the id over, from `last` alone if given: a KafkaError of FENCED says that somebody else has it."""
    try:
        taken = await initialize(cluster, transactional_id, timeout_ms, last)
    except KafkaError as error:
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            problem = f"{timeout_ms} is above the brokers' transaction.max.timeout.ms; use less, or raise that"
            raise OptionError("transactionTimeoutMs", problem) from error
        raise
    return taken._replace(version=FIRST_VERSION)


async def state_of(cluster: Cluster, transactional_id: str) -> str:
    """The coordinator's word for the state of an id, or why it cannot tell."""
    try:
        return (await describe(cluster, transactional_id)).transaction_state
    except (ClientError, KafkaError) as error:
        return f"unknown: {error}"


async def open_transactions(cluster: Cluster, prefix: str) -> list[str]:
    """Transactional ids that begin with `prefix` and have an open transaction; nothing where brokers cannot list."""
    try:
        listed = await list_transactions(cluster, ["Ongoing"])
    except UnsupportedApiError:
        return []
    return sorted(one.transactional_id for one in listed if one.transactional_id.startswith(prefix))
