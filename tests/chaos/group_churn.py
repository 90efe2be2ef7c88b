"""Members of a group that come and go, each a real client on a thread of its own, and what they were promised."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from random import Random

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

SESSION_MS = 6_000
POLL_S = 0.1
COMMIT_EVERY_S = 0.3


class Promises:
    """Offsets whose commit was answered with success."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[int, int] = defaultdict(int)
        self.count = 0

    def committed(self, partitions: list[TopicPartition]) -> None:
        with self._lock:
            for item in partitions:
                if item.offset >= 0 and item.error is None:
                    self._highest[item.partition] = max(self._highest[item.partition], item.offset)
                    self.count += 1

    @property
    def highest(self) -> dict[int, int]:
        with self._lock:
            return dict(self._highest)


class Member:
    def __init__(self, client_id: str, bootstrap: str, group: str, topic: str, promises: Promises) -> None:
        self.client_id = client_id
        self._promises = promises
        self._stops = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": client_id,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 500,
                "partition.assignment.strategy": "range",
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._stops.set()

    def join_thread(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "a member does not end"

    def _run(self) -> None:
        commit_at = time.monotonic() + COMMIT_EVERY_S
        while not self._stops.is_set():
            self._consumer.poll(POLL_S)
            if time.monotonic() >= commit_at:
                self._commit()
                commit_at = time.monotonic() + COMMIT_EVERY_S
        self._consumer.close()

    def _commit(self) -> None:
        """Nothing is promised where there is nothing to commit, or a rebalance is under way."""
        with suppress(KafkaException):
            self._promises.committed(self._consumer.commit(asynchronous=False) or [])


class Churn:
    """As many members as wanted; every so often one leaves and another comes."""

    def __init__(self, bootstrap: str, group: str, topic: str, size: int, seed: int) -> None:
        self.promises = Promises()
        self._numbers = count()
        self._make = lambda: Member(f"m{next(self._numbers)}", bootstrap, group, topic, self.promises)
        self._random = Random(seed)
        self._gone: list[Member] = []
        self.members = [self._make() for _ in range(size)]

    def replace_one(self) -> None:
        leaving = self._random.choice(self.members)
        self.members.remove(leaving)
        leaving.leave()
        self._gone.append(leaving)
        self.members.append(self._make())

    def replace_for(self, duration_s: float) -> None:
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self.replace_one()
            time.sleep(self._random.uniform(0.2, 1.0))  # the pace of the churn

    def close(self) -> None:
        for member in self.members:
            member.leave()
        for member in (*self.members, *self._gone):
            member.join_thread()


@contextmanager
def producing(bootstrap: str, topic: str, partitions: int) -> Iterator[None]:
    """A trickle of records, so that offsets move."""
    stops = threading.Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
        number = 0
        while not stops.wait(0.01):
            producer.produce(topic, b"%d" % number, partition=number % partitions)
            producer.poll(0)
            number += 1
        producer.flush(10)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stops.set()
        thread.join(20)
