"""What the leader checks in produced batches before anything is written: all of them pass, or none is taken.

Headers suffice, but for compacted topics (every record needs a key) and for topics that bound timestamps from below
(the header has the first and the largest timestamp, not the smallest).
"""

from math import inf

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
    iter_headers,
    read_header,
)
from sskafka.records.builder import recompress
from sskafka.records.compression import Compression, codec_of
from sskafka.records.record import decode_records
from sskafka.storage.errors import InvalidRecordError, InvalidTimestampError, RecordTooLargeError
from sskafka.storage.log_config import LogConfig

_CONTROL_OR_COMPRESSED = CONTROL | COMPRESSION_MASK


def headers_of(batches: Buffer) -> list[BatchHeader]:
    """The headers of the batches, which fill the buffer exactly."""
    headers = [header for _, header in iter_headers(batches)]
    if not headers:
        raise InvalidRecordError("there is no batch to append")
    return headers


class AppendChecks:
    """The checks that a topic's settings ask for."""

    __slots__ = ("_after_max_ms", "_checks_timestamps", "_length_max", "_needs_records", "config")

    def __init__(self, config: LogConfig) -> None:
        self.config = config
        self._length_max = config.max_message_bytes - LOG_OVERHEAD_BYTES
        self._checks_timestamps = not config.uses_append_time
        self._after_max_ms = config.message_timestamp_after_max_ms if self._checks_timestamps else inf
        self._needs_records = config.is_compacted or (self._checks_timestamps and config.checks_early_timestamps)

    def checked(self, batches: Buffer, now_ms: int, from_client: bool) -> list[BatchHeader]:
        """The headers of the batches, one behind the other; raises what is wrong with the first bad one."""
        size_bytes = len(batches)
        if size_bytes >= HEADER_BYTES:
            header = read_header(batches)
            if header.length + LOG_OVERHEAD_BYTES == size_bytes and header.magic == MAGIC:
                self._check(batches, 0, header, now_ms, from_client)
                return [header]  # a single batch, as nearly always
        headers, position = headers_of(batches), 0
        for header in headers:
            self._check(batches, position, header, now_ms, from_client)
            position += header.size_bytes
        return headers

    def _check(self, batches: Buffer, position: int, header: BatchHeader, now_ms: int, from_client: bool) -> None:
        """Flat and with local names, because every produced batch passes here."""
        _, length, _, _, _, attributes, last_delta, _, max_timestamp, producer_id, epoch, sequence, count = header
        if not crc_matches(batches, header, position):
            raise CorruptBatchError("the batch does not match its checksum")
        if count != last_delta + 1 or count <= 0:
            raise InvalidRecordError(f"{count} records with a last offset delta of {last_delta}")
        if not from_client:
            return
        if length > self._length_max:
            self._check_size(header)
        if attributes & _CONTROL_OR_COMPRESSED:
            _check_attributes(header)
        if producer_id >= 0 and (sequence < 0 or epoch < 0):
            _check_sequence_is_there(header)
        if max_timestamp - now_ms > self._after_max_ms:
            raise InvalidTimestampError(
                f"timestamp {max_timestamp} is more than message.timestamp.after.max.ms "
                f"({self.config.message_timestamp_after_max_ms}) ahead of {now_ms}"
            )
        if self._needs_records:
            self._check_records(batches, position, header, now_ms)

    def recompressed(self, batches: Buffer, headers: list[BatchHeader], codec: Compression) -> bytearray:
        """The batches as a topic with a compression of its own stores them."""
        level = self.config.compression_level(codec.name.lower())
        stored, position = bytearray(), 0
        for header in headers:
            if header.compression == codec:
                stored += memoryview(batches)[position : position + header.size_bytes]
            else:
                stored += recompress(batches, header, codec, position, level=level)
            position += header.size_bytes
        for header in headers_of(stored):
            self._check_size(header)
        return stored

    def _check_size(self, header: BatchHeader) -> None:
        if header.length > self._length_max:
            raise RecordTooLargeError(
                f"a batch of {header.size_bytes} bytes, max.message.bytes is {self.config.max_message_bytes}"
            )

    def _check_records(self, batches: Buffer, position: int, header: BatchHeader, now_ms: int) -> None:
        earliest = now_ms - self.config.message_timestamp_before_max_ms if self._checks_timestamps else None
        for record in decode_records(batches, header, position):
            if record.key is None and self.config.is_compacted:
                raise InvalidRecordError("a compacted topic takes no records without a key")
            if earliest is not None and record.timestamp < earliest:
                raise InvalidTimestampError(
                    f"timestamp {record.timestamp} is more than message.timestamp.before.max.ms "
                    f"({self.config.message_timestamp_before_max_ms}) before {now_ms}"
                )


def _check_attributes(header: BatchHeader) -> None:
    if header.attributes & CONTROL:
        raise InvalidRecordError("clients may not write control records")
    try:
        codec_of(header.compression)
    except CorruptBatchError as error:
        raise InvalidRecordError(str(error)) from error  # nothing a client could mend by sending it again


def _check_sequence_is_there(header: BatchHeader) -> None:
    """Coordinators write in a producer's name without one, clients may not."""
    raise InvalidRecordError(
        f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence {header.base_sequence}"
    )
