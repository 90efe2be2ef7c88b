"""Checks that the leader makes on produced batches before it writes them. Either all batches pass or none is appended.

A client may send a header that does not match its records, so the leader also checks the records, as Apache Kafka does:
their structure (records/inspection.py), keys on compacted topics, and timestamps. A header with a wrong largest
timestamp is corrected.

Checking records takes time, during which the event loop serves no other request. A batch with many records, or one that
decompresses to many bytes, raises ExpensiveBatchError: the caller has a thread `inspect` it and appends it with the
result. The decompressed size of a batch is bounded by DECOMPRESSION_FACTOR times max.message.bytes.
"""

from collections.abc import Callable
from time import perf_counter, sleep
from typing import Final, NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
    iter_headers,
    read_header,
    write_crc,
    write_header,
)
from sskafka.records.builder import recompress
from sskafka.records.compression import Compression, DecompressedTooLargeError, codec_of
from sskafka.records.inspection import SLICE_RECORDS, RecordsSummary, inspect_records
from sskafka.records.record import decode_records, payload, produced_payload
from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordError,
    RecordTooLargeError,
)
from sskafka.storage.log_config import LogConfig

DECOMPRESSION_FACTOR: Final = 32
"""A batch may decompress to this many times max.message.bytes, where less than 1 MiB counts as 1 MiB."""
RECORDS_MAX: Final = 1 << 20
"""A batch may have this many records. librdkafka sends at most a million, other clients far fewer."""

INLINE_DECOMPRESSED_BYTES_MAX: Final = 512 * 1024
INLINE_RECOMPRESSED_BYTES_MAX: Final = 64 * 1024
INLINE_SECONDS_MAX: Final = 0.002
"""Bounds of what is inspected on the event loop."""

_CHEAP_BYTES_MAX: Final = 16 * 1024

TIMESTAMP_MAX: Final = 2**63 - 1

_PAUSE_SECONDS: Final = 0.0001
_CONTROL_OR_COMPRESSED: Final = CONTROL | COMPRESSION_MASK
_COMPRESSED_OR_APPEND_TIME: Final = COMPRESSION_MASK | LOG_APPEND_TIME


class ExpensiveBatchError(Exception):
    """Inspecting the batch would hold up the event loop. Call `AppendChecks.inspect` in a thread, then append the batch
    with its result."""


class Inspected(NamedTuple):
    """What is known of a batch that a thread has inspected."""

    summary: RecordsSummary
    recompressed: bytearray | None
    """The batch with the topic's compression, if the producer used another."""


def decompressed_bytes_max(max_message_bytes: int, batch_bytes: int = 0) -> int:
    """Return what a batch may decompress to. A stored batch may exceed max.message.bytes, which can be lowered."""
    return DECOMPRESSION_FACTOR * max(max_message_bytes, batch_bytes, 1 << 20)


def headers_of(batches: Buffer) -> list[BatchHeader]:
    """Return the headers of the batches, which must fill the buffer exactly."""
    headers = [header for _, header in iter_headers(batches)]
    if not headers:
        raise InvalidRecordError("there is no batch to append")
    return headers


def is_cheap(header: BatchHeader) -> bool:
    """Return whether a batch is small enough to be inspected without a look at the clock."""
    return header.record_count <= SLICE_RECORDS and header.length <= _CHEAP_BYTES_MAX and not header.compression


