"""Brokers die under `sskafka.Producer` and `sskafka.Consumer`: readers go on from other replicas, writers with the new
leader; nothing is lost, nothing comes twice, on the way in or out."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from history import PartitionHistory, Read, check
from waiting import wait_until

import sskafka
from sskafka.model.settings_table.profiles import FAST_FAILOVER

pytestmark = pytest.mark.usefixtures("_ours")

TOPIC = "numbers"
PROGRESS = 100
READERS = 4


class Writer:
    """Sends 0, 1, 2, ... one after the other, each when the one before it is acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.history = PartitionHistory()
        self._producer = sskafka.Producer(bootstrap)

    def step(self) -> None:
        number = self.history.sent
        self.history.sent += 1
        delivery = self._producer.send(TOPIC, "key", str(number))
        self.history.acknowledge(number, delivery.offset, time.monotonic())

    def count(self) -> int:
        return len(self.history.offsets)

    def close(self) -> None:
        self._producer.close()


class Reader:
    def __init__(self, bootstrap: str, *, leader_only: bool) -> None:
        self.reads: list[Read] = []
        self.consumer = sskafka.Consumer(bootstrap, fetch_max_wait_ms=100)
        self.consumer.subscribe(TOPIC, 0, leader_only)

    @property
    def source(self) -> int:
        return self.consumer.source(TOPIC, 0)

    def step(self) -> None:
        for record in self.consumer.poll(10, timeout_ms=200):
            self.reads.append(Read(record.offset, int(record.value or b"")))

    def count(self) -> int:
        return len(self.reads)

    def close(self) -> None:
        self.consumer.close()


@contextmanager
def working(*workers: Writer | Reader) -> Iterator[Callable[[], None]]:
    """Each on a thread of its own; gives a function that waits until every one of them has moved on."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def run(worker: Writer | Reader) -> None:
        try:
            while not ended.is_set():
                worker.step()
        except BaseException as error:
            failures.append(error)

    def progress() -> None:
        goals = [(worker, worker.count() + PROGRESS) for worker in workers]
        wait_until(
            lambda: failures or all(worker.count() >= goal for worker, goal in goals), "writer and readers move on", 30
        )
        assert failures == []

    threads = [threading.Thread(target=run, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        progress()
        yield progress
        progress()
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def start(start_cluster: StartCluster) -> ClusterProcesses:
    cluster = start_cluster(3, dict(FAST_FAILOVER))
    cluster.create_topic(TOPIC, 1, min_insync_replicas=2)
    return cluster


def verify(writer: Writer, *readers: Reader) -> None:
    """Every reader saw every number, in order, once, where the writer was told that it is."""
    for reader in readers:
        deadline = time.monotonic() + 15
        while reader.count() < writer.count() and time.monotonic() < deadline:
            reader.step()
        assert not check(writer.history, reader.reads)
        assert [read.offset for read in reader.reads] == list(range(writer.count()))
        reader.close()
    writer.close()


def test_a_follower_dies_and_its_readers_go_on_at_other_replicas(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    leader = cluster.partitions(TOPIC)[0].leader
    writer, readers = Writer(cluster.bootstrap), []
    victim = leader
    while victim == leader or len(readers) < READERS:  # which replica one reads from is drawn by lot
        readers.append(Reader(cluster.bootstrap, leader_only=False))
        readers[-1].step()
        victim = next((source for reader in readers if (source := reader.source) != leader), leader)
    with working(writer, *readers) as progress:
        cluster.kill(victim)
        progress()
        assert all(reader.source != victim for reader in readers)
    verify(writer, *readers)


def test_the_leader_dies_and_clients_find_the_new_one(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    writer = Writer(cluster.bootstrap)
    readers = [Reader(cluster.bootstrap, leader_only=True), Reader(cluster.bootstrap, leader_only=False)]
    with working(writer, *readers) as progress:
        old = cluster.partitions(TOPIC)[0].leader
        cluster.kill(old)
        cluster.wait_for_new_leader(TOPIC, 0, old)
        progress()
    verify(writer, *readers)
