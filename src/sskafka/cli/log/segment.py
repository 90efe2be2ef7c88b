"""A segment's batches and records as text: kafka-dump-log's lines, the lab's lines, or JSON.

Record batches (format 2) and messages of formats 0 and 1 may be mixed in one file.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sskafka.cli.log.contents import Decoder, PlainDecoder, compact_json, text_of, words_line
from sskafka.metadata.record_json import CONTROL_NAMES, control_json
from sskafka.records.batch import DELETE_HORIZON, LOG_APPEND_TIME, NO_SEQUENCE, BatchHeader, CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, read_control_type, read_end_transaction_marker
from sskafka.records.legacy import LegacyMessage, messages_inside
from sskafka.records.record import Record, decode_records
from sskafka.storage.verification.walk import SegmentReader, StoredBatch, base_offset_of
from sskafka.wire.codec import MalformedMessageError

SEGMENT_SUFFIX = ".log"
SNAPSHOT_SUFFIX = ".checkpoint"

_SEQUENCE_MASK = 0x7FFFFFFF
TEXT = PlainDecoder(text_of, text_of)


class Shape(NamedTuple):
    """Which parts of a segment are printed, and in which form."""

    records: bool = False
    contents: bool = False
    record_metadata: bool = True
    decoder: Decoder = TEXT


def dump_lines(path: Path, shape: Shape, max_bytes: int | None = None) -> Iterator[str]:
    """Yield kafka-dump-log's lines."""
    yield _opening(path)
    with SegmentReader(path) as segment:
        for batch in segment.walk(max_bytes=max_bytes):
            yield batch_line(batch)
            if shape.records:
                yield from _record_lines(batch, shape)
        trailing_bytes = segment.size_bytes - segment.end
        if trailing_bytes and max_bytes is None:
            yield f"Found {trailing_bytes} invalid bytes at the end of {path.name}"


def text_lines(path: Path) -> Iterator[str]:
    """Yield `offset key payload` for data records only."""
    with SegmentReader(path) as segment:
        for batch in segment.walk():
            if isinstance(batch.header, LegacyMessage) or not batch.header.is_control:
                for record in _records(batch):
                    yield f"{record.offset} {_text(record.key)} {_text(record.value)}"


def batches_json(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one object for each batch, with its records inside."""
    with SegmentReader(path) as segment:
        for batch in segment.walk():
            yield _batch_json(batch)


def _opening(path: Path) -> str:
    if path.suffix == SNAPSHOT_SUFFIX:
        named = re.fullmatch(r"(\d+)-(\d+)", path.stem)
        return f"Snapshot end offset: {int(named[1])}, epoch: {int(named[2])}" if named else "KRaft bootstrap snapshot"
    return f"Log starting offset: {base_offset_of(path)}"


def _records(batch: StoredBatch) -> Iterator[Record]:
    if isinstance(batch.header, LegacyMessage):
        for message in messages_inside(batch.header):
            yield Record(message.offset, message.timestamp, message.key, message.value)
    else:
        yield from decode_records(batch.data, batch.header)


# ---- kafka-dump-log's lines


def batch_line(batch: StoredBatch) -> str:
    header = batch.header
    if isinstance(header, LegacyMessage):
        beginning = f"offset: {header.offset}"
    else:
        beginning = _batch_beginning(header)
    return (
        f"{beginning} position: {batch.position} {_time_kind(header)}: {batch.max_timestamp}"
        f" size: {batch.size_bytes} magic: {header.magic} compresscodec: {_codec_name(header)}"
        f" crc: {header.crc} isvalid: {_boolean(batch.is_valid)}"
    )


def _batch_beginning(header: BatchHeader) -> str:
    horizon = f"OptionalLong[{header.base_timestamp}]" if header.attributes & DELETE_HORIZON else "OptionalLong.empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_boolean(header.is_transactional)}"
        f" isControl: {_boolean(header.is_control)} deleteHorizonMs: {horizon}"
    )


def _record_lines(batch: StoredBatch, shape: Shape) -> Iterator[str]:
    try:
        if isinstance(batch.header, LegacyMessage):
            yield from _message_lines(batch.header, shape)
            return
        for index, record in enumerate(decode_records(batch.data, batch.header)):
            words = [_record_metadata(batch.header, index, record)] if shape.record_metadata else []
            if batch.header.is_control:
                words += [_control_text(record)] if shape.record_metadata else []
            elif shape.contents:
                words += words_line(shape.decoder(record))
            yield _record_line(words)
    except CorruptBatchError as error:
        yield f"| the records cannot be read: {error}"


def _message_lines(outer: LegacyMessage, shape: Shape) -> Iterator[str]:
    for message in messages_inside(outer):
        words = [_message_metadata(outer, message)] if shape.record_metadata else []
        if shape.contents:
            words += words_line(shape.decoder(Record(message.offset, message.timestamp, message.key, message.value)))
        yield _record_line(words)


def _record_line(words: list[str]) -> str:
    return "| " + " ".join(words) if words else ""


def _record_metadata(header: BatchHeader, index: int, record: Record) -> str:
    sequence = NO_SEQUENCE if header.base_sequence == NO_SEQUENCE else (header.base_sequence + index) & _SEQUENCE_MASK
    keys = ",".join(key for key, _ in record.headers)
    return (
        f"offset: {record.offset} {_time_kind(header)}: {record.timestamp} keySize: {_size(record.key)}"
        f" valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{keys}]"
    )


def _message_metadata(outer: LegacyMessage, message: LegacyMessage) -> str:
    return (
        f"offset: {message.offset} {_time_kind(outer)}: {message.timestamp} keySize: {_size(message.key)}"
        f" valueSize: {_size(message.value)} isValid: {_boolean(message.is_valid)} crc: {message.crc}"
    )


def _control_text(record: Record) -> str:
    control_type = read_control_type(record.key)
    if control_type in {ControlType.ABORT, ControlType.COMMIT}:
        marker = read_end_transaction_marker(record.key, record.value)
        return f"endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    try:
        name, fields = control_json(record)
    except (MalformedMessageError, ValueError) as error:
        return f"{CONTROL_NAMES[control_type]} cannot be read: {error}"
    return f"controlType: {name}" if fields is None else f"{name} {compact_json(fields)}"


# ---- JSON


def _batch_json(batch: StoredBatch) -> dict[str, Any]:
    header = batch.header
    if isinstance(header, LegacyMessage):
        fields = {name: getattr(header, name) for name in ("offset", "size_bytes", "crc", "magic", "attributes")}
    else:
        fields = {**header._asdict(), "transactional": header.is_transactional, "control": header.is_control}
    return {
        **fields,
        "last_offset": batch.last_offset,
        "position": batch.position,
        "compression": _codec_name(header),
        "timestamp_type": _time_kind(header),
        "valid": batch.is_valid,
        "records": [_record_json(record) for record in _readable(batch)],
    }


def _readable(batch: StoredBatch) -> Iterator[Record]:
    """Yield the records up to the first damaged one."""
    try:
        yield from _records(batch)
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


# ---- text


def _text(data: bytes | None) -> str:
    return "null" if data is None else text_of(data)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _time_kind(header: BatchHeader | LegacyMessage) -> str:
    if header.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if header.attributes & LOG_APPEND_TIME else "CreateTime"


def _codec_name(header: BatchHeader | LegacyMessage) -> str:
    try:
        return Compression(header.compression).name.lower()
    except ValueError:
        return str(header.compression)