class AppendChecks:
    """The checks that a topic's configuration requires."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_checks_timestamps",
        "_codec",
        "_is_compacted",
        "_length_max",
        "config",
        "partition",
    )

    def __init__(self, config: LogConfig, partition: TopicPartition) -> None:
        self.config = config
        self.partition = partition
        self._length_max = config.max_message_bytes - LOG_OVERHEAD_BYTES
        self._checks_timestamps = not config.uses_append_time
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._is_compacted = config.is_compacted
        self._codec = None if config.compression_type == "producer" else Compression.named(config.compression_type)

    def checked(
        self,
        batches: bytearray | memoryview,
        now_ms: int,
        from_client: bool,
        inspected: Inspected | None = None,
    ) -> list[BatchHeader]:
        """Return the headers of consecutive batches. Raise the error of the first invalid batch.

        `inspected` is what `inspect` returned for a single batch that is too expensive to inspect here."""
        size_bytes = len(batches)
        if size_bytes >= HEADER_BYTES:
            header = read_header(batches)
            if header.length + LOG_OVERHEAD_BYTES == size_bytes and header.magic == MAGIC:
                return [self._check(batches, 0, header, now_ms, from_client, inspected)]  # the common case: one batch
        headers, position = headers_of(batches), 0
        for number, header in enumerate(headers):
            headers[number] = self._check(batches, position, header, now_ms, from_client, None)
            position += header.size_bytes
        return headers

    def _check(
        self,
        batches: bytearray | memoryview,
        position: int,
        header: BatchHeader,
        now_ms: int,
        from_client: bool,
        inspected: Inspected | None,
    ) -> BatchHeader:
        """Check one batch and return its header, which may have been corrected in place."""
        _, length, _, _, _, attributes, last_delta, _, _, _, _, _, count = header
        if not crc_matches(batches, header, position):
            raise CorruptBatchError("the batch does not match its checksum")
        if count != last_delta + 1 or count <= 0:
            raise InvalidRecordError(f"{count} records with a last offset delta of {last_delta}")
        if not from_client:
            return header
        self._check_header(header)
        is_plain = inspected is None and not attributes & _COMPRESSED_OR_APPEND_TIME
        is_small = is_plain and count <= SLICE_RECORDS and length <= _CHEAP_BYTES_MAX
        if is_small and self._is_valid_as_is(batches, position, header, now_ms):
            return header
        summary = self.inspect_inline(batches, position, header, now_ms) if inspected is None else inspected.summary
        corrected = self._corrected(header, summary)
        if corrected is not header:
            write_header(batches, corrected, position)
            write_crc(batches, position, header.size_bytes)
            return read_header(batches, position)
        return header

    def _is_valid_as_is(self, batches: Buffer, position: int, header: BatchHeader, now_ms: int) -> bool:
        """Return whether there is nothing to correct or to refuse in a small batch. Nearly all batches pass here;
        slower code finds and names the problem of the others."""
        _, length, _, _, _, _, _, base_timestamp, max_timestamp, _, _, _, count = header
        end = position + LOG_OVERHEAD_BYTES + length
        try:
            smallest, largest, all_have_keys = inspect_records(bytes(batches[position + HEADER_BYTES : end]), count)
        except CorruptBatchError:
            return False
        return (
            base_timestamp + largest == max_timestamp <= now_ms + self._after_max_ms
            and now_ms - base_timestamp - smallest <= self._before_max_ms
            and (all_have_keys or not self._is_compacted)
        )

    def _corrected(self, header: BatchHeader, summary: RecordsSummary) -> BatchHeader:
        """Return the header with the largest timestamp of the records. The append time replaces it anyway."""
        max_timestamp = max(header.base_timestamp + summary.timestamp_delta_max, NO_TIMESTAMP)
        attributes = header.attributes & ~LOG_APPEND_TIME
        is_right = max_timestamp == header.max_timestamp and attributes == header.attributes
        if is_right or not self._checks_timestamps:
            return header
        return header._replace(max_timestamp=max_timestamp, attributes=attributes)

    def _check_header(self, header: BatchHeader) -> None:
        """The code is flat and uses local names because it runs for every produced batch."""
        base, length, _, _, _, attributes, _, _, _, producer_id, epoch, sequence, count = header
        if length > self._length_max:
            self._check_size(header)
        if count > RECORDS_MAX:
            error = RecordTooLargeError if attributes & COMPRESSION_MASK or count < length else InvalidRecordError
            raise error(f"a batch of {length} bytes with {count} records, {RECORDS_MAX} are allowed")
        if base:
            raise InvalidRecordError(f"the base offset of a produced batch is 0, not {base}")
        if attributes & _CONTROL_OR_COMPRESSED:
            _check_attributes(header)
        if producer_id >= 0 and (sequence < 0 or epoch < 0):
            _check_sequence_present(header)

    def inspect(self, batch: Buffer, now_ms: int) -> Inspected:
        """Inspect the records of one produced batch, in a thread; raise the error with which it is rejected."""
        header = read_header(batch)
        if not crc_matches(batch, header):
            raise CorruptBatchError("the batch does not match its checksum")
        self._check_header(header)
        max_bytes = decompressed_bytes_max(self.config.max_message_bytes)
        summary, records = self._inspect(batch, 0, header, now_ms, max_bytes, yield_interpreter)
        recompressed = None
        if self._must_recompress(header):
            recompressed = self._recompress(self._corrected(header, summary), records)
        return Inspected(summary, recompressed)

    def inspect_inline(self, batches: Buffer, position: int, header: BatchHeader, now_ms: int) -> RecordsSummary:
        """Inspect a batch on the event loop; raise ExpensiveBatchError if that takes too long."""
        pause = None if is_cheap(header) else _stop_after(INLINE_SECONDS_MAX)
        try:
            summary, records = self._inspect(batches, position, header, now_ms, INLINE_DECOMPRESSED_BYTES_MAX, pause)
        except RecordTooLargeError:
            raise ExpensiveBatchError from None
        if len(records) > INLINE_RECOMPRESSED_BYTES_MAX and self._must_recompress(header):
            raise ExpensiveBatchError
        return summary

    def _inspect(
        self,
        batches: Buffer,
        position: int,
        header: BatchHeader,
        now_ms: int,
        max_bytes: int,
        pause: Callable[[], None] | None,
    ) -> tuple[RecordsSummary, bytes | bytearray | memoryview]:
        """Return the summary of the records, and the records."""
        try:
            records = produced_payload(batches, header, position, max_bytes)
            summary = inspect_records(records, header.record_count, pause)
        except DecompressedTooLargeError as error:
            raise RecordTooLargeError(f"{error} (max.message.bytes is {self.config.max_message_bytes})") from error
        except CorruptBatchError as error:
            raise InvalidRecordError(str(error)) from error  # not retriable: the client would send the same again
        if self._may_reject_records(header, summary, now_ms):
            self._check_records(batches, position, header, now_ms, pause)
        if header.base_timestamp + summary.timestamp_delta_max > TIMESTAMP_MAX:
            raise InvalidTimestampError("a timestamp does not fit into 64 bits")
        return summary, records

    def _may_reject_records(self, header: BatchHeader, summary: RecordsSummary, now_ms: int) -> bool:
        config = self.config
        if config.is_compacted and not summary.all_have_keys:
            return True
        if not self._checks_timestamps:
            return bool(header.attributes & LOG_APPEND_TIME)
        earliest = header.base_timestamp + summary.timestamp_delta_min
        latest = header.base_timestamp + summary.timestamp_delta_max
        return (
            now_ms - earliest > config.message_timestamp_before_max_ms
            or latest - now_ms > config.message_timestamp_after_max_ms
        )

    def recompressed(self, batches: Buffer, headers: list[BatchHeader]) -> bytearray:
        """Return the batches with the compression that the topic sets."""
        stored, position = bytearray(), 0
        for header in headers:
            if self._must_recompress(header):
                stored += self._recompress(header, payload(batches, header, position))
            else:
                stored += memoryview(batches)[position : position + header.size_bytes]
            position += header.size_bytes
        return stored

    def _must_recompress(self, header: BatchHeader) -> bool:
        return self._codec is not None and header.compression != self._codec

    def _recompress(self, header: BatchHeader, records: Buffer) -> bytearray:
        assert self._codec is not None
        batch = recompress(header, records, self._codec, self.config.compression_level(self._codec.name.lower()))
        self._check_size(read_header(batch))
        return batch

    def _check_size(self, header: BatchHeader) -> None:
        if header.length > self._length_max:
            raise RecordTooLargeError(
                f"a batch of {header.size_bytes} bytes, max.message.bytes is {self.config.max_message_bytes}"
            )

    def _check_records(
        self, batches: Buffer, position: int, header: BatchHeader, now_ms: int, pause: Callable[[], None] | None
    ) -> None:
        """Collect an error for every rejected record. As in Kafka, the first error decides the error of the batch."""
        errors: list[RecordError] = []
        first: type[InvalidRecordError | InvalidTimestampError] | None = None
        header = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME)  # the timestamps that it sent
        for number, record in enumerate(decode_records(batches, header, position)):
            if pause is not None and number % SLICE_RECORDS == SLICE_RECORDS - 1:
                pause()
            if record.key is None and self.config.is_compacted:
                first = first or InvalidRecordError
                errors.append(RecordError(number, self._no_key))
            elif not self._checks_timestamps:
                first = first or InvalidTimestampError
                errors.append(RecordError(number, _APPEND_TIME_SET))
            elif not self._is_in_range(record.timestamp, now_ms):
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


_APPEND_TIME_SET: Final = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
_BAD_TIMESTAMPS: Final = "One or more records have been rejected due to invalid timestamp"
_SHOWN_ERRORS_MAX: Final = 3


def _bad_records(errors: list[RecordError]) -> str:
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
        for error in errors[:_SHOWN_ERRORS_MAX]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )


def yield_interpreter() -> None:
    """Sleep for a moment: a thread that computes would otherwise let the event loop wait for every system call."""
    sleep(_PAUSE_SECONDS)


def _stop_after(seconds: float) -> Callable[[], None]:
    deadline = perf_counter() + seconds

    def check() -> None:
        if perf_counter() > deadline:
            raise ExpensiveBatchError

    return check


def _check_attributes(header: BatchHeader) -> None:
    if header.attributes & CONTROL:
        raise InvalidRecordError("clients may not write control records")
    try:
        codec_of(header.compression)
    except CorruptBatchError as error:
        raise InvalidRecordError(str(error)) from error  # not retriable


def _check_sequence_present(header: BatchHeader) -> None:
    """Require a sequence number. Coordinators may write for a producer without one, clients may not."""
    error = InvalidProducerEpochError if header.base_sequence >= 0 else InvalidRecordError
    raise error(f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence {header.base_sequence}")
