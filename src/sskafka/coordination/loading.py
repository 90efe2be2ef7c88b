"""Loading: replay the log of an internal topic's partition into a new shard.

A long log must not block the event loop. Batches are replayed for a few milliseconds per turn, and a thread reads data
that is not in the page cache. A broker that starts, or takes over from another, becomes the leader of dozens of
partitions at once; `LoadingTurns` gives each turn to one of them. Requests in the meantime get
COORDINATOR_LOAD_IN_PROGRESS.

A record that cannot be read is skipped (`UnreadableRecords`). Only a batch header that does not say where the next
batch begins ends the load.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from sskafka.coordination.log import CoordinatorLog
from sskafka.model.buffers import Buffer
from sskafka.model.coordination import CoordinatorShard, StateRecord
from sskafka.model.counters import Sample
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    iter_headers,
    read_header,
    read_offset_and_size,
)
from sskafka.records.control import ControlType
from sskafka.records.record import Record, decode_records
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.storage.append_checks import decompressed_bytes_max
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.transactions.marker import maybe_read_marker

TURN_MS = 3
RECORDS_PER_STEP = 100
LONG_RECORD_BYTES = 8 * 1024
READ_BYTES = 1024 * 1024
_log = logging.getLogger(__name__)


class UnreadableRecords:
    """The records of one load of one partition that cannot be read or replayed. They are skipped and counted.

    A damaged batch, or a record that another program wrote, loses only its own state. If the partition were not loaded,
    all its groups or transactions would be unavailable. The first such record of a load is logged, then their number.
    """

    __slots__ = ("_partition", "count")

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self.count = 0

    def skip(self, offset: int, records: int, reason: BaseException) -> None:
        """Count `records` records from `offset` on that are skipped."""
        if self.count == 0:
            _log.error(
                "offset %d in partition %d of an internal topic cannot be read and is skipped: %s: %s",
                offset,
                self._partition,
                type(reason).__name__,
                reason,
            )
        self.count += records

    def loaded(self) -> None:
        if self.count > 1:
            _log.error("%d records in partition %d of an internal topic were skipped", self.count, self._partition)


class CoordinatorLoader:
    """Calls `done` with None when the shard has replayed the whole log, or with the error."""

    def __init__(
        self,
        log: CoordinatorLog,
        shard: CoordinatorShard[Any],
        clock: Clock,
        background: Background,
        unreadable: UnreadableRecords,
        done: Callable[[BaseException | None], None],
        read_bytes: int = READ_BYTES,
    ) -> None:
        self._log = log
        self._shard = shard
        self._clock = clock
        self._background = background
        self._unreadable = unreadable
        self._done = done
        self._read_bytes = read_bytes
        self.offset = log.log_start_offset
        """The offset up to which the log is replayed."""
        self._batches: Iterator[None] = iter(())
        self._is_cancelled = False

    def start(self) -> None:
        self._background.soon(self._turn)

    def cancel(self) -> None:
        self._is_cancelled = True

    def _turn(self) -> None:
        if self._is_cancelled:
            return
        try:
            is_loaded = self._replay_for_a_turn()
        except Exception as error:  # a log that cannot be replayed must not end the broker
            self._done(error)
            return
        if is_loaded:
            self._done(None)

    def _replay_for_a_turn(self) -> bool:
        """Return True at the end of the log. Otherwise the next turn is scheduled."""
        stop_ms = self._clock.monotonic_ms() + TURN_MS
        while True:
            for _ in self._batches:
                if self._clock.monotonic_ms() >= stop_ms:
                    self._background.soon(self._turn)
                    return False
            parts = self._log.read(self.offset, self._read_bytes)
            if not parts:
                return True
            if not self._read_next(parts[0]):
                return False

    def _read_next(self, part: FileSlice) -> bool:
        """Return False if a thread has to read the bytes; a later turn continues with them."""
        data = part.read_now()
        if data is None:
            self._read_in_thread(part)
            return False
        self._batches = self._replayed(data)
        return True

    def _read_in_thread(self, part: FileSlice) -> None:
        read: list[Buffer] = []

        def done(error: BaseException | None) -> None:
            if self._is_cancelled:
                return
            if error is not None:
                self._done(error)
                return
            self._batches = self._replayed(read[0])
            self._background.soon(self._turn)

        self._background.in_thread(lambda: read.append(part.read()), done)

    def _replayed(self, data: Buffer) -> Iterator[None]:
        """Replay some records a step. The last batch may be cut off and is read again; the first one never is."""
        end = _end_of_whole_batches(data)
        if end == 0:
            check_structure(read_header(data), len(data))
        for position, header in iter_headers(memoryview(data)[:end]):
            yield from replay_batch(self._shard, data, header, position, self._unreadable)
            self.offset = header.next_offset
            yield


def _end_of_whole_batches(data: Buffer) -> int:
    position = 0
    while len(data) - position >= HEADER_BYTES:
        _, size_bytes = read_offset_and_size(data, position)
        if size_bytes < HEADER_BYTES or position + size_bytes > len(data):
            break
        position += size_bytes
    return position


def replay_batch(
    shard: CoordinatorShard[Any], data: Buffer, header: BatchHeader, position: int, unreadable: UnreadableRecords
) -> Iterator[None]:
    """Replay a batch, which may have thousands of records, some records a step."""
    offset = header.base_offset
    try:
        if not crc_matches(data, header, position):
            raise CorruptBatchError("the batch does not match its checksum")
        if header.is_control:
            _replay_marker(shard, data, header, position)
            return
        producer = _producer_of(header)
        max_bytes = decompressed_bytes_max(max_message_bytes=0, batch_bytes=header.size_bytes)
        for number, record in enumerate(decode_records(data, header, position, max_bytes), 1):
            offset = record.offset
            yield from _replay_record(shard, record, producer, unreadable)
            offset += 1
            if not number % RECORDS_PER_STEP:
                yield
    except Exception as error:  # the records after it in the batch cannot be found
        unreadable.skip(offset, max(1, header.next_offset - offset), error)


def _producer_of(header: BatchHeader) -> ProducerIdAndEpoch | None:
    return ProducerIdAndEpoch(header.producer_id, header.producer_epoch) if header.is_transactional else None


def _replay_marker(shard: CoordinatorShard[Any], data: Buffer, header: BatchHeader, position: int) -> None:
    marker, producer = maybe_read_marker(data, header, position), _producer_of(header)
    if marker is not None and producer is not None:
        shard.replay_end_of_transaction(producer, marker.type == ControlType.COMMIT)


def _replay_record(
    shard: CoordinatorShard[Any], record: Record, producer: ProducerIdAndEpoch | None, unreadable: UnreadableRecords
) -> Iterator[None]:
    """Replay a record. Yield if it is long: some records have thousands of topics."""
    if record.key is None:
        return
    try:
        encoded = StateRecord(record.key, record.value)
        if len(record.value or b"") > LONG_RECORD_BYTES:
            decoded = yield from shard.decode_in_steps(encoded)
        else:
            decoded = shard.decode(encoded)
        if decoded is not None:
            shard.replay(decoded, producer)
    except Exception as error:  # a damaged record can cause any error; other records are valid
        unreadable.skip(record.offset, 1, error)


class LoadingTurns:
    """A Background for loaders, which run one after the other."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: deque[Callable[[], None]] = deque()

    def soon(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._background.soon(self._next)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self._background.in_thread(work, done)

    def _next(self) -> None:
        work = self._waiting.popleft()
        if self._waiting:
            self._background.soon(self._next)
        work()


class LoadCounters:
    """How long the shards of a coordinator took to load, and what could not be read."""

    __slots__ = ("count", "longest_ms", "total_ms", "unreadable_records")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.longest_ms = 0.0
        self.unreadable_records = 0

    def loaded(self, took_ms: float, unreadable_records: int = 0) -> None:
        self.count += 1
        self.unreadable_records += unreadable_records
        self.total_ms += took_ms
        self.longest_ms = max(self.longest_ms, took_ms)

    def samples(self, prefix: str) -> Iterator[Sample]:
        yield Sample(prefix + "partition_load_total", (), self.count)
        yield Sample(prefix + "partition_load_time_avg", (), self.total_ms / self.count if self.count else 0)
        yield Sample(prefix + "partition_load_time_max", (), self.longest_ms)
        yield Sample(prefix + "unreadable_records_total", (), self.unreadable_records)
