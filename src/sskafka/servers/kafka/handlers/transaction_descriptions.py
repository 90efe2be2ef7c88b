"""DescribeTransactions and ListTransactions: the transactional ids that this broker coordinates."""

from collections.abc import Collection, Generator, Iterable
from time import thread_time_ns

from sskafka.coordination.transaction_coordinator import TransactionCoordinator
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.model.pattern import InvalidPatternError, Pattern, SlowPatternError
from sskafka.model.pattern_matching import matching_names
from sskafka.runtime.clock import Clock
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.request import Request
from sskafka.transactions.metadata import NO_TIME, STATE_BY_LABEL, TransactionMetadata, TransactionState
from sskafka.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from sskafka.wire.messages.describe_transactions import TransactionState as DescribedTransaction
from sskafka.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from sskafka.wire.messages.list_transactions import TransactionState as ListedTransaction

PATTERN_SIZE_MAX = 1_000
"""Instructions of a compiled pattern. A transactional id may have 32 KB."""


class TransactionDescriptionHandlers:
    def __init__(self, coordinator: TransactionCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock

    async def describe(self, message: DescribeTransactionsRequest, request: Request) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[await self._described(name, request) for name in message.transactional_ids]
        )

    async def _described(self, transactional_id: str, request: Request) -> DescribedTransaction:
        if not request.may_on_transactional_id(AclOperation.DESCRIBE, transactional_id):
            return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id)
        if not transactional_id:
            return DescribedTransaction(ErrorCode.INVALID_REQUEST, transactional_id)
        try:
            known = await self._coordinator.describe(transactional_id)
        except Exception as error:
            return DescribedTransaction(error_code_of(error)[0], transactional_id)
        visible = (item for item in sorted(known.partitions) if request.may_see(ResourceType.TOPIC, item.topic))
        return DescribedTransaction(
            ErrorCode.NONE,
            transactional_id,
            known.state.label,
            known.timeout_ms,
            NO_TIME if known.state is TransactionState.EMPTY else known.start_ms,
            *known.identity,
            _by_topic(visible),
        )

    def list(
        self, message: ListTransactionsRequest, request: Request
    ) -> Generator[None, None, ListTransactionsResponse]:
        if self._coordinator.is_loading:
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        requested = _Filter(message, self._clock.now_ms())
        listed: dict[str, ListedTransaction] = {}
        for known in tuple(self._coordinator):
            name = known.transactional_id
            if requested.includes(known) and request.may_see(ResourceType.TRANSACTIONAL_ID, name):
                listed[name] = ListedTransaction(name, known.producer_id, known.state.label)
            yield
        try:
            matched = yield from _matching(message.transactional_id_pattern, listed.keys())
        except (InvalidPatternError, SlowPatternError):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        unknown = [label for label in message.state_filters if label not in STATE_BY_LABEL]
        return ListTransactionsResponse(
            unknown_state_filters=unknown, transaction_states=[listed[name] for name in listed if name in matched]
        )


class _Filter:
    def __init__(self, requested: ListTransactionsRequest, now_ms: int) -> None:
        self._states = set(requested.state_filters)
        self._producer_ids = set(requested.producer_id_filters)
        self._duration_ms = requested.duration_filter
        self._now_ms = now_ms

    def includes(self, known: TransactionMetadata) -> bool:
        if self._states and known.state.label not in self._states:
            return False
        if self._producer_ids and known.producer_id not in self._producer_ids:
            return False
        # As in Kafka, a transactional id without a transaction counts as one that has been open forever.
        return self._duration_ms < 0 or self._now_ms - known.start_ms > self._duration_ms


def _matching(pattern: str | None, names: Collection[str]) -> Computation[Collection[str]]:
    """Return the names that the pattern matches. Raise an error if it is invalid, or slow for these names."""
    if not pattern:
        return names
    return (yield from matching_names(Pattern(pattern, PATTERN_SIZE_MAX), names, thread_time_ns))


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for topic, index in partitions:
        topics.setdefault(topic, TopicData(topic)).partitions.append(index)
    return list(topics.values())
