"""Produce requests that may open a transaction are parked until the coordinator confirms it, and stay in order."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from logs import batch, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.coordination.transaction_verifier import Question
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.servers.kafka.handlers.transactional_produce import (
    ADDS_FROM,
    Refusals,
    RetryPauses,
    TransactionalProduce,
    Waiting,
)
from sskafka.storage.log import Log
from sskafka.wire.produce import ProduceRequestView

ORDERS = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000


class World:
    """A broker that leads one partition."""

    def __init__(self) -> None:
        self.log: Log = reopen(SimulatedDisk())
        self.log.producers.verifies_transactions = True
        self.questions: list[Question] = []
        self.carried_out: list[tuple[int, Refusals]] = []
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.soon_calls: list[Callable[[], None]] = []
        self.partition = SimpleNamespace(topic_partition=ORDERS, producers=self.log.producers, is_leader=True)
        self.others: dict[tuple[str, int], Any] = {}
        self.forbidden: set[str] = set()
        self.produce = TransactionalProduce(self, self, self, RetryPauses(20, 50), self._carry_out)  # type: ignore[arg-type]

    def maybe_find(self, topic: str, index: int) -> Any:
        if (topic, index) == ORDERS:
            return self.partition
        return self.others.get((topic, index))

    def ask(self, question: Question) -> None:
        self.questions.append(question)

    def soon(self, call: Callable[[], None]) -> None:
        self.soon_calls.append(call)

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.later.append((delay_ms, call))

    def _carry_out(self, waiting: Waiting, refusals: Refusals) -> None:
        """As the handler does: append what was not refused."""
        if not refusals:
            ((_, ((_, records),)),) = waiting.produce.topics
            assert records is not None
            self.log.append_as_leader(records, 0, NOW_MS)
        self.carried_out.append((waiting.request.correlation_id, refusals))

    def request(
        self, number: int, sequence: int = 0, version: int = ADDS_FROM, topic: str = "orders", epoch: int = 0
    ) -> bool:
        """Whether the request had to wait; its buffer is used again afterwards."""
        buffer = batch(b"v", producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=True)
        view = ProduceRequestView("pay", -1, 1_000, [(topic, [(0, memoryview(buffer))])])
        request = self.last = self._asked(number, version)
        must_wait = self.produce.must_wait(request, view)
        buffer[:] = bytes(len(buffer))
        return must_wait

    def _asked(self, number: int, version: int) -> Any:
        return SimpleNamespace(
            version=version,
            correlation_id=number,
            park=lambda: None,
            connection=SimpleNamespace(closed=False),
            may_see=lambda resource_type, topic, operation: topic not in self.forbidden,
        )

    def request_of_several(self, *producer_ids: int) -> None:
        entries = [
            (index, memoryview(batch(b"v", producer_id=number, producer_epoch=0, base_sequence=0, transactional=True)))
            for index, number in enumerate(producer_ids)
        ]
        view = ProduceRequestView("pay", -1, 1_000, [("orders", entries)])
        self.produce.must_wait(self._asked(1, ADDS_FROM), view)

    def write_marker(self, epoch: int) -> None:
        self.log.append_as_leader(marker(7, epoch, commit=True), 0, NOW_MS, from_client=False)

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        question = self.questions.pop(0)
        question.verified(dict.fromkeys(question.partitions, error))
        while self.soon_calls:
            self.soon_calls.pop(0)()


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_batch_waits_for_the_coordinator(world: World) -> None:
    assert world.request(1)
    (question,) = world.questions
    assert (question.transactional_id, question.producer, list(question.partitions)) == ("pay", (7, 0), [ORDERS])
    assert question.adds
    world.answer()
    assert world.carried_out == [(1, {})]
    assert not world.request(2, sequence=1), "the transaction is open by now"


def test_older_clients_have_added_the_partition_themselves(world: World) -> None:
    world.request(1, version=9)
    assert not world.questions[0].adds


def test_requests_behind_a_parked_one_keep_their_order(world: World) -> None:
    assert world.request(1)
    assert world.request(2, sequence=1)
    assert world.request(3, sequence=2)
    assert len(world.questions) == 1
    world.answer()
    assert [number for number, _ in world.carried_out] == [1, 2, 3]
    assert not world.questions, "the second found the transaction open"


def test_a_refused_first_batch_does_not_let_the_next_overtake_it(world: World) -> None:
    world.request(1)
    world.request(2, sequence=1)
    world.answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert world.carried_out == [(1, {("orders", 0): ErrorCode.NOT_ENOUGH_REPLICAS})]
    with pytest.raises(Exception, match="sequence 1 before 0"):
        world.answer()


def test_who_has_gone_away_writes_nothing(world: World) -> None:
    world.request(1)
    world.last.connection.closed = True
    world.answer()
    assert world.carried_out == []
    assert world.request(2), "the next one asks for itself"


def test_partitions_that_are_not_here_are_the_appends_matter(world: World) -> None:
    assert not world.request(1, topic="elsewhere")
    world.partition.is_leader = False
    assert not world.request(2)


def test_nothing_is_asked_where_transactions_are_not_verified(world: World) -> None:
    world.log.producers.verifies_transactions = False
    assert not world.request(1, version=ADDS_FROM - 1)


def test_what_the_leader_adds_it_adds_without_verifying_too(world: World) -> None:
    """Nobody else tells the coordinator of the partition: its marker would never come."""
    world.log.producers.verifies_transactions = False
    assert world.request(1)
    world.answer()
    assert world.carried_out == [(1, {})]


def test_a_transaction_that_is_just_being_completed_is_waited_for(world: World) -> None:
    world.request(1)
    for _ in range(2):
        world.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        ((delay_ms, again),) = world.later
        assert delay_ms == 20
        world.later.clear()
        again()
    world.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert world.carried_out == [(1, {("orders", 0): ErrorCode.CONCURRENT_TRANSACTIONS})]


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NETWORK_EXCEPTION, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 9, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_every_client_hears_what_it_knows(world: World, error: ErrorCode, version: int, told: ErrorCode) -> None:
    world.request(1, version=version)
    world.answer(error)
    assert world.carried_out == [(1, {("orders", 0): told})]


def test_batches_of_several_producers_open_no_transaction(world: World) -> None:
    """The coordinator would be asked about one of them only; the other's transaction nobody would ever end."""
    log = reopen(SimulatedDisk())
    log.producers.verifies_transactions = True
    second = TopicPartition("orders", 1)
    world.others[second] = SimpleNamespace(topic_partition=second, producers=log.producers, is_leader=True)
    world.request_of_several(7, 8)
    assert not world.questions
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.carried_out == [(1, {("orders", 0): error, ("orders", 1): error})]
    world.request_of_several(7, 7)
    assert list(world.questions[0].partitions) == [ORDERS, second]


