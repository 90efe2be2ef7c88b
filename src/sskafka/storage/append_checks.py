"""Checks that the leader makes on produced batches before it writes them. Either all batches pass or none is appended.

The batch headers suffice for most checks. The records are decoded only for compacted topics (every record needs a key),
for topics with a lower bound on timestamps (the header has the first and the largest timestamp, not the smallest), and
to name the records that caused a rejection.
"""

from math import inf

from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
    iter_headers,
    read_header,
)
from sskafka.records.builder import recompress
from sskafka.records.compression import Compression, codec_of
from sskafka.records.record import decode_records
from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordError,
    RecordTooLargeError,
)
from sskafka.storage.log_config import LogConfig

_CONTROL_OR_COMPRESSED = CONTROL | COMPRESSION_MASK


def headers_of(batches: Buffer) -> list[BatchHeader]:
    """Return the headers of the batches, which must fill the buffer exactly."""
    headers = [header for _, header in iter_headers(batches)]
    if not headers:
        raise InvalidRecordError("there is no batch to append")
    return headers


class AppendChecks:
    """The checks that a topic's configuration requires."""

    __slots__ = ("_after_max_ms", "_checks_timestamps", "_length_max", "_needs_records", "config", "partition")

    def __init__(self, config: LogConfig, partition: TopicPartition) -> None:
        self.config = config
        self.partition = partition
        self._length_max = config.max_message_bytes - LOG_OVERHEAD_BYTES
        self._checks_timestamps = not config.uses_append_time
        self._after_max_ms = config.message_timestamp_after_max_ms if self._checks_timestamps else inf
        self._needs_records = config.is_compacted or (self._checks_timestamps and config.checks_early_timestamps)

    def checked(self, batches: Buffer, now_ms: int, from_client: bool) -> list[BatchHeader]:
        """Return the headers of consecutive batches. Raise the error of the first invalid batch."""
        size_bytes = len(batches)
        if size_bytes >= HEADER_BYTES:
            header = read_header(batches)
            if header.length + LOG_OVERHEAD_BYTES == size_bytes and header.magic == MAGIC:
                self._check(batches, 0, header, now_ms, from_client)
                return [header]  # the common case: a single batch
        headers, position = headers_of(batches), 0
        for header in headers:
            self._check(batches, position, header, now_ms, from_client)
            position += header.size_bytes
        return headers

    def _check(self, batches: Buffer, position: int, header: BatchHeader, now_ms: int, from_client: bool) -> None:
        """Check one batch. The code is flat and uses local names because it runs for every produced batch."""
        base, length, _, _, _, attributes, last_delta, _, max_timestamp, producer_id, epoch, sequence, count = header
        if not crc_matches(batches, header, position):
            raise CorruptBatchError("the batch does not match its checksum")
        if count != last_delta + 1 or count <= 0:
            raise InvalidRecordError(f"{count} records with a last offset delta of {last_delta}")
        if not from_client:
            return
        if length > self._length_max:
            self._check_size(header)
        if base:
            raise InvalidRecordError(f"the base offset of a produced batch is 0, not {base}")
        if attributes & _CONTROL_OR_COMPRESSED:
            _check_attributes(header)
        if producer_id >= 0 and (sequence < 0 or epoch < 0):
            _check_sequence_is_there(header)
        is_ahead = max_timestamp - now_ms > self._after_max_ms
        if is_ahead or self._needs_records:
            self._check_records(batches, position, header, now_ms)
        if is_ahead:
            raise InvalidTimestampError(_BAD_TIMESTAMPS)

    def recompressed(self, batches: Buffer, headers: list[BatchHeader], codec: Compression) -> bytearray:
        """Return the batches recompressed with `codec`, for a topic that sets its own compression."""
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
        """Collect an error for every rejected record. As in Kafka, the first error decides the error of the batch."""
        errors: list[RecordError] = []
        first: type[InvalidRecordError | InvalidTimestampError] | None = None
        for number, record in enumerate(decode_records(batches, header, position)):
            if record.key is None and self.config.is_compacted:
                first = first or InvalidRecordError
                errors.append(RecordError(number, self._no_key))
            elif self._checks_timestamps and not self._is_in_range(record.timestamp, now_ms):
                first = first or InvalidTimestampError
                errors.append(RecordError(number, self._out_of_range(number, record.timestamp, now_ms)))
        if first is not None:
            raise first(_BAD_TIMESTAMPS if first is InvalidTimestampError else _bad_records(errors), errors)

    @property
    def _no_key(self) -> str:
        return f"Compacted topic cannot accept message without key in topic partition {self.partition}"

    def _is_in_range(self, timestamp: int, now_ms: int) -> bool:
        config = self.config
        if timestamp == NO_TIMESTAMP:
            return True
        return -config.message_timestamp_after_max_ms <= now_ms - timestamp <= config.message_timestamp_before_max_ms

    def _out_of_range(self, number: int, timestamp: int, now_ms: int) -> str:
        earliest = now_ms - self.config.message_timestamp_before_max_ms
        latest = now_ms + self.config.message_timestamp_after_max_ms
        return (
            f"Timestamp {timestamp} of message with offset {number} is out of range. "
            f"The timestamp should be within [{earliest}, {latest}]"
        )


_BAD_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"
_SHOWN_ERRORS_MAX = 3


def _bad_records(errors: list[RecordError]) -> str:
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
        for error in errors[:_SHOWN_ERRORS_MAX]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )


def _check_attributes(header: BatchHeader) -> None:
    if header.attributes & CONTROL:
        raise InvalidRecordError("clients may not write control records")
    try:
        codec_of(header.compression)
    except CorruptBatchError as error:
        raise InvalidRecordError(str(error)) from error  # not retriable


def _check_sequence_is_there(header: BatchHeader) -> None:
    """Require a sequence number. Coordinators may write for a producer without one, clients may not."""
    error = InvalidProducerEpochError if header.base_sequence >= 0 else InvalidRecordError
    raise error(f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence {header.base_sequence}")
