"""A topic is copied in transactions while brokers and copiers are killed: one committed copy of every record."""

import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from clients import confluent_consumer, confluent_producer
from cluster_processes import ClusterProcesses, StartCluster
from confluent_kafka import Consumer, KafkaException, TopicPartition
from transaction_copier import GROUP
from waiting import wait_until

from sskafka.model.settings_table.profiles import FAST_FAILOVER

RECORDS = 100_000
PARTITIONS = 6
COPIERS = 3
SOURCE, TARGET = "source", "target"
TRANSACTION_TIMEOUT_S = 10
COPY_SECONDS_MAX = 300
SHOWN_MAX = 5

SETTINGS = {
    **FAST_FAILOVER,
    "transaction.state.log.num.partitions": 5,
    "offsets.topic.num.partitions": 5,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "group.initial.rebalance.delay.ms": 500,
}


class Copiers:
    """Processes that are started again whenever they end."""

    def __init__(self, script: str, bootstrap: str, log: Path) -> None:
        self._script = Path(__file__).with_name(script)
        self._bootstrap = bootstrap
        self._log = log.open("wb")
        self._processes: list[subprocess.Popen[bytes]] = []
        self.starts = 0

    def revive(self) -> None:
        """Starts those that are not running."""
        for place in range(COPIERS):
            if place == len(self._processes):
                self._processes.append(self._start(place))
            elif self._processes[place].poll() is not None:
                self._processes[place] = self._start(place)

    def kill(self, place: int) -> None:
        self._processes[place].kill()
        self._processes[place].wait()

    def close(self) -> None:
        for place in range(len(self._processes)):
            self.kill(place)
        self._log.close()

    def _start(self, place: int) -> "subprocess.Popen[bytes]":
        self.starts += 1
        command = [sys.executable, str(self._script), self._bootstrap, SOURCE, TARGET, f"copier-{place}"]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)


@contextmanager
def copiers(script: str, cluster: ClusterProcesses, directory: Path) -> Iterator[Copiers]:
    group = Copiers(script, cluster.bootstrap, directory / "copiers.log")
    try:
        yield group
    finally:
        group.close()
        sys.stderr.write((directory / "copiers.log").read_text()[-5_000:])


@pytest.mark.parametrize(
    ("script", "seed"),
    [("transaction_copier.py", 1), ("transaction_wire_copier.py", 2)],
    ids=["first version", "second version"],
)
def test_every_record_is_copied_once(start_cluster: StartCluster, tmp_path: Path, script: str, seed: int) -> None:
    chance = random.Random(seed)
    cluster = start_cluster(3, SETTINGS)
    for topic in (SOURCE, TARGET):
        cluster.create_topic(topic, PARTITIONS, min_insync_replicas=2)
    fill(cluster.bootstrap)
    with copiers(script, cluster, tmp_path) as group:
        deadline = time.monotonic() + COPY_SECONDS_MAX
        group.revive()
        while (left := records_left(cluster.bootstrap)) > 0:
            assert time.monotonic() < deadline, f"{left} records are not copied"
            time.sleep(chance.uniform(0.5, 2.5))  # the time between two failures
            fail_one(cluster, group, chance)
            group.revive()
    assert group.starts > COPIERS, "nothing was killed"
    wait_until(lambda: not open_partitions(cluster.bootstrap), "no transaction is open", TRANSACTION_TIMEOUT_S + 10)
    assert_one_copy(read_committed(cluster.bootstrap))


def fail_one(cluster: ClusterProcesses, group: Copiers, chance: random.Random) -> None:
    if chance.random() < 0.5:
        group.kill(chance.randrange(COPIERS))
        return
    victim = chance.choice(cluster.node_ids)
    cluster.kill(victim)
    time.sleep(chance.uniform(0.0, 2.0))  # how long it is away
    cluster.start_broker(victim, wait=False)
    cluster.wait_for_brokers(cluster.node_ids)
    for topic in (SOURCE, TARGET):
        cluster.wait_for_isr(topic, cluster.node_ids)


def fill(bootstrap: str) -> None:
    producer = confluent_producer(bootstrap, enable_idempotence=True, queue_buffering_max_messages=2 * RECORDS)
    for number in range(RECORDS):
        producer.produce(SOURCE, b"%d" % number)
    assert producer.flush(60) == 0


def records_left(bootstrap: str) -> int:
    consumer = confluent_consumer(bootstrap, group_id=GROUP)
    partitions = [TopicPartition(SOURCE, index) for index in range(PARTITIONS)]
    try:
        done = sum(max(found.offset, 0) for found in consumer.committed(partitions, 20))
        return sum(consumer.get_watermark_offsets(item, 20)[1] for item in partitions) - done
    except KafkaException:
        return RECORDS  # a broker is away: ask again
    finally:
        consumer.close()


def open_partitions(bootstrap: str) -> list[int]:
    """Partitions whose last stable offset is behind their high watermark."""
    ends = [end_offsets(bootstrap, isolation) for isolation in ("read_uncommitted", "read_committed")]
    return [index for index, (everything, stable) in enumerate(zip(*ends, strict=True)) if stable < everything]


def end_offsets(bootstrap: str, isolation: str) -> list[int]:
    consumer = confluent_consumer(bootstrap, isolation_level=isolation)
    try:
        return [consumer.get_watermark_offsets(TopicPartition(TARGET, index), 20)[1] for index in range(PARTITIONS)]
    finally:
        consumer.close()


class Copy(NamedTuple):
    partition: int
    offset: int
    leader_epoch: int
    value: bytes
    transaction: str
    transaction_records: int
    """How many records the transaction has."""


def read_committed(bootstrap: str) -> list[Copy]:
    consumer = confluent_consumer(bootstrap, isolation_level="read_committed", enable_partition_eof=True)
    consumer.assign([TopicPartition(TARGET, index, 0) for index in range(PARTITIONS)])
    found: list[Copy] = []
    try:
        take_to_the_ends(consumer, found)
    finally:
        consumer.close()
    return found


def take_to_the_ends(consumer: Consumer, found: list[Copy]) -> None:
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(20)
        assert message is not None, f"nothing came after {len(found)} records"
        if message.error():
            ends += 1
            continue
        headers = dict(message.headers())
        name, records = headers["transaction"].decode(), int(headers["records"])
        place = (message.partition(), message.offset(), message.leader_epoch())
        found.append(Copy(*place, message.value(), name, records))


def assert_one_copy(found: list[Copy]) -> None:
    by_value, by_transaction = defaultdict(list), defaultdict(list)
    for copy in found:
        by_value[copy.value].append(copy)
        by_transaction[copy.transaction].append(copy)
    doubled = [copies for copies in by_value.values() if len(copies) > 1]
    assert not doubled, f"{len(doubled)} records were copied more than once: {doubled[:SHOWN_MAX]}"
    lost = sorted({b"%d" % number for number in range(RECORDS)} - by_value.keys())
    assert not lost, f"{len(lost)} records were lost: {lost[:SHOWN_MAX]}"
    assert len(by_value) == RECORDS, "there are records that nobody wrote"
    torn = {name: copies for name, copies in by_transaction.items() if len(copies) != copies[0].transaction_records}
    assert not torn, f"{len(torn)} transactions are torn: {list(torn.items())[:SHOWN_MAX]}"
