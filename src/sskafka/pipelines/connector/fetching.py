"""How a task reads its ranges: with large fetches, of which the next one is in flight while the last one is decoded.

    fetch ──> split into batches ──> next fetch is sent ──> decode ──> Arrow ──> Spark
      ^                                    │
      └──── its response waits in the socket buffer ┘

The event loop of the client runs only between these steps, in the same thread. A second thread would compete with the
decoder for the interpreter lock.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from sskafka.client.cluster import Cluster
from sskafka.client.errors import is_retriable, raise_for
from sskafka.client.fetcher import FetchAnswer, Position, fetch
from sskafka.client.offsets import EARLIEST, list_offsets
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.decode import DataBatch, read_batches, to_arrow
from sskafka.pipelines.connector.errors import DataLossError, ReadTimeoutError
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import SourceOptions

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

ARROW_ROWS_MAX = 65_536
SMALL_RECORDS_MAX = 10_000
"""Up to this many records, a task fetches from all leaders at the same time. Larger ranges are fetched from one leader
after the other, so that only one response and the one in flight occupy memory."""


def read_ranges(
    options: SourceOptions, ranges: Sequence[OffsetRange], session: "ClusterSession | None" = None
) -> Iterator[pa.RecordBatch]:
    """Yield all records of the ranges, in order within a partition.

    Uses the connections of `session` if there is one."""
    if session is not None:
        yield from _read(session.run, Reading(session.cluster, options, ranges))
        return
    with asyncio.Runner() as runner:
        cluster = Cluster(options.bootstrap, options.connection)
        try:
            yield from _read(runner.run, Reading(cluster, options, ranges))
        finally:
            runner.run(cluster.close())


def _read(run: Run, reading: "Reading") -> Iterator[pa.RecordBatch]:
    for wanted, batches in received_batches(run, reading):
        yield from _sliced(to_arrow(batches, wanted, include_headers=reading.include_headers))


def received_batches(run: Run, reading: "Reading") -> Iterator[tuple[OffsetRange, list[DataBatch]]]:
    """Yield the batches of all ranges, each with the range that was left before it; `run` runs the client's steps."""
    try:
        run(reading.send_next())
        while not reading.is_done:
            yield from run(reading.receive())
    finally:
        run(reading.close())


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ARROW_ROWS_MAX):
        yield batch.slice(start, ARROW_ROWS_MAX)


