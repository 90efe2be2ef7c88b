"""A metadata log that was cut at any byte loads up to its last whole batch, and is written on from there."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_disk import SimulatedDisk

from sskafka.model.settings import Settings
from sskafka.quorum.committed_metadata import CommittedMetadata
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.raft.ready import LeaderAppend, LeaderChange
from sskafka.records.batch import iter_headers

SETTINGS = Settings.resolve()
DIRECTORY = "/data/__cluster_metadata-0"
LOG_FILE = f"{DIRECTORY}/00000000000000000000.log"
WRITTEN_BY_KAFKA = Path(__file__).parents[1] / "support" / "written_by_kafka" / "__cluster_metadata-0"
KAFKAS_LOG = (WRITTEN_BY_KAFKA / "00000000000000000000.log").read_bytes()


def disk_with(log: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory(DIRECTORY)
    disk.open(LOG_FILE, create=True).write_at(log, 0)
    return disk


def opened(disk: SimulatedDisk) -> MetadataLog:
    log = MetadataLog.open(disk, "/data", SETTINGS, 0)
    CommittedMetadata(log).advance_to(log.end_offset)
    return log


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(KAFKAS_LOG)))
def test_a_cut_at_any_byte(length: int) -> None:
    disk = disk_with(KAFKAS_LOG[:length])
    log = opened(disk)
    ends = [position + header.size_bytes for position, header in iter_headers(KAFKAS_LOG)]
    offsets = [header.next_offset for _, header in iter_headers(KAFKAS_LOG)]
    whole = [offset for end, offset in zip(ends, offsets, strict=True) if end <= length]
    end_offset = whole[-1] if whole else 0
    assert log.end_offset == end_offset
    log.append(LeaderAppend(end_offset, log.last_epoch + 1, 1, LeaderChange(1, (1,), (1,))), 0)
    again = opened(disk)
    assert again.end_offset == end_offset + 1
    assert again.last_epoch == log.last_epoch