def test_what_may_not_be_written_does_not_come_into_the_transaction(world: World) -> None:
    """Its marker would be written to a partition that the producer has no right to."""
    world.forbidden.add("orders")
    assert not world.request(1)
    assert not world.questions
    offsets = TopicPartition("__consumer_offsets", 0)
    world.others[offsets] = SimpleNamespace(topic_partition=offsets, producers=world.log.producers, is_leader=True)
    assert not world.request(2, topic="__consumer_offsets")
    assert not world.questions


def test_a_transaction_may_begin_before_the_marker_of_the_last_one(world: World) -> None:
    """In the second version the marker of the last transaction carries the epoch of the next."""
    world.request(1)
    world.answer()
    world.request(2, epoch=1)
    world.write_marker(1)
    world.answer()
    assert world.carried_out == [(1, {}), (2, {})]


def test_the_coordinator_is_asked_again_when_a_marker_came_in_between(world: World) -> None:
    """In the first version nobody can tell whether the marker ended this transaction or the one before."""
    world.request(1, version=9)
    world.write_marker(0)
    world.answer()
    assert world.carried_out == []
    world.answer()
    assert world.carried_out == [(1, {})]


def test_a_transaction_that_was_ended_in_between_is_refused(world: World) -> None:
    world.request(1, version=9)
    world.write_marker(0)
    world.answer()
    world.answer(ErrorCode.TRANSACTION_ABORTABLE)
    assert world.carried_out == [(1, {("orders", 0): ErrorCode.INVALID_TXN_STATE})]
