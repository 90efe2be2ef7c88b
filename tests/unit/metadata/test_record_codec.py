from pathlib import Path

import pytest

from sskafka.metadata.features import LATEST_METADATA_VERSION
from sskafka.metadata.record_codec import UnknownRecordError, decode_record, encode_record, version_for
from sskafka.metadata.records import (
    RECORD_CLASSES,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from sskafka.records.batch import iter_headers
from sskafka.records.record import decode_records
from sskafka.wire.codec import MalformedMessageError

WRITTEN_BY_KAFKA = Path(__file__).parents[2] / "support" / "written_by_kafka" / "__cluster_metadata-0"
TOPIC_ID = bytes(range(16))


def kafkas_records() -> list[bytes]:
    log = (WRITTEN_BY_KAFKA / "00000000000000000000.log").read_bytes()
    batches = [(position, header) for position, header in iter_headers(log) if not header.is_control]
    return [record.value or b"" for position, header in batches for record in decode_records(log, header, position)]


def test_records_of_apache_kafka_are_reencoded_identically() -> None:
    same = 0
    for value in kafkas_records():
        record = decode_record(value)
        if value[2] != version_for(type(record), LATEST_METADATA_VERSION):
            assert isinstance(record, BrokerRegistrationChangeRecord), "Kafka writes these in the oldest form that fits"
            continue
        assert encode_record(record) == value
        same += 1
    assert same == 38


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_every_type_round_trips_at_every_metadata_version(cls: type[MetadataRecord]) -> None:
    for metadata_version in (7, 14, 17, 23, LATEST_METADATA_VERSION):
        record = cls()
        assert decode_record(encode_record(record, metadata_version)) == record


def test_type_numbers_are_unique() -> None:
    keys = [cls.SCHEMA.key for cls in RECORD_CLASSES]
    assert len(set(keys)) == len(keys) == 26


def test_older_clusters_get_older_versions_without_the_newer_fields() -> None:
    record = PartitionRecord(0, TOPIC_ID, [1], [1], leader=1, directories=[TOPIC_ID], eligible_leader_replicas=[2])
    assert decode_record(encode_record(record, 23)) == record
    without_elr = decode_record(encode_record(record, 17))
    assert isinstance(without_elr, PartitionRecord)
    assert (without_elr.directories, without_elr.eligible_leader_replicas) == ([TOPIC_ID], None)
    oldest = decode_record(encode_record(record, 7))
    assert isinstance(oldest, PartitionRecord)
    assert oldest.directories == []


@pytest.mark.parametrize(("metadata_version", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_registrations_follow_the_metadata_version(metadata_version: int, version: int) -> None:
    assert version_for(RegisterBrokerRecord, metadata_version) == version


def test_the_frame_is_three_varints() -> None:
    assert encode_record(TopicRecord("foo", TOPIC_ID)) == b"\x01\x02\x00" + b"\x04foo" + TOPIC_ID + b"\x00"


@pytest.mark.parametrize("value", [b"\x02\x02\x00", b"\x01\x7f\x00", b"\x01\x02\x09", b"\x01\x06\x00"])
def test_unknown_and_malformed_records_raise_different_errors(value: bytes) -> None:
    with pytest.raises(UnknownRecordError):
        decode_record(value)


def test_every_truncated_record_is_rejected() -> None:
    whole = encode_record(FeatureLevelRecord("metadata.version", 30))
    for length in range(len(whole)):
        with pytest.raises(MalformedMessageError):
            decode_record(whole[:length])
