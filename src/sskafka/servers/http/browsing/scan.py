"""Read records in the order of the log and keep those that a filter accepts: searches, live tails and downloads.

A scan yields matches and, a few times a second, its progress. It ends at the end of the log as it was at the start (a
live tail does not), or when its budget is spent. It works in slices of a few milliseconds, so that other requests of
the HTTP process are answered in between.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Span
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.browsing.filter import Decode, FilteredRecord, Predicate, json_value
from sskafka.servers.http.browsing.pages import size_of

SLICE_MS: Final = 5.0
PROGRESS_INTERVAL_MS: Final = 250.0
TAIL_MATCHES_PER_INTERVAL: Final = 50
"""More matches of a live tail are not shown: nobody reads 200 records a second. Without a filter the tail does not even
read them: it goes to the end of the log."""
_POLL_MS = 200
_POLL_RECORDS = 500


class ScanEnd(StrEnum):
    END = "end"
    """The end of the log."""
    RECORDS = "max_records"
    SECONDS = "max_seconds"
    MATCHES = "max_matches"


class ScanBudget(NamedTuple):
    records_max: int
    seconds_max: float
    matches_max: int


class ScanProgress(NamedTuple):
    looked_at: int
    matched: int
    not_shown: int
    """Matches, and records that a live tail has left out, because there were too many of them."""
    read_bytes: int
    elapsed_ms: int
    left: int | None
    """Offsets up to the end of the search; None for a live tail."""
    positions: dict[int, int]
    cut: int
    """Records with a text so long that regular expressions have seen only its beginning."""
    end: ScanEnd | None = None


class Decoders(NamedTuple):
    """How a filter reads the fields of keys and values."""

    key: Decode = json_value
    value: Decode = json_value


JSON_DECODERS: Final = Decoders()

Found: TypeAlias = ConsumedRecord | ScanProgress


class RecordScan:
    """Use once: `async for found in RecordScan(...).run()`. `spans` without a stop are followed as they grow."""

    def __init__(
        self,
        cluster: Cluster,
        spans: Mapping[TopicPartition, Span],
        budget: ScanBudget,
        accepts: Predicate | None = None,
        decoders: Decoders = JSON_DECODERS,
        isolation_level: str = "read_uncommitted",
    ) -> None:
        self._cluster = cluster
        self._spans = spans
        self._budget = budget
        self._accepts = accepts
        self._decoders = decoders
        self._is_tail = any(span.stop is None for span in spans.values())
        self._config = ConsumerConfig(isolation_level=isolation_level, auto_offset_reset="earliest")
        self._positions = {partition: span.start for partition, span in spans.items()}
        self._began_ms = cluster.clock.monotonic_ms()
        self._reported_ms = self._began_ms
        self._looked_at = self._matched = self._shown = self._skipped = self._read_bytes = 0
        self._shown_since_report = self._cut = 0

    async def run(self) -> AsyncGenerator[Found, None]:
        """Yield matches and progress; the last progress says why the scan has ended."""
        end = ScanEnd.END
        async with ConsumerEngine(self._cluster, self._config) as consumer:
            consumer.assign({part: span.start for part, span in self._spans.items() if span.stop != span.start})
            while consumer.assignment:
                slice_ends_ms = self._now_ms() + SLICE_MS
                for record in await consumer.poll(_POLL_MS, _POLL_RECORDS):
                    if self._is_match(record) and self._may_show():
                        yield record
                    if self._spent() is not None:
                        break
                    if self._now_ms() >= slice_ends_ms:
                        await asyncio.sleep(0)
                        slice_ends_ms = self._now_ms() + SLICE_MS
                self._drop_finished(consumer)
                spent = self._spent()
                if spent is not None:
                    end = spent
                    break
                if self._is_tail and self._accepts is None and not self._has_room():
                    await self._skip_to_end(consumer)
                if self._now_ms() - self._reported_ms >= PROGRESS_INTERVAL_MS:
                    self._reported_ms, self._shown_since_report = self._now_ms(), 0
                    yield self._progress()
                await asyncio.sleep(0)
        yield self._progress(end)

    def _now_ms(self) -> float:
        return self._cluster.clock.monotonic_ms()

    def _is_match(self, record: ConsumedRecord) -> bool:
        partition = TopicPartition(record.topic, record.partition)
        stop = self._spans[partition].stop
        if stop is not None and record.offset >= stop:
            return False
        self._positions[partition] = record.offset + 1
        self._looked_at += 1
        self._read_bytes += size_of(record)
        if self._accepts is not None and not self._is_accepted(self._accepts, record):
            return False
        self._matched += 1
        return True

    def _is_accepted(self, accepts: Predicate, record: ConsumedRecord) -> bool:
        filtered = FilteredRecord(record, *self._decoders)
        is_accepted = accepts(filtered)
        self._cut += filtered.is_cut
        return is_accepted

    def _has_room(self) -> bool:
        return not self._is_tail or self._shown_since_report < TAIL_MATCHES_PER_INTERVAL

    def _may_show(self) -> bool:
        if not self._has_room():
            return False
        self._shown += 1
        self._shown_since_report += 1
        return True

    async def _skip_to_end(self, consumer: ConsumerEngine) -> None:
        """Wait for the next interval and leave out what was written until then."""
        left_ms = self._reported_ms + PROGRESS_INTERVAL_MS - self._now_ms()
        await asyncio.sleep(max(0.0, left_ms) / 1000)
        before = {partition: consumer.position(partition) for partition in consumer.assignment}
        await consumer.seek_to_end()
        for partition, offset in before.items():
            self._positions[partition] = consumer.position(partition)
            self._skipped += self._positions[partition] - offset

    def _drop_finished(self, consumer: ConsumerEngine) -> None:
        for partition in consumer.assignment:
            stop = self._spans[partition].stop
            if stop is not None and consumer.position(partition) >= stop:
                self._positions[partition] = stop
                consumer.unassign(partition)

    def _spent(self) -> ScanEnd | None:
        if self._shown >= self._budget.matches_max:
            return ScanEnd.MATCHES
        if self._looked_at >= self._budget.records_max:
            return ScanEnd.RECORDS
        if self._now_ms() - self._began_ms >= self._budget.seconds_max * 1000:
            return ScanEnd.SECONDS
        return None

    def _progress(self, end: ScanEnd | None = None) -> ScanProgress:
        stops = {partition: span.stop for partition, span in self._spans.items()}
        left = None if self._is_tail else sum((stops[one] or 0) - at for one, at in self._positions.items())
        return ScanProgress(
            looked_at=self._looked_at,
            matched=self._matched,
            not_shown=self._matched - self._shown + self._skipped,
            read_bytes=self._read_bytes,
            elapsed_ms=int(self._now_ms() - self._began_ms),
            left=left,
            positions={partition.partition: at for partition, at in self._positions.items()},
            cut=self._cut,
            end=end,
        )
