"""A search by timestamp keeps the event loop free, however many headers have to be read."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from logs import NOW_MS, append, batch, reopen
from simulated_disk import SimulatedDisk, SimulatedFile

from sskafka.model.counters import TopicCounters
from sskafka.model.errors import ErrorCode
from sskafka.partition.leader_state import Leadership
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.handlers.offsets import OffsetHandlers
from sskafka.servers.kafka.request import Request
from sskafka.storage.log import Log
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

BATCHES = 10_000
TURN_BYTES_MAX = 32 * 1024
LEADERSHIP = Leadership(1, 0, 0, (1,), (1,))


class Thread:
    """Calls `meanwhile` after each use of the thread, before the event loop hears of it."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.uses = 0

    async def run(self, compute: Callable[[], Any], cost: int) -> Any:
        self.uses += 1
        try:
            return await asyncio.to_thread(compute)
        finally:
            self.meanwhile()


class Replicas:
    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.finds = 0

    def find(self, topic: str, index: int) -> Partition:
        self.finds += 1
        return self.partition


@pytest.fixture
def log() -> Log:
    """Batches of one timestamp, which are one entry of the time index, and a later one."""
    log = reopen(SimulatedDisk())
    for _ in range(BATCHES // 100):
        log.append_as_leader(batch(b"a") * 100, 0, NOW_MS)
    append(log, b"b", timestamp=NOW_MS + 2)
    log.advance_high_watermark(log.log_end_offset)
    return log


@pytest.fixture
def bytes_on_loop(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    read_at = SimulatedFile.read_at

    def observed(file: SimulatedFile, size: int, position: int) -> bytes:
        if threading.current_thread() is threading.main_thread():
            found.append(size)
        return read_at(file, size, position)

    monkeypatch.setattr(SimulatedFile, "read_at", observed)
    return found


def leader_of(log: Log) -> Partition:
    host: Any = SimpleNamespace(
        broker_id=1, lag_max_ms=30_000, monotonic_ms=lambda: 0, wake_soon=lambda partition: None
    )
    return Partition(log.topic_partition, bytes(16), log, LEADERSHIP, 0, 1, TopicCounters(), host)


def ask(replicas: Replicas, thread: Thread, *topics: ListOffsetsTopic) -> list[ListOffsetsTopicResponse]:
    handlers = OffsetHandlers(cast("ReplicaManager", replicas), cast("Any", thread))
    request = cast("Request", SimpleNamespace(version=7, may_on_topic=lambda operation, topic: True))
    return asyncio.run(handlers.list_offsets(ListOffsetsRequest(replica_id=-1, topics=list(topics)), request)).topics


def find(partition: Partition, timestamp: int, thread: Thread) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsTopic("orders", [ListOffsetsPartition(0, timestamp=timestamp)])
    return ask(Replicas(partition), thread, wanted)[0].partitions[0]


def test_a_thread_reads_the_headers_of_a_long_search(log: Log, bytes_on_loop: list[int]) -> None:
    thread = Thread()
    found = find(leader_of(log), NOW_MS + 1, thread)
    assert (found.error_code, found.timestamp, found.offset) == (ErrorCode.NONE, NOW_MS + 2, BATCHES)
    turns = thread.uses + 1
    assert sum(bytes_on_loop) / turns < TURN_BYTES_MAX < log.size_bytes // 20


@pytest.mark.parametrize(("timestamp", "offset"), [(NOW_MS, 0), (NOW_MS + 3, -1), (0, 0)])
def test_a_short_search_needs_no_thread(log: Log, timestamp: int, offset: int) -> None:
    thread = Thread()
    assert find(leader_of(log), timestamp, thread).offset == offset
    assert thread.uses == 0


def test_a_partition_that_is_named_in_two_topic_entries_is_refused(log: Log) -> None:
    replicas = Replicas(leader_of(log))
    wanted = [ListOffsetsTopic("orders", [ListOffsetsPartition(0, timestamp=NOW_MS)]) for _ in range(3)]
    other = ListOffsetsTopic("orders", [ListOffsetsPartition(1, timestamp=NOW_MS)])
    (answer,) = ask(replicas, Thread(), *wanted, other)
    assert [(found.partition_index, found.error_code, found.offset) for found in answer.partitions] == [
        (0, ErrorCode.INVALID_REQUEST, -1),
        (1, ErrorCode.NONE, 0),
    ]
    assert replicas.finds == 1


def roll_and_append(log: Log) -> None:
    log.roll(NOW_MS)
    append(log, b"c", timestamp=NOW_MS + 3)


def delete_all_but_the_last(log: Log) -> None:
    log.roll(NOW_MS)
    log.increment_log_start_offset(log.log_end_offset)
    append(log, b"c", timestamp=NOW_MS + 3)
    log.advance_high_watermark(log.log_end_offset)


@pytest.mark.parametrize(
    ("change", "offset"), [(roll_and_append, BATCHES), (delete_all_but_the_last, BATCHES + 1)], ids=["roll", "delete"]
)
def test_a_log_that_changes_during_a_search(log: Log, change: Callable[[Log], None], offset: int) -> None:
    changes = iter([change])
    thread = Thread(lambda: next(changes, lambda log: None)(log))
    partition = leader_of(log)
    found = find(partition, NOW_MS + 1, thread)
    assert (found.error_code, next(changes, None)) == (ErrorCode.NONE, None)
    # A record behind the high watermark of the request is not answered yet.
    assert found.offset == (offset if offset <= BATCHES else -1)


def test_a_replica_that_is_truncated_during_a_search_no_longer_leads(log: Log) -> None:
    partition = leader_of(log)

    def follow() -> None:
        partition.leader = None
        partition.log.truncate_to(10)

    found = find(partition, NOW_MS + 1, Thread(follow))
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
