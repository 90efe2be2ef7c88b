"""Leaders verify transactions at the coordinator, whether it is local or remote."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import pytest

from sskafka.client.broker_link import BrokerLinks
from sskafka.coordination.transaction_verifier import Outcome, Question, TransactionVerifier
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

HERE, THERE = 1, 2
A, B = TopicPartition("a", 0), TopicPartition("a", 1)
ME = ProducerIdAndEpoch(7, 3)


class Led(NamedTuple):
    leader: int


class Topic(NamedTuple):
    partitions: dict[int, Led]


class World:
    def __init__(self, leader: int | None) -> None:
        self.topics_by_name = {} if leader is None else {"__transaction_state": Topic({0: Led(leader)})}
        self.asked_here: list[tuple[Any, ...]] = []
        self.sent: list[tuple[AddPartitionsToTxnRequest, Callable[[Any], None]]] = []
        self.soon: list[Callable[[], None]] = []
        self.heard: list[Outcome] = []
        links: BrokerLinks[Any] = BrokerLinks(self.link_to)
        self.verifier = TransactionVerifier(HERE, lambda: self, self, links, self.call_later)  # type: ignore[arg-type, return-value]

    def answer_leader(self, *question: Any) -> None:
        self.asked_here.append(question)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        assert delay_s == 0
        self.soon.append(call)

    def link_to(self, broker_id: int) -> "World":
        assert broker_id == THERE
        return self

    def ask(self, request: Any, response_class: object, answered: Callable[[Any], None]) -> None:
        self.sent.append((request, answered))

    def question(self, name: str, *partitions: TopicPartition, adds: bool = True) -> None:
        self.verifier.ask(Question(name, ME, partitions, adds, self.heard.append))
        calls, self.soon[:] = list(self.soon), []
        for call in calls:
            call()


def response(request: AddPartitionsToTxnRequest, error: ErrorCode) -> AddPartitionsToTxnResponse:
    def results(indexes: Collection[int]) -> list[AddPartitionsToTxnPartitionResult]:
        return [AddPartitionsToTxnPartitionResult(index, error) for index in indexes]

    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                item.transactional_id,
                [AddPartitionsToTxnTopicResult(topic.name, results(topic.partitions)) for topic in item.topics],
            )
            for item in request.transactions
        ]
    )


def test_the_coordinator_may_be_on_this_broker() -> None:
    world = World(HERE)
    world.question("pay", A, adds=False)
    ((name, producer, partitions, adds, _),) = world.asked_here
    assert (name, producer, partitions, adds) == ("pay", ME, (A,), False)


@pytest.mark.parametrize("leader", [None, -1])
def test_nobody_coordinates(leader: int | None) -> None:
    world = World(leader)
    world.question("pay", A, B)
    assert world.heard == [dict.fromkeys((A, B), ErrorCode.COORDINATOR_NOT_AVAILABLE)]


@pytest.mark.parametrize("adds", [True, False])
def test_another_broker_is_asked(adds: bool) -> None:
    world = World(THERE)
    world.question("pay", A, B, adds=adds)
    ((request, answered),) = world.sent
    (asked,) = request.transactions
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("pay", *ME)
    assert asked.verify_only is not adds
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [("a", [0, 1])]
    answered(response(request, ErrorCode.NONE))
    assert world.heard == [dict.fromkeys((A, B), ErrorCode.NONE)]


def test_questions_gather_but_one_of_an_id_at_a_time() -> None:
    world = World(THERE)
    world.question("pay", A)
    world.question("pay", B)
    world.question("bill", A)
    world.question("pay", A)
    world.sent[0][1](response(world.sent[0][0], ErrorCode.NONE))
    second, answered = world.sent[1]
    assert [item.transactional_id for item in second.transactions] == ["pay", "bill"]
    answered(response(second, ErrorCode.PRODUCER_FENCED))
    assert len(world.sent) == 3
    assert world.heard == [{A: ErrorCode.NONE}, {B: ErrorCode.PRODUCER_FENCED}, {A: ErrorCode.PRODUCER_FENCED}]


def test_a_lost_connection_leaves_it_open() -> None:
    world = World(THERE)
    world.question("pay", A)
    world.sent[0][1](ConnectionError("gone"))
    assert world.heard == [{A: ErrorCode.NETWORK_EXCEPTION}]


def test_a_refusal_of_the_whole_request_is_one_of_each_partition() -> None:
    world = World(THERE)
    world.question("pay", A)
    world.sent[0][1](AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert world.heard == [{A: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}]


def test_one_who_cannot_go_on_does_not_hold_up_the_others() -> None:
    world = World(THERE)

    def fail(outcome: Outcome) -> None:
        raise ZeroDivisionError

    world.verifier.ask(Question("broken", ME, [A], True, fail))
    world.question("pay", A)
    request, answered = world.sent.pop()
    world.question("later", B)
    answered(response(request, ErrorCode.NONE))
    assert world.heard == [{A: ErrorCode.NONE}]
    ((request, _),) = world.sent
    assert [item.transactional_id for item in request.transactions] == ["later"]
