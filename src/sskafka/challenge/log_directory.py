"""The log directory that the challenge prepares for a program on its first start.

    meta.properties
    __cluster_metadata-0/00000000000000000000.log      from offset 1: FeatureLevel, then Topic and Partition records
    <topic>-<n>/00000000000000000000.log               batches whose records have header count -1, all from the same
                                                       producer and with the same sequence
    <topic>-<n>/partition.metadata                     the topic id in padded base64

There are no indexes, checkpoints or other files. The program must serve the batches unchanged.
"""

import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import FeatureLevelRecord, MetadataRecord, PartitionRecord, TopicRecord
from sskafka.model.ids import CHALLENGE_CLUSTER_ID, METADATA_TOPIC, Uuid, uuid_text
from sskafka.records.batch import BatchHeader
from sskafka.records.builder import NewRecord, build_batch, frame
from sskafka.records.varint import encode_varint

NODE_ID = 1
METADATA_VERSION = 20  # 3.8: Topic records have version 0, Partition records version 1
FIRST_SEGMENT = "00000000000000000000.log"
TIMESTAMP_MS = 1_726_045_943_832
LEADER_EPOCH = 0
PRODUCER_ID = 0

_FIRST_OFFSET = 1
_METADATA_EPOCH = 1
DIRECTORY_ID = bytes.fromhex("10000000000040008000000000000001")
_NO_KEY = encode_varint(-1)
_NO_HEADER_COUNT = encode_varint(-1)


class DirectoryInUseError(Exception):
    """The directory contains files that the tester did not write."""


@dataclass(frozen=True, slots=True)
class PreparedTopic:
    name: str
    topic_id: Uuid
    batches: tuple[tuple[bytes, ...], ...]
    """Batches in the log files, by partition."""
    directory_id: Uuid = DIRECTORY_ID
    """Directory of the partitions according to the metadata log."""

    @property
    def partitions(self) -> range:
        return range(len(self.batches))


def prepare(directory: Path, topics: Sequence[PreparedTopic]) -> None:
    """Write the directory, replacing that of an earlier run. Without topics there is no metadata log."""
    _clear(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "meta.properties").write_text(_meta_properties())
    if topics:
        _write_segment(directory / f"{METADATA_TOPIC}-0", _metadata_log(topics))
    for topic in topics:
        for partition, batches in enumerate(topic.batches):
            _write_segment(directory / f"{topic.name}-{partition}", b"".join(batches))
            padded = urlsafe_b64encode(topic.topic_id).decode()
            metadata = directory / f"{topic.name}-{partition}" / "partition.metadata"
            metadata.write_text(f"version: 0\ntopic_id: {padded}\n")


def prepared_batches(values: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return one batch per value, at offsets from 0 on."""
    return tuple(_unvalidated_batch(offset, value) for offset, value in enumerate(values))


def produced_batch(values: Iterable[bytes]) -> bytes:
    """Return a valid batch as a producer sends it."""
    records = [NewRecord(None, value, (), TIMESTAMP_MS) for value in values]
    return bytes(build_batch(records, leader_epoch=LEADER_EPOCH))


def segment_of(directory: Path, topic: str, partition: int) -> Path:
    return directory / f"{topic}-{partition}" / FIRST_SEGMENT


def _clear(directory: Path) -> None:
    if not directory.exists() or not any(directory.iterdir()):
        return
    properties = directory / "meta.properties"
    if not properties.is_file() or f"cluster.id={CHALLENGE_CLUSTER_ID}" not in properties.read_text():
        raise DirectoryInUseError(f"{directory} contains files that this tester did not write")
    shutil.rmtree(directory)


def _meta_properties() -> str:
    lines = ("version=1", f"cluster.id={CHALLENGE_CLUSTER_ID}", f"node.id={NODE_ID}")
    return "".join(f"{line}\n" for line in (*lines, f"directory.id={uuid_text(DIRECTORY_ID)}"))


def _write_segment(directory: Path, log: bytes) -> None:
    directory.mkdir()
    (directory / FIRST_SEGMENT).write_bytes(log)


def _metadata_log(topics: Sequence[PreparedTopic]) -> bytes:
    changes: list[list[MetadataRecord]] = [[FeatureLevelRecord("metadata.version", METADATA_VERSION)]]
    changes += [_topic_records(topic) for topic in topics]
    log, offset = b"", _FIRST_OFFSET
    for records in changes:
        new = [NewRecord(None, encode_record(record, METADATA_VERSION), (), TIMESTAMP_MS) for record in records]
        log += build_batch(new, base_offset=offset, leader_epoch=_METADATA_EPOCH)
        offset += len(records)
    return log


def _topic_records(topic: PreparedTopic) -> list[MetadataRecord]:
    partitions = [
        PartitionRecord(
            partition_id=partition,
            topic_id=topic.topic_id,
            replicas=[NODE_ID],
            isr=[NODE_ID],
            leader=NODE_ID,
            leader_epoch=LEADER_EPOCH,
            partition_epoch=0,
            directories=[topic.directory_id],
        )
        for partition in topic.partitions
    ]
    return [TopicRecord(topic.name, topic.topic_id), *partitions]


def _unvalidated_batch(offset: int, value: bytes) -> bytes:
    """Return a batch that no broker accepts from a producer, but that must be served without validation."""
    record = b"\0\0\0" + _NO_KEY + encode_varint(len(value)) + value + _NO_HEADER_COUNT
    header = BatchHeader(
        base_offset=offset,
        length=0,
        leader_epoch=LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=TIMESTAMP_MS,
        max_timestamp=TIMESTAMP_MS,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        record_count=1,
    )
    return bytes(frame(header, encode_varint(len(record)) + record))
