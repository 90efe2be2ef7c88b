"""Damaged batches of a log are being replaced while other things happen to the log."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from logs import NOW_MS, TP, append, read_bytes
from simulated_disk import SimulatedDisk

from sskafka.model.ids import ZERO_UUID
from sskafka.replication.batch_replacement import BatchReplacement
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.replication.replica_reader import NotReplaceableError
from sskafka.storage.damage import Damage
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

OLD, NEW = b"o" * 16, b"n" * 16
LEADER = 2


class Leader:
    """Answers with these batches, and something else happens first."""

    def __init__(self, batches: bytes, before: Callable[[], None]) -> None:
        self._batches = batches
        self._before = before

    def ask(self, request: Any, response_class: Any, answered: Callable[[Any], None]) -> None:
        self._before()
        data = PartitionData(partition_index=0, records=self._batches)
        answered(FetchResponse(responses=[FetchableTopicResponse(topic_id=ZERO_UUID, partitions=[data])]))

    def close(self) -> None: ...


def test_nothing_is_written_into_a_new_topic_of_the_same_name() -> None:
    """The file of the deleted log would be opened by its path, at which the new log has its own."""
    logs = LogManager.open(SimulatedDisk(), ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1))
    old = logs.open_log(TP, OLD, LogConfig(), NOW_MS)
    append(old, b"old")
    batches = read_bytes(old, 0)
    damage = Damage(0, 0, len(batches), 0, 1, "flipped")
    old.note_damage(damage)

    def create_again() -> None:
        logs.delete_log(TP, NOW_MS)
        append(logs.open_log(TP, NEW, LogConfig(), NOW_MS), b"new")

    leader = Leader(batches, create_again)
    links = ClusterLinks(lambda broker_id: leader, *[None] * 3)  # type: ignore[arg-type]
    partition = SimpleNamespace(
        topic_partition=TP,
        topic_id=OLD,
        log=old,
        leader=None,
        leadership=SimpleNamespace(leader_id=LEADER, leader_epoch=0),
        high_watermark=1,
        epoch_of=old.epochs.epoch_of,
    )
    parts: Any = None
    replacement = BatchReplacement(links, ThreadPoolExecutor(1), parts)
    with pytest.raises(NotReplaceableError):
        asyncio.run(replacement.replace(cast(Partition, partition), damage))
    new = logs.get(TP)
    assert new is not None
    assert b"new" in read_bytes(new, 0)
