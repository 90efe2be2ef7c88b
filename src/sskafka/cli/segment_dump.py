"""A segment's batches and records in words: kafka-dump-log's lines, the lab's lines, or JSON."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import Any, BinaryIO, NamedTuple

from sskafka.cli.message_json import message_json
from sskafka.metadata.record_codec import UnknownRecordError, decode_record
from sskafka.records.batch import (
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    read_header,
)
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, read_control_type, read_end_transaction_marker
from sskafka.records.record import Record, decode_records
from sskafka.wire.codec import MalformedMessageError, decode
from sskafka.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from sskafka.wire.schema import Message
from sskafka.wire.varint import decode_uvarint

SEGMENT_SUFFIX = ".log"
SNAPSHOT_SUFFIX = ".checkpoint"

_SEQUENCE_MASK = 0x7FFFFFFF
_CONTROL_MESSAGES: dict[int, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


class BatchInFile(NamedTuple):
    position: int
    header: BatchHeader
    data: bytes

    @property
    def is_valid(self) -> bool:
        return crc_matches(self.data, self.header)


class Shape(NamedTuple):
    """How much is printed, and how."""

    records: bool = False
    contents: bool = False
    record_metadata: bool = True
    cluster_metadata: bool = False


def walk(file: BinaryIO, max_bytes: int | None = None) -> Iterator[BatchInFile]:
    """Batches from the front up to where there is none any more; `file` is left there."""
    position = 0
    while max_bytes is None or position < max_bytes:
        file.seek(position)
        head = file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            break
        header = read_header(head)
        try:
            check_structure(header, header.size_bytes)
        except CorruptBatchError:
            break
        data = head + file.read(header.size_bytes - HEADER_BYTES)
        if len(data) < header.size_bytes:
            break
        yield BatchInFile(position, header, data)
        position += header.size_bytes
    file.seek(position)


def dump_lines(path: Path, shape: Shape, max_bytes: int | None = None) -> Iterator[str]:
    """kafka-dump-log's lines."""
    yield _opening(path)
    with path.open("rb") as file:
        for batch in walk(file, max_bytes):
            yield batch_line(batch)
            if shape.records:
                yield from _record_lines(batch, shape)
        trailing_bytes = path.stat().st_size - file.tell()
        if trailing_bytes and max_bytes is None:
            yield f"Found {trailing_bytes} invalid bytes at the end of {path.name}"


def text_lines(path: Path) -> Iterator[str]:
    """`offset key payload`, data records alone."""
    for record in _data_records(path):
        yield f"{record.offset} {_text(record.key)} {_text(record.value)}"


def json_lines(path: Path) -> Iterator[str]:
    """One object a batch, its records inside."""
    with path.open("rb") as file:
        for batch in walk(file):
            yield json.dumps(_batch_json(batch), ensure_ascii=False)


def _opening(path: Path) -> str:
    if path.suffix == SNAPSHOT_SUFFIX:
        named = re.fullmatch(r"(\d+)-(\d+)", path.stem)
        return f"Snapshot end offset: {int(named[1])}, epoch: {int(named[2])}" if named else "KRaft bootstrap snapshot"
    return f"Log starting offset: {base_offset_of(path)}"


def base_offset_of(path: Path) -> int:
    """The number that a segment's files are named by; 0 for a file that was renamed."""
    return int(path.stem) if path.stem.isdigit() else 0


def batch_line(batch: BatchInFile) -> str:
    header = batch.header
    horizon = f"OptionalLong[{header.base_timestamp}]" if header.attributes & DELETE_HORIZON else "OptionalLong.empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_boolean(header.is_transactional)}"
        f" isControl: {_boolean(header.is_control)} deleteHorizonMs: {horizon} position: {batch.position}"
        f" {_time_kind(header)}: {header.max_timestamp} size: {header.size_bytes} magic: {header.magic}"
        f" compresscodec: {_codec_name(header)} crc: {header.crc} isvalid: {_boolean(batch.is_valid)}"
    )


def _record_lines(batch: BatchInFile, shape: Shape) -> Iterator[str]:
    try:
        for place, record in enumerate(decode_records(batch.data, batch.header)):
            words = [_record_metadata(batch.header, place, record)] if shape.record_metadata else []
            if batch.header.is_control:
                words += [_control_text(record)] if shape.record_metadata else []
            elif shape.contents:
                words += _contents(record, shape)
            yield "| " + " ".join(words) if words else ""
    except CorruptBatchError as error:
        yield f"| the records cannot be read: {error}"


def _record_metadata(header: BatchHeader, place: int, record: Record) -> str:
    sequence = NO_SEQUENCE if header.base_sequence == NO_SEQUENCE else (header.base_sequence + place) & _SEQUENCE_MASK
    keys = ",".join(key for key, _ in record.headers)
    return (
        f"offset: {record.offset} {_time_kind(header)}: {record.timestamp} keySize: {_size(record.key)}"
        f" valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{keys}]"
    )


def _contents(record: Record, shape: Shape) -> list[str]:
    if shape.cluster_metadata and record.value is not None:
        return [f"payload: {_metadata_text(record.value)}"]
    words = [] if record.key is None else [f"key: {_text(record.key)}"]
    return words if record.value is None else [*words, f"payload: {_text(record.value)}"]


def _control_text(record: Record) -> str:
    control_type = read_control_type(record.key)
    if control_type in {ControlType.ABORT, ControlType.COMMIT}:
        marker = read_end_transaction_marker(record.key, record.value)
        return f"endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    if control_type not in _CONTROL_MESSAGES:
        return f"controlType: {control_type}"
    name, message_class = _CONTROL_MESSAGES[control_type]
    value = record.value or b""
    (version,) = unpack_from(">h", value) if len(value) > 1 else (0,)
    try:
        message = decode(message_class, version, value, allow_trailing=True)
    except (MalformedMessageError, ValueError) as error:
        return f"{name} cannot be read: {error}"
    return f"{name} {_compact(message_json(message, version))}"


def _metadata_text(value: bytes) -> str:
    try:
        record = decode_record(value)
    except (UnknownRecordError, MalformedMessageError) as error:
        return f"<{error}>"
    _, position = decode_uvarint(value, 0)
    _, position = decode_uvarint(value, position)
    version, _ = decode_uvarint(value, position)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).upper()
    return _compact({"type": name, "version": version, "data": message_json(record, version)})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _data_records(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        for batch in walk(file):
            if not batch.header.is_control:
                yield from decode_records(batch.data, batch.header)


def _batch_json(batch: BatchInFile) -> dict[str, Any]:
    header = batch.header
    return {
        **header._asdict(),
        "last_offset": header.last_offset,
        "position": batch.position,
        "compression": _codec_name(header),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "timestamp_type": _time_kind(header),
        "valid": batch.is_valid,
        "records": [_record_json(record) for record in _readable(batch)],
    }


def _readable(batch: BatchInFile) -> Iterator[Record]:
    """The records up to the first that is damaged."""
    try:
        yield from decode_records(batch.data, batch.header)
    except CorruptBatchError:
        return


def _record_json(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else _text(record.key),
        "value": None if record.value is None else _text(record.value),
        "headers": [[key, None if value is None else _text(value)] for key, value in record.headers],
    }


def _text(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="replace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _time_kind(header: BatchHeader) -> str:
    return "LogAppendTime" if header.attributes & LOG_APPEND_TIME else "CreateTime"


def _codec_name(header: BatchHeader) -> str:
    try:
        return Compression(header.compression).name.lower()
    except ValueError:
        return str(header.compression)
