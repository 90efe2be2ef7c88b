import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from logs import append, read_records, reopen, values
from simulated_disk import SimulatedDisk, SimulatedFile

from sskafka.model.counters import TopicCounters
from sskafka.partition.leader_state import Leadership, LeaderState
from sskafka.replication.errors import ReplicationError
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import SystemClock
from sskafka.servers.adr.errors import AdrServiceError
from sskafka.servers.adr.local_partitions import LocalPartitions
from sskafka.storage import batch_count
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig

LEADERSHIP = Leadership(1, 0, 0, (1,), (1,))


class Replicas:
    def __init__(self, *logs: Log) -> None:
        self._partitions = [partition_of(log) for log in logs]

    def partitions(self) -> list[Partition]:
        return self._partitions

    def find(self, topic: str, index: int) -> Partition:
        found = [item for item in self._partitions if item.topic_partition == (topic, index) and not item.log.is_closed]
        if not found:
            raise ReplicationError
        return found[0]


class CountingThread:
    """Calls `meanwhile` each time after a thread has counted and before the event loop hears of it."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.slices = 0

    async def run(self, compute: Callable[[], None], cost: int) -> None:
        self.slices += 1
        try:
            await asyncio.to_thread(compute)
        finally:
            self.meanwhile()


def partition_of(log: Log) -> Partition:
    host: Any = SimpleNamespace(broker_id=2)  # a follower, whose flushes move no high watermark
    return Partition(log.topic_partition, bytes(16), log, LEADERSHIP, 0, 1, TopicCounters(), host)


def local_partitions(*logs: Log, executor: Executor | None = None, thread: Any = None) -> LocalPartitions:
    """With a thread to count records, this broker leads the partitions."""
    replicas = Replicas(*logs)
    for partition in replicas.partitions() if thread is not None else ():
        partition.leader = LeaderState(LEADERSHIP, 1, 0, 30_000, now_ms=0)
    return LocalPartitions(cast("ReplicaManager", replicas), SystemClock(), cast("Any", executor), thread)


def flush(log: Log) -> None:
    with ThreadPoolExecutor(1) as executor:
        asyncio.run(local_partitions(log, executor=executor).flush())


def restarted(disk: SimulatedDisk, records: int, **options: Any) -> Log:
    """A log with one record in each batch, opened again and led by this broker."""
    config = LogConfig(segment_bytes=2_000)
    log = reopen(disk, config)
    for _ in range(records):
        append(log, b"a")
    log.close()
    return reopen(disk, config, was_clean_stop=True, recovery_point=records, **options)


def counted(log: Log, thread: CountingThread) -> dict[int, int]:
    return asyncio.run(local_partitions(log, thread=thread).record_counts("orders", [0, 1]))


@pytest.mark.parametrize("is_flushed", [True, False])
def test_what_was_flushed_survives_a_crash(is_flushed: bool) -> None:
    survived = set()
    for seed in range(20):
        disk = SimulatedDisk()
        log = reopen(disk)
        append(log, b"a", b"b")
        if is_flushed:
            flush(log)
        disk.crash(Random(seed))
        survived.add(tuple(values(read_records(reopen(disk)))) == (b"a", b"b"))
    assert (False not in survived) is is_flushed, "without a flush it is luck"


def test_only_a_thread_reads_the_headers_that_a_count_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: set[bool] = set()
    log = restarted(SimulatedDisk(), 60, log_start_offset=10)
    read_at = SimulatedFile.read_at

    def observed(file: SimulatedFile, size: int, position: int) -> bytes:
        readers.add(threading.current_thread() is threading.main_thread())
        return read_at(file, size, position)

    monkeypatch.setattr(SimulatedFile, "read_at", observed)
    assert len(log.segments) > 2
    assert counted(log, CountingThread()) == {0: 50}
    assert readers == {False}
    readers.clear()
    append(log, b"b")
    assert counted(log, CountingThread()) == {0: 51}
    assert not readers


def test_requests_that_count_the_same_log_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_count, "SLICE_HEADERS", 4)
    alone, together = CountingThread(), CountingThread()
    assert counted(restarted(SimulatedDisk(), 60), alone) == {0: 60}
    local = local_partitions(restarted(SimulatedDisk(), 60), thread=together)

    async def count_twice() -> list[dict[int, int]]:
        return await asyncio.gather(local.record_counts("orders", [0]), local.record_counts("orders", [0]))

    assert asyncio.run(count_twice()) == [{0: 60}, {0: 60}]
    assert together.slices == alone.slices >= 15


def append_one(log: Log) -> None:
    append(log, b"b")


def truncate_by_one(log: Log) -> None:
    log.truncate_to(log.log_end_offset - 1)


def replace_the_newest(log: Log) -> None:
    log.truncate_to(log.log_end_offset - 8)
    append(log, *[b"longer"] * 8)


def delete_one(log: Log) -> None:
    log.increment_log_start_offset(log.log_start_offset + 1)


@pytest.mark.parametrize("change", [append_one, truncate_by_one, replace_the_newest, delete_one])
def test_a_log_that_changes_while_it_is_counted(monkeypatch: pytest.MonkeyPatch, change: Callable[[Log], None]) -> None:
    monkeypatch.setattr(batch_count, "SLICE_HEADERS", 4)
    log = restarted(SimulatedDisk(), 60)
    changes = iter(range(8))

    def meanwhile() -> None:
        if next(changes, None) is not None:
            change(log)

    assert counted(log, CountingThread(meanwhile)) == {0: log.log_end_offset - log.log_start_offset}
    assert next(changes, None) is None


def test_a_log_that_is_closed_while_it_is_counted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_count, "SLICE_HEADERS", 4)
    log = restarted(SimulatedDisk(), 60)
    assert counted(log, CountingThread(log.close)) == {}


def test_a_disk_that_fails_is_told() -> None:
    disk = SimulatedDisk()
    log = reopen(disk)
    append(log, b"a")
    log.log_directory.fail(OSError(5, "broken"))
    with pytest.raises(AdrServiceError, match="broken"):
        flush(log)
