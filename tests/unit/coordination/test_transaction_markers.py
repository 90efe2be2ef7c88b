"""Transaction markers are grouped by leader and retried until another broker coordinates the transaction."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from sskafka.client.broker_link import BrokerLinks
from sskafka.coordination.transaction_markers import ROUTED_PER_TURN, Marker, MarkerSender
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.transactions.metadata import TransactionMetadata, TransactionState
from sskafka.transactions.shard import SendMarkers
from sskafka.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

HERE, THERE, ELSEWHERE = 1, 2, 3
A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)


class Led(NamedTuple):
    leader: int


class World:
    """Everything around a sender; nothing happens in it but by the test's hand."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int] = {}
        self.local: list[tuple[Marker, TopicPartition, Callable[[ErrorCode], None]]] = []
        self.sent: list[tuple[int, WriteTxnMarkersRequest, Callable[[Any], None]]] = []
        self.soon: list[Callable[[], None]] = []
        self.later: list[Callable[[], None]] = []
        self.completed: list[SendMarkers] = []
        self.is_coordinator = True
        links: BrokerLinks[Any] = BrokerLinks(lambda broker_id: Link(self, broker_id))
        self.sender = MarkerSender(HERE, lambda: self, self, links, self.call_later, self)  # type: ignore[arg-type, return-value]

    def partition(self, topic: str, index: int) -> Led | None:
        leader = self.leaders.get(TopicPartition(topic, index))
        return None if leader is None else Led(leader)

    def write(self, marker: Marker, target: TopicPartition, written: Callable[[ErrorCode], None]) -> None:
        self.local.append((marker, target, written))

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        assert delay_s == 0
        self.soon.append(call)

    def schedule(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.later.append(call)

    def run_soon(self) -> None:
        calls, self.soon[:] = list(self.soon), []
        for call in calls:
            call()

    def run_later(self) -> None:
        calls, self.later = self.later, []
        for call in calls:
            call()
        self.run_soon()

    def send(
        self, *partitions: TopicPartition, name: str = "pay", producer_id: int = 7, version: int = 2
    ) -> SendMarkers:
        transaction = TransactionMetadata(
            name, producer_id, 4, 1_000, TransactionState.PREPARE_COMMIT, frozenset(partitions), client_version=version
        )
        prepared = SendMarkers(transaction, coordinator_epoch=9)
        self.sender.send(prepared, lambda: self.is_coordinator, self.completed.append)
        self.run_soon()
        return prepared


class Link:
    def __init__(self, world: World, broker_id: int) -> None:
        self._world = world
        self._broker_id = broker_id

    def ask(self, request: Any, response_class: object, answered: Callable[[Any], None]) -> None:
        self._world.sent.append((self._broker_id, request, answered))

    def close(self) -> None: ...


def response(request: WriteTxnMarkersRequest, error: ErrorCode = ErrorCode.NONE) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(index, error) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


@pytest.fixture
def world() -> World:
    return World()


def test_a_transaction_without_partitions_is_complete_at_once(world: World) -> None:
    assert world.completed == [world.send()]


def test_every_leader_gets_its_share_and_the_last_answer_completes(world: World) -> None:
    world.leaders = {A: HERE, B: THERE, C: THERE}
    prepared = world.send(A, B, C)
    ((marker, target, written),) = world.local
    assert (target, marker.is_commit, marker.coordinator_epoch, marker.transaction_version) == (A, True, 9, 2)
    assert marker.producer == (7, 4)
    ((broker, request, answered),) = world.sent
    assert broker == THERE
    (asked,) = request.markers
    assert [(topic.name, topic.partition_indexes) for topic in asked.topics] == [("a", [1]), ("c", [0])]
    written(ErrorCode.NONE)
    assert world.completed == []
    answered(response(request))
    assert world.completed == [prepared]


def test_what_gathers_behind_a_request_shares_the_next(world: World) -> None:
    world.leaders = {A: THERE}
    first = world.send(A)
    others = [world.send(A, name=f"id-{number}", producer_id=number) for number in (8, 9)]
    assert len(world.sent) == 1
    world.sent[0][2](response(world.sent[0][1]))
    assert world.completed == [first]
    _, request, answered = world.sent[1]
    assert [marker.producer_id for marker in request.markers] == [8, 9]
    answered(response(request))
    assert world.completed == [first, *others]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_a_leader_that_moves_is_followed(world: World, error: ErrorCode) -> None:
    world.leaders = {A: THERE}
    prepared = world.send(A)
    world.sent[0][2](response(world.sent[0][1], error))
    world.leaders = {A: ELSEWHERE}
    world.run_later()
    broker, request, answered = world.sent[1]
    assert broker == ELSEWHERE
    answered(response(request))
    assert world.completed == [prepared]


def test_a_lost_connection_is_no_answer(world: World) -> None:
    world.leaders = {A: THERE}
    world.send(A)
    world.sent[0][2](ConnectionError("gone"))
    assert world.completed == []
    world.run_later()
    assert len(world.sent) == 2


def test_a_partition_without_a_leader_is_waited_for(world: World) -> None:
    world.leaders = {A: -1}
    prepared = world.send(A)
    assert not world.sent
    world.leaders = {A: HERE}
    world.run_later()
    world.local[0][2](ErrorCode.NONE)
    assert world.completed == [prepared]


def test_a_deleted_partition_needs_no_marker(world: World) -> None:
    world.leaders = {A: HERE}
    prepared = world.send(A, C)
    world.local[0][2](ErrorCode.NONE)
    assert world.completed == [prepared]


def test_who_was_replaced_leaves_the_rest_to_the_next_coordinator(world: World) -> None:
    world.leaders = {A: THERE}
    prepared = world.send(A)
    world.sent[0][2](response(world.sent[0][1], ErrorCode.TRANSACTION_COORDINATOR_FENCED))
    assert world.sender.under_way_count == 0
    assert world.completed == world.later == []
    assert world.send(A) == prepared, "the next sweep asks for the same"
    assert len(world.sent) == 2


def test_a_producer_that_went_on_has_its_marker_there(world: World) -> None:
    world.leaders = {A: THERE}
    prepared = world.send(A)
    world.sent[0][2](response(world.sent[0][1], ErrorCode.INVALID_PRODUCER_EPOCH))
    assert world.completed == [prepared]


def test_a_coordinator_that_is_no_longer_one_stops(world: World) -> None:
    world.leaders = {A: THERE}
    world.send(A)
    world.is_coordinator = False
    world.sent[0][2](response(world.sent[0][1], ErrorCode.NOT_LEADER_OR_FOLLOWER))
    world.run_later()
    assert len(world.sent) == 1
    assert world.completed == []


def test_markers_under_way_are_not_sent_twice(world: World) -> None:
    world.leaders = {A: THERE}
    prepared = world.send(A)
    assert world.send(A) == prepared
    assert world.sender.under_way_count == 1
    world.sent[0][2](response(world.sent[0][1]))
    world.run_later()
    assert len(world.sent) == 1
    assert world.completed == [prepared]
    assert world.sender.under_way_count == 0


def test_newer_markers_of_a_transactional_id_take_the_place_of_older_ones(world: World) -> None:
    """The older ones were of another leader epoch: this broker has lost the partition and got it back."""
    world.leaders = {A: THERE}
    older = world.send(A)
    newer = older._replace(coordinator_epoch=10)
    world.sender.send(newer, lambda: world.is_coordinator, world.completed.append)
    world.sent[0][2](response(world.sent[0][1]))
    assert world.completed == []
    world.sent[1][2](response(world.sent[1][1]))
    assert world.completed == [newer]


def test_markers_of_many_partitions_are_written_some_a_turn(world: World) -> None:
    """10,000 of them once took 0.7 s in one turn of the event loop."""
    many = [TopicPartition("many", index) for index in range(2 * ROUTED_PER_TURN + 10)]
    world.leaders = {**dict.fromkeys(many, HERE), A: HERE}
    prepared = world.send(*many)
    assert len(world.local) == 2 * ROUTED_PER_TURN, "two turns"
    small = world.send(A, name="small", producer_id=8)
    assert len(world.local) == len(many) + 1
    for _, _, written in world.local:
        written(ErrorCode.NONE)
    assert world.completed == [prepared, small]
    assert not world.soon


def test_a_coordinator_that_is_replaced_writes_no_further_markers(world: World) -> None:
    many = [TopicPartition("many", index) for index in range(3 * ROUTED_PER_TURN)]
    world.leaders = dict.fromkeys(many, HERE)
    world.send(*many)
    world.is_coordinator = False
    world.run_soon()
    assert len(world.local) == 2 * ROUTED_PER_TURN
    assert not world.soon
