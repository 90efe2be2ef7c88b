import asyncio
from concurrent.futures import ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from logs import append, read_records, reopen, values
from simulated_disk import SimulatedDisk

from sskafka.model.counters import TopicCounters
from sskafka.partition.leader_state import Leadership
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import SystemClock
from sskafka.servers.adr.errors import AdrServiceError
from sskafka.servers.adr.local_partitions import LocalPartitions
from sskafka.storage.log import Log


class Replicas:
    def __init__(self, *logs: Log) -> None:
        self._partitions = [partition_of(log) for log in logs]

    def partitions(self) -> list[Partition]:
        return self._partitions


def partition_of(log: Log) -> Partition:
    host: Any = SimpleNamespace(broker_id=2)  # a follower, whose flushes move no high watermark
    leadership = Leadership(1, 0, 0, (1,), (1,))
    return Partition(log.topic_partition, bytes(16), log, leadership, 0, 1, TopicCounters(), host)


def flush(log: Log) -> None:
    with ThreadPoolExecutor(1) as executor:
        local = LocalPartitions(cast("ReplicaManager", Replicas(log)), SystemClock(), executor)
        asyncio.run(local.flush())


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


def test_a_disk_that_fails_is_told() -> None:
    disk = SimulatedDisk()
    log = reopen(disk)
    append(log, b"a")
    log.log_directory.fail(OSError(5, "broken"))
    with pytest.raises(AdrServiceError, match="broken"):
        flush(log)
