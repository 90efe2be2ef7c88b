"""A part of a damaged compacted log is being replaced while other things happen to the log."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
from compacting import compact, pairs_of, put
from logs import NOW_MS, TP, reopen
from simulated_disk import SimulatedDisk
from virtual_time import VirtualTime

from sskafka.model.ids import ZERO_UUID
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.part_replacement import PartReplacement
from sskafka.replication.partition import Partition
from sskafka.replication.replica_reader import NotReplaceableError
from sskafka.storage.damage import Damage
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

CONFIG = LogConfig(segment_bytes=300, cleanup_policy=("compact",))
SOURCE = 2
T = TypeVar("T")


class AtOnce(Executor):
    """Runs work at once. `before` is called with the number of each piece of work."""

    def __init__(self) -> None:
        self.before: Callable[[int], None] = lambda number: None
        self.count = 0

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        self.count += 1
        try:
            self.before(self.count)
            future.set_result(work(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class OtherReplica:
    def __init__(self, log: Log) -> None:
        self._log = log

    def ask(self, request: Any, response_class: type, answered: Callable[[Any], None]) -> None:
        offset = request.topics[0].partitions[0].fetch_offset
        records = b"".join(bytes(piece.read()) for piece in self._log.read(offset, 300, self._log.log_end_offset))
        data = PartitionData(partition_index=0, records=records)
        answered(FetchResponse(responses=[FetchableTopicResponse(topic_id=ZERO_UUID, partitions=[data])]))

    def close(self) -> None: ...


class Replacing:
    """A log that was compacted and then damaged, and another replica that was not compacted."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.logs = LogManager.open(self.disk, ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1))
        self.log = self.logs.open_log(TP, ZERO_UUID, CONFIG, NOW_MS)
        other = reopen(SimulatedDisk(), CONFIG)
        for number in range(30):
            for log in (self.log, other):
                put(log, (b"%d" % (number % 3), b"%d" % number), now_ms=NOW_MS)
        for number in range(30, 50):  # unique keys: the part can end there
            for log in (self.log, other):
                put(log, (b"%d" % number, b"%d" % number), now_ms=NOW_MS)
        self.expected = {key: value for _, key, value in pairs_of(other)}
        compact(self.log, NOW_MS, last_stable_offset=35)
        self.log.advance_high_watermark(self.log.log_end_offset)
        first = self.log.segments.first
        position, header = next(iter(first.headers()))
        self.log.note_damage(
            Damage(first.base_offset, position, header.size_bytes, header.base_offset, header.next_offset, "flipped")
        )
        self.threads = AtOnce()
        links = ClusterLinks(lambda broker_id: OtherReplica(other), *[None] * 3)  # type: ignore[arg-type]
        self._parts = PartReplacement(links, self.threads, VirtualTime(), lambda: 10**12, lambda: None)

    def replace(self) -> None:
        leadership = SimpleNamespace(leader_epoch=0)
        partition = SimpleNamespace(
            topic_partition=TP,
            topic_id=ZERO_UUID,
            log=self.log,
            leadership=leadership,
            high_watermark=self.log.offsets.high_watermark,
        )
        asyncio.run(self._parts.replace(cast(Partition, partition), SOURCE))


def test_the_part_is_replaced() -> None:
    replacing = Replacing()
    replacing.replace()
    assert replacing.log.damaged is None
    assert {key: value for _, key, value in pairs_of(replacing.log)} == replacing.expected


def test_a_replica_may_be_deleted_at_any_moment() -> None:
    """The files of its log are not where they were, which is no failure of the disk."""
    undisturbed = Replacing()
    undisturbed.replace()
    for moment in range(1, undisturbed.threads.count + 1):
        replacing = Replacing()

        def delete(number: int, moment: int = moment, logs: LogManager = replacing.logs) -> None:
            if number == moment:
                logs.delete_log(TP, NOW_MS)

        replacing.threads.before = delete
        with pytest.raises(NotReplaceableError):
            replacing.replace()
        assert replacing.logs.directories[0].is_online, moment


def test_nothing_is_replaced_beside_a_damaged_transaction_index() -> None:
    """It tells which transactions were aborted where the part may end."""
    replacing = Replacing()
    index = replacing.log.segments.active.transaction_index
    replacing.disk.open(index.path, create=True).write_at(b"no entry", 0)
    index._entries = None  # as after a start
    with pytest.raises(NotReplaceableError, match="txnindex"):
        replacing.replace()
