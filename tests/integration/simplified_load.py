"""`sskafka.Producer` and `sskafka.Consumer` at work while brokers die: a writer of numbers, and readers of them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from history import PartitionHistory, Read, check, describe
from waiting import wait_until

import sskafka

TOPIC = "numbers"
PROGRESS = 100
PROGRESS_TIMEOUT_S = 45


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
            self.reads.append(Read(record.offset, int(record.value or b""), record.leader_epoch))

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
            lambda: failures or all(worker.count() >= goal for worker, goal in goals),
            "writer and readers move on",
            PROGRESS_TIMEOUT_S,
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


def verify(writer: Writer, *readers: Reader) -> None:
    """Check that every reader saw every number once, in order, at the offset that the writer received."""
    for reader in readers:
        deadline = time.monotonic() + 15
        while reader.count() < writer.count() and time.monotonic() < deadline:
            reader.step()
        violations = check(writer.history, reader.reads)
        assert not violations, describe(f"{TOPIC}-0", violations, writer.history, reader.reads)
        assert [read.offset for read in reader.reads] == list(range(writer.count()))
        reader.close()
    writer.close()


def reading_from_follower(bootstrap: str, leader: int, count: int) -> tuple[list[Reader], int]:
    """At least `count` readers of any replica, and a follower that one of them reads from; which, is drawn by lot."""
    readers: list[Reader] = []
    follower = leader
    while follower == leader or len(readers) < count:
        readers.append(Reader(bootstrap, leader_only=False))
        readers[-1].step()
        follower = next((source for reader in readers if (source := reader.source) != leader), leader)
    return readers, follower
