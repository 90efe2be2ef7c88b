"""How many syncs a thousand new partitions take until their first records may be acknowledged."""

import os
from pathlib import Path

import pytest
from background_steps import Steps
from logs import NOW_MS, append

from sskafka.model.ids import TopicPartition
from sskafka.storage.disk import OsDisk
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
