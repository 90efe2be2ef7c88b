"""Partitions that could not be opened at first, because the broker had no descriptors left, and that it leads later."""

import asyncio
import errno
from collections.abc import Iterator

import pytest

import sskafka
from sskafka.client.cluster import Cluster
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from sskafka.storage.disk import OsDisk, OsFile

pytestmark = pytest.mark.usefixtures("_ours")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Let the first attempt to open each segment of the coordinators' topics fail. Yields the paths of these files."""
    paths: set[str] = set()
    open_file = OsDisk.open

    def first_refused(self: OsDisk, path: str, *, create: bool = False) -> OsFile:
        is_of_coordinator = CONSUMER_OFFSETS in path or TRANSACTION_STATE in path
        if is_of_coordinator and path.endswith(".log") and path not in paths:
            paths.add(path)
            raise OSError(errno.EMFILE, "Too many open files", path)
        return open_file(self, path, create=create)

    monkeypatch.setattr(OsDisk, "open", first_refused)
    yield paths
    assert paths


def test_a_group_finds_its_coordinator(refused: set[str]) -> None:
    with sskafka.Broker({"offsets.topic.num.partitions": 2}) as broker:
        broker.produce("orders", "3 apples")
        with sskafka.Consumer(broker.bootstrap_servers, group_id="group") as consumer:
            consumer.subscribe("orders")
            assert consumer.poll(1, timeout_ms=30_000)


def test_a_transactional_producer_finds_its_coordinator(refused: set[str]) -> None:
    async def write(bootstrap: str) -> None:
        async with (
            Cluster(bootstrap) as cluster,
            TransactionalProducer(cluster, "writer") as producer,
            producer.transaction(),
        ):
            await producer.send("orders", b"4 apples")

    with sskafka.Broker({"transaction.state.log.num.partitions": 2}) as broker:
        broker.produce("orders", "3 apples")
        asyncio.run(asyncio.wait_for(write(broker.bootstrap_servers), 30))
