import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from sskafka.client.cluster import Cluster
from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions
from sskafka.client.errors import BrokerUnavailableError
from sskafka.client.fetch_sources import FetchSources
from sskafka.client.fetcher import Position
from sskafka.client.metadata import BrokerView, MetadataSnapshot, PartitionView, TopicView
from sskafka.model.ids import TopicPartition

T0 = TopicPartition("t", 0)


class Draws:
    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


async def refuse(address: Address, options: ConnectionOptions) -> BrokerConnection:
    raise BrokerUnavailableError(f"{address} refused")


def view(leader: int = 1, isr: Sequence[int] = (1, 2, 3), brokers: Iterable[int] = (1, 2, 3)) -> MetadataSnapshot:
    partition = PartitionView(0, leader, 5, (1, 2, 3), tuple(isr), (), 0)
    return MetadataSnapshot(
        brokers={node: BrokerView(node, Address("h", 9000 + node), None) for node in brokers},
        topics={"t": TopicView("t", b"t" * 16, False, 0, {0: partition})},
    )


def source(position: Position, known: MetadataSnapshot, *draws: float, failed: int | None = None) -> int | None:
    """Return the broker that the position is read from."""

    async def work() -> int | None:
        cluster = Cluster("h:1", connector=refuse)
        cluster.adopt(known)
        if failed is not None:
            with suppress(BrokerUnavailableError):
                await cluster.connection_to(failed)
        sources = await FetchSources(cluster, Draws(*draws)).by_broker({T0: position})
        return next(iter(sources), None)

    return asyncio.run(work())


def test_partitions_are_read_from_the_leader_by_default() -> None:
    assert source(Position(0), view(leader=2)) == 2
    assert source(Position(0), view(leader=-1)) is None


def test_a_random_in_sync_replica_is_chosen_and_kept() -> None:
    position = Position(0, reads_any_replica=True)
    assert source(position, view(), 0.99) == 3
    assert source(position, view()) == 3, "no second draw"
    assert source(position, view(isr=(1, 2)), 0.5) == 2, "it is no longer in sync"
    assert source(position, view(brokers=(1, 3)), 0.0) == 1, "it has left the cluster"


def test_a_recently_failed_replica_is_avoided() -> None:
    position = Position(0, reads_any_replica=True, replica=3)
    assert source(position, view(), 0.99, failed=3) == 2


def test_followers_serve_a_partition_without_a_leader() -> None:
    position = Position(0, reads_any_replica=True)
    assert source(position, view(leader=-1, isr=(2,)), 0.0) == 2


def test_the_leader_is_used_if_no_replica_is_healthy_or_if_required() -> None:
    assert source(Position(0, reads_any_replica=True), view(isr=(9,))) == 1
    assert source(Position(0, reads_any_replica=True, must_ask_leader=True, replica=3), view()) == 1