class Reading:
    """The positions in ranges that are being read, and the fetch that is in flight."""

    def __init__(
        self,
        cluster: Cluster,
        options: SourceOptions,
        ranges: Sequence[OffsetRange],
        *,
        include_markers: bool = False,
    ) -> None:
        self._include_markers = include_markers
        self._options = options
        self._config = options.consumer
        self._cluster = cluster
        self.include_headers = options.include_headers
        self._left = {part.partition: part for part in ranges}
        assert len(self._left) == len(ranges), "a task reads a partition in one range"
        self._fetch: asyncio.Task[list[FetchAnswer]] | None = None
        self._failures = 0
        self._stuck_since_ms: float | None = None

    @property
    def is_done(self) -> bool:
        return not self._left

    async def close(self) -> None:
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)

    async def send_next(self) -> None:
        """Send the next fetch; the request is on the wire when this returns."""
        self._fetch = asyncio.create_task(self._fetch_next()) if self._left else None
        await asyncio.sleep(0)

    async def _fetch_next(self) -> list[FetchAnswer]:
        """Fetch all remaining partitions: of all leaders if few records are left, of one leader otherwise.

        Partitions that are done are removed, so other leaders follow."""
        groups = await self._cluster.by_leader(self._left)
        is_small = sum(part.size for part in self._left.values()) <= SMALL_RECORDS_MAX
        chosen = list(groups.items())[: None if is_small else 1]
        fetches = [self._fetch_from(leader, partitions) for leader, partitions in chosen]
        answers: list[FetchAnswer] = []
        failures: list[BaseException] = []
        for outcome in await asyncio.gather(*fetches, return_exceptions=True):
            if isinstance(outcome, BaseException):
                failures.append(outcome)
            else:
                answers += outcome
        if failures and not answers:
            raise failures[0]
        return answers  # partitions of a leader that failed are fetched again, and then the failure counts

    async def _fetch_from(self, leader: int, partitions: Sequence[TopicPartition]) -> list[FetchAnswer]:
        positions = {partition: Position(self._left[partition].start) for partition in partitions}
        return await fetch(self._cluster, self._config, leader, positions)

    async def receive(self) -> list[tuple[OffsetRange, list[DataBatch]]]:
        """Return the batches of the fetch in flight; the next fetch is sent before this returns."""
        assert self._fetch is not None
        found: list[tuple[OffsetRange, list[DataBatch]]] = []
        try:
            for answer in await self._fetch:
                found += await self._take(answer)
        except Exception as error:  # batches taken before the error stay taken: the positions have moved
            await self._maybe_try_again(error)
        else:
            self._note_progress(bool(found))
        await self.send_next()
        return found

    async def received_rows(self) -> list[pa.RecordBatch]:
        """Return the rows of the fetch in flight; as `receive`, it sends the next fetch."""
        return [
            to_arrow(batches, wanted, include_headers=self.include_headers) for wanted, batches in await self.receive()
        ]

    async def _take(self, answer: FetchAnswer) -> list[tuple[OffsetRange, list[DataBatch]]]:
        wanted = self._left[answer.partition]
        if answer.data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._skip_missing_offsets(wanted)
            return []
        raise_for(answer.data.error_code, f"reading {answer.partition}")
        aborted = [(one.first_offset, one.producer_id) for one in answer.data.aborted_transactions or ()]
        hidden = aborted if self._config.isolation else ()
        fetched = read_batches(
            answer.data.records or b"",
            wanted,
            aborted=hidden,
            check_crcs=self._config.check_crcs,
            include_markers=self._include_markers,
        )
        self._advance(wanted, fetched.next_offset)
        return [(wanted, fetched.batches)] if fetched.batches else []

    def _advance(self, wanted: OffsetRange, next_offset: int) -> None:
        """Move the position. The partition goes to the end of the list, so that the leaders of others get their
        turn."""
        del self._left[wanted.partition]
        if next_offset < wanted.end:
            self._left[wanted.partition] = wanted._replace(start=next_offset)
        if next_offset > wanted.start:
            self._note_progress(True)

    async def _skip_missing_offsets(self, wanted: OffsetRange) -> None:
        earliest = (await list_offsets(self._cluster, {wanted.partition: EARLIEST}))[wanted.partition].offset
        if self._options.fail_on_data_loss:
            raise DataLossError(out_of_range_text(wanted, earliest))
        self._advance(wanted, min(max(earliest, wanted.start), wanted.end) if earliest > wanted.start else wanted.end)

    async def _maybe_try_again(self, error: Exception) -> None:
        if not is_retriable(error):
            raise error
        self._note_progress(False, error)
        self._cluster.forget(*{partition.topic for partition in self._left})
        await self._cluster.pause(self._failures, self._cluster.deadline_ms())
        self._failures += 1

    def _note_progress(self, moved: bool, error: Exception | None = None) -> None:
        now_ms = self._cluster.clock.monotonic_ms()
        if moved:
            self._failures, self._stuck_since_ms = 0, None
        elif self._stuck_since_ms is None:
            self._stuck_since_ms = now_ms
        elif now_ms - self._stuck_since_ms > self._options.poll_timeout_ms:
            raise ReadTimeoutError(self._stuck_text(error))

    def _stuck_text(self, error: Exception | None) -> str:
        partition, wanted = next(iter(self._left.items()))
        cause = f": {error}" if error else " although the plan says that they exist"
        return (
            f"{partition}: no records from offset {wanted.start} on (wanted up to {wanted.end}) "
            f"were received within {self._options.poll_timeout_ms} ms{cause}"
        )


def out_of_range_text(wanted: OffsetRange, earliest: int) -> str:
    where = f"begins at {earliest} now" if earliest > wanted.start else "ends before them"
    return f"{wanted.partition}: offsets {wanted.start} to {wanted.end} were to be read, but the log {where}"
