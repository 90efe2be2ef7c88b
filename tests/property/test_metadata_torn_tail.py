"""A metadata log that was cut at any byte loads up to its last whole batch, and is written on from there."""

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_disk import SimulatedDisk

from sskafka.model.ids import METADATA_TOPIC, TopicPartition
from sskafka.model.settings import Settings
from sskafka.quorum.local import LocalController
from sskafka.quorum.metadata_log import load_metadata, metadata_log_config
from sskafka.records.batch import iter_headers
from sskafka.storage.log import Log
from sskafka.storage.log_directory import LogDirectory
from sskafka.storage.recovery import open_log

SETTINGS = Settings.resolve()
DIRECTORY = "/data/__cluster_metadata-0"
LOG_FILE = f"{DIRECTORY}/00000000000000000000.log"
WRITTEN_BY_KAFKA = Path(__file__).parents[1] / "support" / "written_by_kafka" / "__cluster_metadata-0"
KAFKAS_LOG = (WRITTEN_BY_KAFKA / "00000000000000000000.log").read_bytes()


class StandingClock:
    def now_ms(self) -> int:
        return 1_800_000_000_000

    def monotonic_ms(self) -> float:
        return 0.0


def open_metadata_log(disk: SimulatedDisk) -> Log:
    topic_partition = TopicPartition(METADATA_TOPIC, 0)
    config = metadata_log_config(SETTINGS)
    return open_log(LogDirectory(disk, "/data"), DIRECTORY, topic_partition, config, now_ms=0)


def disk_with(log: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory(DIRECTORY)
    disk.open(LOG_FILE, create=True).write_at(log, 0)
    return disk


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(KAFKAS_LOG)))
def test_a_cut_at_any_byte(length: int) -> None:
    disk = disk_with(KAFKAS_LOG[:length])
    log = open_metadata_log(disk)
    ends = [position + header.size_bytes for position, header in iter_headers(KAFKAS_LOG)]
    offsets = [header.next_offset for _, header in iter_headers(KAFKAS_LOG)]
    whole = [offset for end, offset in zip(ends, offsets, strict=True) if end <= length]
    assert log.log_end_offset == (whole[-1] if whole else 0)
    load_metadata(disk, log)
    asyncio.run(LocalController(log, SETTINGS, StandingClock()).start())
    again = open_metadata_log(disk)
    assert again.log_end_offset == log.log_end_offset > (whole[-1] if whole else 0)
    load_metadata(disk, again)
