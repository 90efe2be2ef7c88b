"""Ask the transaction coordinator, local or remote, whether a transaction is open in a partition led by this broker.

Older clients add partitions themselves, so the coordinator only verifies them. Newer clients leave that to the leader,
whose request adds them (`adds`). While a request to a broker is in flight, further questions for it are collected.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sskafka.client.broker_link import BrokerLinks, CallLater, Link, RequestQueue
from sskafka.coordination.internal_topics import TRANSACTION_STATE, partition_of
from sskafka.coordination.transaction_coordinator import TransactionCoordinator
from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_log = logging.getLogger(__name__)

Outcome = dict[TopicPartition, ErrorCode]
Verified = Callable[[Outcome], None]


class Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Collection[TopicPartition]
    adds: bool
    verified: Verified

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self.verified(dict.fromkeys(self.partitions, error))


class TransactionVerifier:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], ClusterImage],
        coordinator: TransactionCoordinator,
        links: BrokerLinks[Link],
        call_later: CallLater,
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._coordinator = coordinator
        self._links = links
        self._call_later = call_later
        self._queues: dict[int, _Queue] = {}

    def soon(self, call: Callable[[], None]) -> None:
        self._call_later(0, call)

    def ask(self, question: Question) -> None:
        """Ask. `question.verified` is called once, possibly before this returns."""
        leader = self._coordinator_of(question.transactional_id)
        if leader < 0:
            question.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif leader == self._broker_id:
            tid, producer, partitions, adds, verified = question
            self._coordinator.answer_leader(tid, producer, partitions, adds, verified)
        else:
            self._queue_for(leader).add(question)

    def _coordinator_of(self, transactional_id: str) -> int:
        topic = self._image().topics_by_name.get(TRANSACTION_STATE)
        if topic is None:
            return -1
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader

    def _queue_for(self, broker_id: int) -> "_Queue":
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(
                self._links.to(broker_id), self._call_later, AddPartitionsToTxnResponse
            )
        return queue


class _Queue(RequestQueue[Question, AddPartitionsToTxnResponse]):
    """Questions to the coordinators on one other broker."""

    def _select(self, waiting: Sequence[Question]) -> tuple[Sequence[Question], Sequence[Question]]:
        """Build a request with one question for each transactional id, because responses are matched by that id."""
        requested: dict[str, Question] = {}
        for question in waiting:
            requested.setdefault(question.transactional_id, question)
        return list(requested.values()), [item for item in waiting if requested[item.transactional_id] is not item]

    def _request(self, items: Sequence[Question]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest([_transaction(question) for question in items])

    def _answered(self, items: Sequence[Question], outcome: AddPartitionsToTxnResponse | Exception) -> float:
        answers = {} if isinstance(outcome, Exception) else _answers(outcome)
        missing = ErrorCode.NETWORK_EXCEPTION
        if isinstance(outcome, AddPartitionsToTxnResponse) and outcome.error_code:
            missing = ErrorCode(outcome.error_code)
        for question in items:
            name = question.transactional_id
            _report(question, {item: answers.get((name, *item), missing) for item in question.partitions})
        return 0


def _report(question: Question, outcome: Outcome) -> None:
    try:
        question.verified(outcome)
    except Exception:  # an error in one callback must not affect the other questions
        _log.exception("the transaction coordinator's response to %s was not processed", question.transactional_id)


def _transaction(question: Question) -> AddPartitionsToTxnTransaction:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, index in question.partitions:
        topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(index)
    return AddPartitionsToTxnTransaction(
        question.transactional_id, *question.producer, verify_only=not question.adds, topics=list(topics.values())
    )


def _answers(response: AddPartitionsToTxnResponse) -> dict[tuple[str, str, int], ErrorCode]:
    return {
        (transaction.transactional_id, topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }
