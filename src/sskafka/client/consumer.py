"""Reading partitions by assignment: no group, no commits; positions belong to the caller.

    async with Cluster("localhost:9092") as cluster, Consumer(cluster) as consumer:
        consumer.assign({TopicPartition("orders", 0): 0})
        records = await consumer.poll()

One fetch is under way to each broker that leads assigned partitions, or that the leader named as a replica nearer to
`client.rack`. It outlives the `poll` that started it, so a poll
that times out loses nothing; what comes back for a position that was moved meanwhile is dropped.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Self

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.errors import LogTruncatedError, NoOffsetForPartitionError, broker_error, is_retriable
from sskafka.client.fetched import ConsumedRecord, FetchedPartition
from sskafka.client.fetcher import NO_EPOCH, NO_REPLICA, FetchAnswer, Position, fetch
from sskafka.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition

_RESET_TO = {"earliest": EARLIEST, "latest": LATEST}


class Consumer:
    def __init__(self, cluster: Cluster, config: ConsumerConfig | None = None) -> None:
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._positions: dict[TopicPartition, Position] = {}
        self._fetches: dict[int, asyncio.Task[list[FetchAnswer]]] = {}
        self._failures = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        fetches, self._fetches = list(self._fetches.values()), {}
        for under_way in fetches:
            under_way.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)

    # Positions

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._positions)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Reads these partitions from now on, each from its offset, and no others."""
        self._positions = {partition: Position(offset) for partition, offset in offsets.items()}

    def unassign(self, partition: TopicPartition) -> None:
        self._positions.pop(partition, None)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The partition is read from `offset` on; it need not have been assigned before."""
        self._positions[partition] = Position(offset)

    def position(self, partition: TopicPartition) -> int:
        return self._positions[partition].offset

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

    async def poll(self, timeout_ms: int = 1000) -> list[ConsumedRecord]:
        """Records of whichever brokers answer first; an empty list when none has any within `timeout_ms`."""
        deadline_ms = self._cluster.deadline_ms(timeout_ms)
        while self._positions:
            await self._start_fetches()
            left_ms = max(deadline_ms - self._cluster.clock.monotonic_ms(), 0)
            await asyncio.wait(self._fetches.values(), timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
            records = await self._collect(deadline_ms)
            if records or self._cluster.clock.monotonic_ms() >= deadline_ms:
                return records
        return []

    async def _start_fetches(self) -> None:
        """One for each broker to read from that has none under way."""
        topics = {partition.topic for partition in self._positions}
        leaders = await self._cluster.retrying(lambda: self._cluster.by_leader(self._positions), topics=topics)
        for broker, positions in self._by_source(leaders).items():
            if broker not in self._fetches:
                self._fetches[broker] = asyncio.create_task(fetch(self._cluster, self.config, broker, positions))

    def _by_source(self, leaders: Mapping[int, Iterable[TopicPartition]]) -> dict[int, dict[TopicPartition, Position]]:
        """The positions by the broker to read from: the leader, or the replica that it named of late."""
        now_ms = self._cluster.clock.monotonic_ms()
        sources: dict[int, dict[TopicPartition, Position]] = {}
        for leader, partitions in leaders.items():
            for partition in partitions:
                position = self._positions[partition]
                is_elsewhere = position.replica in self._cluster.view.brokers and now_ms < position.replica_until_ms
                sources.setdefault(position.replica if is_elsewhere else leader, {})[partition] = position
        return sources

    async def _collect(self, deadline_ms: float) -> list[ConsumedRecord]:
        """Takes in the fetches that are done; failures that may pass are met with fresh metadata and a pause.

        A failure that stays is raised only when there are no records to hand out: it will come again.
        """
        records: list[ConsumedRecord] = []
        failure: Exception | None = None
        for broker in [broker for broker, under_way in self._fetches.items() if under_way.done()]:
            try:
                answers = self._fetches.pop(broker).result()
                for answer in answers:
                    records += await self._take(answer)
            except Exception as error:
                failure = error
        if failure is None:
            self._failures = 0
        elif is_retriable(failure):
            await self._recover(deadline_ms)
        elif not records:
            raise failure
        return records

    async def _recover(self, deadline_ms: float) -> None:
        """Leaders are asked again who they are, and where to read."""
        for position in self._positions.values():
            position.replica = NO_REPLICA
        self._cluster.forget(*{partition.topic for partition in self._positions})
        await self._cluster.pause(self._failures, deadline_ms)
        self._failures += 1

    async def _take(self, answer: FetchAnswer) -> list[ConsumedRecord]:
        position, data = self._positions.get(answer.partition), answer.data
        if position is None or position.offset != answer.asked_offset:
            return []
        if data.preferred_read_replica != NO_REPLICA:
            position.replica = data.preferred_read_replica
            position.replica_until_ms = self._cluster.deadline_ms(self._cluster.config.metadata_max_age_ms)
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and position.replica != NO_REPLICA:
            position.replica = NO_REPLICA  # the leader knows more than a replica behind it
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._reset(answer)
        elif data.error_code != ErrorCode.NONE:
            raise broker_error(data.error_code, f"fetch of {answer.partition}")
        elif data.diverging_epoch.end_offset >= 0:
            self._diverge(answer)
        else:
            return self._read(answer, position)
        return []

    def _read(self, answer: FetchAnswer, position: Position) -> list[ConsumedRecord]:
        data = answer.data
        position.high_watermark = data.high_watermark
        position.last_stable_offset = data.last_stable_offset
        position.log_start_offset = data.log_start_offset
        fetched = FetchedPartition(
            answer.partition,
            data.records or b"",
            position.offset,
            aborted=((aborted.first_offset, aborted.producer_id) for aborted in data.aborted_transactions or ()),
            check_crcs=self.config.check_crcs,
        )
        records = list(fetched)
        position.offset = fetched.next_offset
        if fetched.last_epoch != NO_EPOCH:
            position.last_epoch = fetched.last_epoch
        return records

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
