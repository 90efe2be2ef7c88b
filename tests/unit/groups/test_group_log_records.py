"""Records of __consumer_offsets have the bytes that Apache Kafka writes."""

import pytest
from group_lab import GROUP, GroupLab

from sskafka.groups import log_records
from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.log_records import OffsetRecord, encode_record
from sskafka.groups.offsets import CommittedOffset
from sskafka.model.coordination import StateRecord
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.group_records import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

PARTITION = TopicPartition("t", 2)
KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x02"


def test_an_offset_is_written_in_version_3() -> None:
    record = encode_record(OffsetRecord(GROUP, PARTITION, CommittedOffset(5, 3, "note", 1_000)))
    assert record.key == KEY
    assert record.value == (
        b"\x00\x03" + (5).to_bytes(8, "big") + (3).to_bytes(4, "big") + b"\x00\x04note" + (1_000).to_bytes(8, "big")
    )


def test_an_offset_with_a_time_of_expiry_is_written_in_version_1() -> None:
    record = encode_record(OffsetRecord(GROUP, PARTITION, CommittedOffset(5, 3, "", 1_000, 2_000)))
    assert record.value == (
        b"\x00\x01" + (5).to_bytes(8, "big") + b"\x00\x00" + (1_000).to_bytes(8, "big") + (2_000).to_bytes(8, "big")
    )
    assert log_records.read_offset_value(record.value) == CommittedOffset(5, -1, "", 1_000, 2_000)


@pytest.mark.parametrize("offset", [CommittedOffset(0), CommittedOffset(2**62, 7, "grüße", 1_700_000_000_000)])
def test_what_is_packed_by_hand_is_what_the_codec_says(offset: CommittedOffset) -> None:
    partition = TopicPartition("größe", 2**31 - 1)
    record = encode_record(OffsetRecord("gruppe-ü", partition, offset))
    key = OffsetCommitKey("gruppe-ü", partition.topic, partition.partition)
    value = OffsetCommitValue(
        offset.offset, offset.leader_epoch, offset.metadata, commit_timestamp=offset.commit_timestamp_ms
    )
    assert record == StateRecord(log_records.encode_key(key), log_records.encode_value(value, 3))
    assert record.value is not None
    assert log_records.read_offset_key(record.key) == ("gruppe-ü", partition)
    assert log_records.read_offset_value(record.value) == offset


def test_what_is_forgotten_has_no_value() -> None:
    assert encode_record(OffsetRecord(GROUP, PARTITION)) == StateRecord(KEY, None)
    assert encode_record(log_records.group_tombstone(GROUP)) == StateRecord(b"\x00\x02\x00\x01g", None)


def test_the_oldest_offsets_are_read() -> None:
    value = b"\x00\x00" + (5).to_bytes(8, "big") + b"\x00\x04note" + (1_000).to_bytes(8, "big")
    assert log_records.read_offset_key(b"\x00\x00" + KEY[2:]) == (GROUP, PARTITION)
    assert log_records.read_offset_value(value) == CommittedOffset(5, -1, "note", 1_000)


def test_the_newest_offsets_are_read() -> None:
    topic_id = bytes(range(16))
    value = (
        b"\x00\x04"
        + (5).to_bytes(8, "big")
        + (3).to_bytes(4, "big")
        + b"\x05note"
        + (1_000).to_bytes(8, "big")
        + b"\x01\x00\x10"
        + topic_id
    )
    assert log_records.read_offset_value(value) == CommittedOffset(5, 3, "note", 1_000)


@pytest.mark.parametrize("key", [b"\x00\x0b\x00\x01g", b"\x00\x63\x00\x01g"])
def test_records_of_other_kinds_are_passed_over(key: bytes) -> None:
    assert GroupLab().shard.decode(StateRecord(key, b"\x00\x00\x00")) is None


def test_a_group_comes_back_from_its_record_as_it_was() -> None:
    lab = GroupLab()
    lab.stable_group(3)
    value = encode_record(log_records.group_record(GROUP, lab.group.to_value())).value
    assert value is not None
    assert value[:2] == b"\x00\x03"
    read = ClassicGroup.from_value(GROUP, log_records.decode_value(GroupMetadataValue, value))
    assert read.state is State.STABLE
    assert read.to_value() == lab.group.to_value()


def test_a_group_of_the_oldest_version_is_read() -> None:
    member = b"\x00\x01m\x00\x01c\x00\x02/h" + (6_000).to_bytes(4, "big") + b"\x00\x00\x00\x01s\x00\x00\x00\x01a"
    value = b"\x00\x00\x00\x08consumer\x00\x00\x00\x04\x00\x05range\x00\x01m\x00\x00\x00\x01" + member
    group = ClassicGroup.from_value(GROUP, log_records.decode_value(GroupMetadataValue, value))
    assert (group.generation, group.leader_id, group.protocol_name) == (4, "m", "range")
    (only,) = group.members.values()
    assert (only.session_timeout_ms, only.rebalance_timeout_ms, only.assignment) == (6_000, 6_000, b"a")
