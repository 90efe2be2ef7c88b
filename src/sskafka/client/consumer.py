"""Reading partitions by assignment: no group, no commits; positions belong to the caller.

    async with Cluster("localhost:9092") as cluster, Consumer(cluster) as consumer:
        consumer.assign({TopicPartition("orders", 0): 0})
        records = await consumer.poll()

One fetch is under way to each broker that assigned partitions are read from. It outlives the `poll` that started it, so
a poll that times out loses nothing, and the next records come while the caller works on the last ones; what comes back
for a position that was moved meanwhile is dropped. A partition that cannot be read now does not hold up the others.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from sskafka.client.backoff import Randomness
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.errors import LogTruncatedError, NoOffsetForPartitionError, broker_error, is_retriable
from sskafka.client.fetch_sources import FetchSources
from sskafka.client.fetched import ConsumedRecord, FetchedPartition
from sskafka.client.fetcher import NO_EPOCH, NO_REPLICA, FetchAnswer, Position, fetch
from sskafka.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from sskafka.client.record_buffer import RecordBuffer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

_RESET_TO = {"earliest": EARLIEST, "latest": LATEST}


class _Fetch(NamedTuple):
    """One that is under way."""

    partitions: list[TopicPartition]
    task: asyncio.Task[list[FetchAnswer]]


class Consumer:
    def __init__(
        self, cluster: Cluster, config: ConsumerConfig | None = None, *, randomness: Randomness | None = None
    ) -> None:
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._positions: dict[TopicPartition, Position] = {}
        self._sources = FetchSources(cluster, randomness or random.Random())
        self._fetches: dict[int, _Fetch] = {}
        self._buffer = RecordBuffer(self._moved)
        self._failures = 0
        self._failing_since_ms: float | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        tasks = self._tasks()
        self._fetches = {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[list[FetchAnswer]]]:
        return [under_way.task for under_way in self._fetches.values()]

    # Positions

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._positions)

    def assign(self, offsets: Mapping[TopicPartition, int], *, any_replica: bool = False) -> None:
        """Reads these partitions from now on, each from its offset, and no others."""
        self._buffer.clear()
        self._positions = {partition: Position(offset, any_replica) for partition, offset in offsets.items()}

    def add(self, partition: TopicPartition, offset: int, *, any_replica: bool = False) -> None:
        """Reads this partition too; `any_replica`: from whichever replica is in sync, not from the leader alone."""
        self._buffer.drop(partition)
        self._positions[partition] = Position(offset, any_replica)

    def unassign(self, partition: TopicPartition) -> None:
        self._buffer.drop(partition)
        self._positions.pop(partition, None)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The partition is read from `offset` on; it need not have been assigned before."""
        known = self._positions.get(partition)
        self.add(partition, offset, any_replica=known is not None and known.reads_any_replica)

    def position(self, partition: TopicPartition) -> int:
        """The offset behind the last record that was handed out."""
        return self._positions[partition].offset

    def source(self, partition: TopicPartition) -> int:
        """The replica that the partition is read from; -1 for its leader."""
        return self._positions[partition].replica

    def high_watermark(self, partition: TopicPartition) -> int:
        """As of the last fetch; -1 before the first one."""
        return self._positions[partition].high_watermark

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._seek_to(EARLIEST, partitions)

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._seek_to(LATEST, partitions)

    async def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """To the first record at or after the time; to the end where there is none."""
        await self._seek_to(timestamp_ms, partitions)

    async def _seek_to(self, timestamp: int, partitions: Iterable[TopicPartition] | None) -> None:
        chosen = list(self._positions if partitions is None else partitions)
        isolation = self.config.isolation
        found = await list_offsets(self._cluster, dict.fromkeys(chosen, timestamp), isolation=isolation)
        beyond = [partition for partition in chosen if found[partition].offset == NO_OFFSET]
        found |= await list_offsets(self._cluster, dict.fromkeys(beyond, LATEST), isolation=isolation)
        for partition in chosen:
            self.seek(partition, found[partition].offset)

    # Reading

    async def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ConsumedRecord]:
        """Records of whichever brokers answer first, all or `max_records` of them, the partitions in turn; an empty
        list when there are none within `timeout_ms`. Failures that may pass are waited out, up to
        `default.api.timeout.ms`; others are raised."""
        deadline_ms = self._cluster.deadline_ms(timeout_ms)
        while self._positions:
            failure = await self._advance(deadline_ms)
            records = self._buffer.take(max_records)
            if records:
                await self._start_fetches()
                return records
            if failure is not None:
                await self._wait_out(failure, deadline_ms)
            if self._cluster.clock.monotonic_ms() >= deadline_ms:
                return []
        return []

    async def _advance(self, deadline_ms: float) -> Exception | None:
        """Asks brokers for more and takes in what has come; waits for it only when there is nothing to hand out."""
        failure = await self._start_fetches()
        if not self._buffer and self._fetches:
            left_ms = max(deadline_ms - self._cluster.clock.monotonic_ms(), 0)
            await asyncio.wait(self._tasks(), timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        failures = [error for error in (failure, *(await self._collect())) if error is not None]
        if not failures:
            self._failures, self._failing_since_ms = 0, None
        return next((error for error in failures if not is_retriable(error)), failures[0] if failures else None)

    async def _start_fetches(self) -> Exception | None:
        """One for each broker that has none under way, for the partitions whose records are used up."""
        wanted = {partition: at for partition, at in self._positions.items() if partition not in self._buffer}
        try:
            sources = await self._sources.by_broker(wanted)
        except Exception as error:
            return error
        for broker, positions in sources.items():
            if broker not in self._fetches:
                task = asyncio.create_task(fetch(self._cluster, self.config, broker, positions))
                task.add_done_callback(_note_failure)
                self._fetches[broker] = _Fetch(list(positions), task)
        if not sources and not self._fetches and not self._buffer:
            return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {min(wanted)} now")
        return None

    async def _collect(self) -> list[Exception]:
        """Takes in the fetches that are done, and the failures among them."""
        failures: list[Exception] = []
        for broker in [broker for broker, under_way in self._fetches.items() if under_way.task.done()]:
            done = self._fetches.pop(broker)
            try:
                answers = done.task.result()
            except Exception as error:
                failures.append(error)
                self._ask_anew(done.partitions)
                continue
            for answer in answers:
                try:
                    await self._take(answer)
                except Exception as error:  # each partition fails for itself
                    failures.append(error)
                    self._ask_anew([answer.partition])
        return failures

    def _ask_anew(self, partitions: Iterable[TopicPartition]) -> None:
        """Where to read is decided again, by what the cluster says now."""
        for partition in partitions:
            if partition in self._positions:
                self._positions[partition].replica = NO_REPLICA
                self._sources.look_again(partition.topic)

    async def _wait_out(self, failure: Exception, deadline_ms: float) -> None:
        now_ms = self._cluster.clock.monotonic_ms()
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        is_hopeless = now_ms - self._failing_since_ms >= self._cluster.config.default_api_timeout_ms
        if is_hopeless or not is_retriable(failure):
            raise failure
        self._cluster.forget(*{partition.topic for partition in self._positions})
        await self._cluster.pause(self._failures, deadline_ms, failure)
        self._failures += 1

    async def _take(self, answer: FetchAnswer) -> None:
        position, data = self._positions.get(answer.partition), answer.data
        if position is None or position.offset != answer.asked_offset or answer.partition in self._buffer:
            return
        if data.preferred_read_replica != NO_REPLICA:
            position.replica = data.preferred_read_replica
            position.replica_until_ms = self._cluster.deadline_ms(self._cluster.config.metadata_max_age_ms)
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and position.replica != NO_REPLICA:
            position.replica = NO_REPLICA  # the leader knows more than a replica behind it
            position.must_ask_leader = True
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._reset(answer)
        elif data.error_code != ErrorCode.NONE:
            raise broker_error(data.error_code, f"fetch of {answer.partition}")
        elif data.diverging_epoch.end_offset >= 0:
            self._diverge(answer)
        else:
            self._open(answer, position)

    def _open(self, answer: FetchAnswer, position: Position) -> None:
        data = answer.data
        position.must_ask_leader = False
        position.high_watermark = data.high_watermark
        position.last_stable_offset = data.last_stable_offset
        position.log_start_offset = data.log_start_offset
        if data.records:
            aborted = ((aborted.first_offset, aborted.producer_id) for aborted in data.aborted_transactions or ())
            check = self.config.check_crcs
            self._buffer.put(
                FetchedPartition(answer.partition, data.records, position.offset, aborted=aborted, check_crcs=check)
            )

    def _moved(self, fetched: FetchedPartition) -> None:
        position = self._positions[fetched.partition]
        position.offset = fetched.next_offset
        if fetched.last_epoch != NO_EPOCH:
            position.last_epoch = fetched.last_epoch

    async def _reset(self, answer: FetchAnswer) -> None:
        """The position is not in the log: `auto.offset.reset` says where to go."""
        reset_to = _RESET_TO.get(self.config.auto_offset_reset)
        if reset_to is None:
            raise NoOffsetForPartitionError(
                f"{answer.partition} has no offset {answer.asked_offset} (any more, or yet)"
            )
        await self._seek_to(reset_to, [answer.partition])

    def _diverge(self, answer: FetchAnswer) -> None:
        """The leader's log parted from the one read so far: go back to where they part, or say so."""
        end_offset = answer.data.diverging_epoch.end_offset
        if self.config.auto_offset_reset not in _RESET_TO:
            raise LogTruncatedError(f"{answer.partition} was truncated to {end_offset}, below {answer.asked_offset}")
        self.seek(answer.partition, min(end_offset, answer.asked_offset))


def _note_failure(task: "asyncio.Task[list[FetchAnswer]]") -> None:
    """A fetch ahead of a poll that never comes may fail unheard."""
    if not task.cancelled():
        task.exception()
