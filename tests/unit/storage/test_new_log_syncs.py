"""How many system calls logs cost: syncs until the first records may be acknowledged, and listings of directories."""

import os
from pathlib import Path

import pytest
from background_steps import Steps
from logs import NOW_MS, append

from sskafka.model.ids import TopicPartition
from sskafka.storage.disk import DiskEntry, OsDisk
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties

PARTITIONS = 1000
TOPIC_ID = bytes(range(16))
SYNCS_A_PARTITION = 4
"""partition.metadata and its name; leader-epoch-checkpoint and its name."""
ROUNDS_MAX = 4
"""Of syncs of the log directory, which holds the names of all partitions."""


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Descriptors of synced files and directories. Nothing is synced, which would take a while."""
    synced: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, synced.append)
    return synced


def test_the_first_record_in_each_of_a_thousand_partitions(tmp_path: Path, syncs: list[int]) -> None:
    steps = Steps()
    manager = LogManager.open(
        OsDisk(), [str(tmp_path)], node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=steps
    )
    syncs.clear()
    partitions = [TopicPartition("many", number) for number in range(PARTITIONS)]
    logs = [manager.open_log(partition, TOPIC_ID, LogConfig(), NOW_MS) for partition in partitions]
    for log in logs:
        append(log, b"first")
    assert syncs == [], "the event loop does not wait for the disk"
    steps.finish()
    assert {log.ready_offset for log in logs} == {1}
    assert len(syncs) <= SYNCS_A_PARTITION * PARTITIONS + ROUNDS_MAX
    syncs.clear()
    for log in logs:
        append(log, b"second")
    steps.finish()
    assert syncs == []
    manager.release()


def test_a_log_directory_is_listed_once_when_a_log_is_opened(tmp_path: Path, syncs: list[int]) -> None:
    """Listing a directory reads the size of each file: with thousands of logs that is much of a start."""
    disk = ListedDisk()
    for _ in range(2):  # new, and again as after a crash
        manager = LogManager.open(
            disk, [str(tmp_path)], node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=Steps()
        )
        disk.listed.clear()
        log = manager.open_log(TopicPartition("one", 0), TOPIC_ID, LogConfig(), NOW_MS)
        assert disk.listed == [log.directory]
        manager.release()


class ListedDisk(OsDisk):
    def __init__(self) -> None:
        super().__init__()
        self.listed: list[str] = []

    def entries(self, path: str) -> list[DiskEntry]:
        self.listed.append(path)
        return super().entries(path)
