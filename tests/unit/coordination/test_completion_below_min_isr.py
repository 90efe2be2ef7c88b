"""A transaction with written markers completes when its coordinator's partition has enough in-sync replicas again."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from coordinator_lab import CoordinatorLab
from group_lab import Asked

from sskafka.coordination.context import CoordinatorContext
from sskafka.coordination.transaction_coordinator import COMPLETION_RETRY_MS, TransactionCoordinator
from sskafka.coordination.transaction_markers import MarkerSender
from sskafka.metadata.image import ClusterImage
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.metadata import TransactionState
from sskafka.transactions.shard import SendMarkers, TransactionCoordinatorShard

ID, ME = "pay", ProducerIdAndEpoch(7, 0)
SWEEP_MS = 10_000


class Sender:
    """Stands for the markers' way to the partitions: notes what was sent."""

    def __init__(self) -> None:
        self.sent: list[SendMarkers] = []
        self.completed: Callable[[SendMarkers], None] = lambda sent: None

    def send(
        self, markers: SendMarkers, is_wanted: Callable[[], bool], completed: Callable[[SendMarkers], None]
    ) -> None:
        assert is_wanted()
        self.sent.append(markers)
        self.completed = completed


async def no_ids() -> int:
    raise AssertionError("no id is needed")


class World:
    """A prepared transaction, the markers of which are on their way."""

    def __init__(self) -> None:
        self.lab = CoordinatorLab()
        self.sender = Sender()
        replicas = SimpleNamespace(partition_count=lambda topic: 1)
        self.coordinator = TransactionCoordinator(
            cast(ReplicaManager, replicas),
            Settings.resolve(overrides={"node.id": "1"}),
            self.lab.environment,
            ClusterImage,
            no_ids,
            cast(MarkerSender, self.sender),
        )
        self.context: CoordinatorContext[TransactionCoordinatorShard] = CoordinatorContext(
            0, self.lab.log, self.coordinator._make_shard, self.lab.environment, self.coordinator._perform
        )
        self.coordinator._runtime.contexts[0] = self.context
        self.lab.turn(20)
        self._write(lambda shard, now_ms: shard.init_producer_id(InitProducerId(ID, 60_000), 7, now_ms))
        partitions = [TopicPartition("orders", 0)]
        self._write(lambda shard, now_ms: shard.add_partitions(ID, ME, partitions, 0, now_ms))
        self._write(lambda shard, now_ms: shard.end_txn(ID, EndTxn(ME, True, 0), None, now_ms))
        assert self.state is TransactionState.PREPARE_COMMIT
        assert len(self.sender.sent) == 1

    def _write(self, operation: Callable[[TransactionCoordinatorShard, int], Any]) -> None:
        asked = Asked()
        self.context.write(operation, asked)
        self.lab.turn(5)

    @property
    def state(self) -> TransactionState | None:
        known = self.context.shard.find(ID)
        return known.state if known is not None else None

    def set_writable(self, is_writable: bool) -> None:
        self.lab.log.is_writable = is_writable
        self.lab.log.append_error = None if is_writable else NotEnoughReplicasError("one is not enough")

    def markers_are_written(self) -> None:
        self.sender.completed(self.sender.sent[0])
        self.lab.turn(5)


def test_a_transaction_completes_when_its_markers_are_written() -> None:
    world = World()
    world.markers_are_written()
    assert world.state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("away_ms", [300, SWEEP_MS + 300, 3 * SWEEP_MS + 300])
def test_a_transaction_completes_soon_after_replicas_are_back(away_ms: int) -> None:
    world = World()
    world.set_writable(False)
    world.markers_are_written()
    world.lab.turn(away_ms)
    assert world.state is TransactionState.PREPARE_COMMIT
    assert len(world.sender.sent) == 1, "a sweep does not send markers again that every partition has"
    world.set_writable(True)
    world.lab.turn(2 * COMPLETION_RETRY_MS)
    assert world.state is TransactionState.COMPLETE_COMMIT
    world.lab.turn(2 * SWEEP_MS)
    assert len(world.sender.sent) == 1


def test_a_log_that_refuses_the_append_itself_is_tried_again() -> None:
    """The ISR may shrink between the check and the append; then the shard is loaded again."""
    world = World()
    world.lab.log.append_error = NotEnoughReplicasError("one is not enough")
    world.markers_are_written()
    world.lab.turn(1000)
    assert world.state is TransactionState.PREPARE_COMMIT
    world.set_writable(True)
    world.lab.turn(1000)
    assert world.state is TransactionState.COMPLETE_COMMIT


def test_a_broker_that_no_longer_coordinates_tries_no_more() -> None:
    world = World()
    world.set_writable(False)
    world.markers_are_written()
    del world.coordinator._runtime.contexts[0]
    world.set_writable(True)
    appended = world.lab.log.append_count
    world.lab.turn(SWEEP_MS // 2)
    assert world.lab.log.append_count == appended
    assert not world.coordinator._completing
