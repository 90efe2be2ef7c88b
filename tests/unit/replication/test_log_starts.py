"""Advances of the log start offset: DeleteRecords on every replica, and retention by housekeeping."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from replica_cluster import TOPIC, ReplicaCluster
from replica_requests import produce

from sskafka.metadata.records import ConfigRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.records.builder import NewRecord, build_batch
from sskafka.replication.housekeeping import Housekeeping
from sskafka.servers.kafka.handlers.delete_records import PARTITIONS_PER_TURN, DeleteRecordsHandler
from sskafka.servers.kafka.request_pieces import pieces_of
from sskafka.storage.errors import StorageError
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

WHOEVER: Any = SimpleNamespace(may_on_topic=lambda operation, topic: True)


@pytest.fixture
def cluster() -> ReplicaCluster:
    made = ReplicaCluster()
    made.controller.create_topic([[1, 2, 3]], {"segment.bytes": "100", "file.delete.delay.ms": "5000"})
    made.time.run_for(300)
    for number in range(6):
        produce(made, b"%d" % number)
    return made


async def at_once() -> None:
    pass


def delete(
    cluster: ReplicaCluster,
    offset: int,
    *,
    timeout_ms: int = 5000,
    keep: Callable[[], Awaitable[None]] = at_once,
    while_waiting: Callable[[], None] = lambda: None,
) -> DeleteRecordsPartitionResult:
    handler = DeleteRecordsHandler(cluster.brokers[1].replicas, keep)
    topics = [DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, offset)])]

    async def run() -> DeleteRecordsPartitionResult:
        asyncio.get_running_loop().call_later(0.01, while_waiting)
        response = await handler.delete_records(DeleteRecordsRequest(topics, timeout_ms), WHOEVER)
        return response.topics[0].partitions[0]

    return asyncio.run(run())


def starts(cluster: ReplicaCluster) -> list[int]:
    return [cluster.partition(broker).log.log_start_offset for broker in cluster.brokers]


def test_delete_records_is_answered_when_the_followers_have_followed(cluster: ReplicaCluster) -> None:
    answer = delete(cluster, 3, while_waiting=lambda: cluster.time.run_for(500))
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    assert starts(cluster) == [3, 3, 3]


def test_a_follower_that_does_not_follow_is_waited_for_no_longer_than_asked(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    answer = delete(cluster, 3, timeout_ms=30, while_waiting=lambda: cluster.time.run_for(100))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.partition(1).log.log_start_offset == 3


def test_a_follower_whose_broker_is_fenced_is_not_waited_for(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    cluster.controller.fence(3)
    cluster.time.run_for(300)
    answer = delete(cluster, 3, while_waiting=lambda: cluster.time.run_for(500))
    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_who_waits_hears_of_a_new_leader(cluster: ReplicaCluster) -> None:
    def move() -> None:
        cluster.controller.move_leader(0, 2)
        cluster.time.run_for(1)

    cluster.network.cut.add(frozenset((1, 3)))
    answer = delete(cluster, 3, while_waiting=move)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_start_that_could_not_be_written_down_is_a_storage_error(cluster: ReplicaCluster) -> None:
    async def no_room() -> None:
        raise StorageError("no room")

    assert delete(cluster, 3, keep=no_room).error_code == ErrorCode.KAFKA_STORAGE_ERROR


# -- retention


class Keeper:
    """Housekeeping of one broker, a round whenever a test says so."""

    def __init__(self, cluster: ReplicaCluster, broker_id: int = 1, **settings: str) -> None:
        broker = cluster.brokers[broker_id]
        overrides = {"node.id": "1", **{name.replace("_", "."): value for name, value in settings.items()}}
        resolved = Settings.resolve(file={}, environment={}, overrides=overrides)
        self._executor = ThreadPoolExecutor(1)
        self._housekeeping = Housekeeping(broker.logs, broker.replicas, lambda: resolved, cluster.time, self._executor)

    def round(self) -> None:
        asyncio.run(self._housekeeping._round())


def retain(cluster: ReplicaCluster, **settings: str) -> None:
    records = [ConfigRecord(2, TOPIC, name.replace("_", "."), value) for name, value in settings.items()]
    cluster.controller.commit(*records)
    cluster.time.run_for(100)


def test_old_segments_go_and_the_followers_follow(cluster: ReplicaCluster) -> None:
    keeper = Keeper(cluster)
    keeper.round()
    cluster.time.run_for(1000)
    retain(cluster, retention_ms="500")
    keeper.round()
    assert starts(cluster)[0] == 0, "it is not time yet to look"
    cluster.time.run_for(30_000)  # log.initial.task.delay.ms
    keeper.round()
    assert starts(cluster)[0] == 6
    cluster.time.run_for(500)
    assert starts(cluster) == [6, 6, 6]
    assert produce(cluster, b"next").base_offset == 6


def test_the_files_lie_aside_for_a_while(cluster: ReplicaCluster) -> None:
    keeper = Keeper(cluster, log_retention_check_interval_ms="1")
    keeper.round()
    retain(cluster, retention_bytes="0")

    def aside() -> int:
        return len([path for path in cluster.disks[1].nodes if path.endswith(".log.deleted")])

    keeper.round()
    assert aside() == 6
    cluster.time.run_for(4900)
    keeper.round()
    assert aside() == 6
    cluster.time.run_for(200)
    keeper.round()
    cluster.time.run_for(10)
    assert aside() == 0


def test_a_log_whose_files_cannot_be_renamed_holds_up_no_other() -> None:
    cluster = ReplicaCluster(brokers=1, min_insync=1)
    cluster.controller.create_topic([[1], [1]], {"segment.bytes": "100", "retention.bytes": "0"})
    cluster.time.run_for(300)
    broker = cluster.brokers[1]
    keeper = Keeper(cluster, log_retention_check_interval_ms="1")
    keeper.round()
    cluster.time.run_for(10)
    partitions = list(broker.replicas.partitions())
    for partition in partitions:
        partition.log.append_as_leader(_batch(), 0, cluster.time.now_ms())
        partition.log.advance_high_watermark(1)

    def full(operation: str, path: str) -> None:
        if operation == "rename" and "orders-0" in path:
            raise OSError(errno.ENOSPC, "No space left on device")

    cluster.disks[1].fault = full
    keeper.round()
    assert [partition.log.log_start_offset for partition in partitions] == [0, 1]
    cluster.disks[1].fault = None
    cluster.time.run_for(10)
    keeper.round()
    assert [partition.log.log_start_offset for partition in partitions] == [1, 1]


def _batch() -> bytearray:
    return build_batch([NewRecord(b"k", b"v", (), 0)])


def test_many_partitions_are_handled_in_slices_and_written_to_the_disk_once(cluster: ReplicaCluster) -> None:
    """A write for every piece of the request once took two minutes for 10,000 partitions."""
    assert pieces_of(ApiKey.DELETE_RECORDS, 2) is None
    writes: list[int] = []
    turns: list[int] = []

    async def keep() -> None:
        writes.append(len(turns))

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            turns.append(1)
            loop.call_soon(turn)

        turn()
        handler = DeleteRecordsHandler(cluster.brokers[1].replicas, keep)
        topics = [DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, 0)]) for _ in range(10 * PARTITIONS_PER_TURN)]
        response = await handler.delete_records(DeleteRecordsRequest(topics, 0), WHOEVER)
        assert len(response.topics) == len(topics)

    asyncio.run(run())
    assert len(writes) == 1
    assert writes[0] >= 10, "other work came in between"
