"""Directories that SSKafka did not format: those of Apache Kafka, and directories that contain only a log."""

import asyncio
import shutil
from pathlib import Path

import pytest
from controllers import create, register, running

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import FeatureLevelRecord, MetadataRecord, PartitionRecord, TopicRecord
from sskafka.model.ids import uuid_text
from sskafka.quorum.control_batches import control_batch
from sskafka.quorum.metadata_opening import MetadataError
from sskafka.quorum.quorum_state import read_quorum_state
from sskafka.quorum.snapshots import stored_records
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, read_control_type
from sskafka.storage.disk import OsDisk
from sskafka.wire.codec import encode
from sskafka.wire.messages.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)

WRITTEN_BY_KAFKA = Path(__file__).parents[2] / "support" / "written_by_kafka"
TOPIC_ID = bytes(range(16))


def batch(base_offset: int, *records: tuple[MetadataRecord, int]) -> bytearray:
    """Records in the versions asked for, as an older writer put them."""
    values = [bytes([1, record.SCHEMA.key or 0, version]) + encode(record, version) for record, version in records]
    return build_batch(
        [NewRecord(value=value, timestamp=0) for value in values], base_offset=base_offset, leader_epoch=1
    )


def prepare(directory: Path, log: bytes) -> None:
    (directory / "__cluster_metadata-0").mkdir(parents=True)
    (directory / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(log)


async def start_and_create(directory: Path, incarnation: int, topic: str) -> ClusterImage:
    async with running(OsDisk(), str(directory)) as node:
        await register(node, incarnation)
        await create(node, topic)
        return node.plane.committed.image


async def start(directory: Path) -> None:
    async with running(OsDisk(), str(directory)):
        pass


def test_what_apache_kafka_left_is_taken_over(tmp_path: Path) -> None:
    shutil.copytree(WRITTEN_BY_KAFKA, tmp_path / "data")
    image = asyncio.run(start_and_create(tmp_path / "data", 1, "ours"))
    assert sorted(image.topics_by_name) == ["orders", "ours"]
    orders = image.topics_by_name["orders"]
    assert uuid_text(orders.topic_id) == "h6I8CH2URliWemuQ1xOFWA"
    assert [(state.leader, state.isr, state.leader_epoch) for state in orders.partitions.values()] == [(1, (1,), 2)] * 4
    assert image.topic_configs("orders") == {"retention.ms": "5000"}
    assert image.broker_default_configs() == {"min.insync.replicas": "1", "log.retention.ms": "7777"}
    state = read_quorum_state(OsDisk(), str(tmp_path / "data" / "__cluster_metadata-0"))
    assert state is not None
    assert state.leader_epoch == 2


def test_a_log_of_old_records_that_begins_at_one_is_served_through_crashes(tmp_path: Path) -> None:
    partition = PartitionRecord(0, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, directories=[bytes([3] * 16)])
    log = batch(1, (FeatureLevelRecord("metadata.version", 20), 0)) + batch(
        2, (TopicRecord("foo", TOPIC_ID), 0), (partition, 1)
    )
    prepare(tmp_path, log)
    for start in (1, 2, 3):
        image = asyncio.run(start_and_create(tmp_path, start, f"topic-{start}"))
        assert image.topics_by_name["foo"].topic_id == TOPIC_ID
        assert image.features == {"metadata.version": 20}
    assert sorted(image.topics_by_name) == ["foo", "topic-1", "topic-2", "topic-3"]


def test_what_was_prepared_is_left_as_it_was_and_written_on_in_its_own_format(tmp_path: Path) -> None:
    log = bytes(batch(1, (FeatureLevelRecord("metadata.version", 20), 0)))
    prepare(tmp_path, log)
    asyncio.run(start_and_create(tmp_path, 1, "t"))
    files = sorted((tmp_path / "__cluster_metadata-0").glob("*.log"))
    written = b"".join(file.read_bytes() for file in files)
    assert written.startswith(log)
    values = [item.record.value or b"" for item in stored_records(written) if not item.is_control]
    versions = {value[1]: value[2] for value in values}
    assert (versions[0], versions[3]) == (3, 1), "registrations and partitions as metadata.version 20 has them"


def test_unknown_records_are_passed_over(tmp_path: Path) -> None:
    unknown = build_batch([NewRecord(value=b"\x01\x7e\x00???", timestamp=0)], base_offset=2, leader_epoch=1)
    prepare(
        tmp_path, batch(0, (FeatureLevelRecord("metadata.version", 30), 0), (TopicRecord("t", TOPIC_ID), 0)) + unknown
    )
    image = asyncio.run(start_and_create(tmp_path, 1, "u"))
    assert sorted(image.topics_by_name) == ["t", "u"]


def test_a_snapshot_stands_for_the_log_before_it(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    snapshot = control_batch([SnapshotHeaderRecord()], now_ms=0)
    snapshot += batch(1, (FeatureLevelRecord("metadata.version", 30), 0), (TopicRecord("old", TOPIC_ID), 0))
    snapshot += control_batch([SnapshotFooterRecord()], now_ms=0, base_offset=3)
    (directory / "00000000000000000050-0000000001.checkpoint").write_bytes(snapshot)
    (directory / "00000000000000000040-0000000001.checkpoint").write_bytes(b"superseded, not read")
    (directory / "00000000000000000050.log").write_bytes(batch(50, (TopicRecord("new", bytes(16)), 0)))
    image = asyncio.run(start_and_create(tmp_path, 1, "ours"))
    assert sorted(image.topics_by_name) == ["new", "old", "ours"]


def test_a_log_without_its_beginning_is_refused(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    log = batch(50, (TopicRecord("new", TOPIC_ID), 0))
    (tmp_path / "__cluster_metadata-0" / "00000000000000000050.log").write_bytes(log)
    with pytest.raises(MetadataError, match="begins at 50, and no snapshot reaches there"):
        asyncio.run(start(tmp_path))


def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    damaged = control_batch([SnapshotHeaderRecord()], now_ms=0)
    damaged[-1] ^= 1
    (tmp_path / "__cluster_metadata-0" / "00000000000000000007-0000000001.checkpoint").write_bytes(damaged)
    with pytest.raises(MetadataError, match="damaged"):
        asyncio.run(start(tmp_path))


def test_a_record_that_does_not_fit_is_refused_by_its_offset(tmp_path: Path) -> None:
    prepare(tmp_path, batch(0, (PartitionRecord(0, TOPIC_ID, [1], [1]), 0)))
    with pytest.raises(MetadataError, match="offset 0 of the metadata log does not fit"):
        asyncio.run(start(tmp_path))


def test_a_quorum_with_changing_members_keeps_its_voters_in_the_log(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    voters = VotersRecord(0, [VotersRecordVoter(1, bytes([9] * 16))])
    snapshot = control_batch([SnapshotHeaderRecord(), KRaftVersionRecord(0, 1), voters], now_ms=0)
    snapshot += control_batch([SnapshotFooterRecord()], now_ms=0, base_offset=3)
    (directory / "00000000000000000000-0000000000.checkpoint").write_bytes(snapshot)
    for start in (1, 2):
        asyncio.run(start_and_create(tmp_path, start, f"t{start}"))
    control = [
        item.record for item in stored_records((directory / "00000000000000000000.log").read_bytes()) if item.is_control
    ]
    assert [read_control_type(record.key) for record in control] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
        ControlType.LEADER_CHANGE,
    ]
    assert '"data_version":1' in (directory / "quorum-state").read_text()


def test_a_snapshot_also_stands_for_a_log_that_was_being_replaced_by_it(tmp_path: Path) -> None:
    """A crash came between the removal of the old log, synced up to 45, and the first segment behind the snapshot."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    snapshot = control_batch([SnapshotHeaderRecord()], now_ms=0)
    snapshot += batch(1, (FeatureLevelRecord("metadata.version", 30), 0), (TopicRecord("old", TOPIC_ID), 0))
    snapshot += control_batch([SnapshotFooterRecord()], now_ms=0, base_offset=3)
    (directory / "00000000000000000050-0000000001.checkpoint").write_bytes(snapshot)
    (directory / "00000000000000000040-0000000001.checkpoint").write_bytes(b"superseded, not read")
    (directory / "synced-offset").write_text("45\n")
    image = asyncio.run(start_and_create(tmp_path, 1, "ours"))
    assert sorted(image.topics_by_name) == ["old", "ours"]
