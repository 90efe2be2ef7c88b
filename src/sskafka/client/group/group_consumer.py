"""A consumer that is a member of a group: polls, applies changes of the assignment, calls the callbacks, commits.

Everything that concerns the application happens while it polls (or closes the consumer): callbacks run, partitions are
added and removed, and positions are committed automatically. Only then is it known that the records of earlier polls
are processed, and no record of a revoked partition can be returned after its callback. Heartbeats go on in the
background (`member_driver.py`).
"""

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from sskafka.client.cluster import Cluster
from sskafka.client.config import GroupConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.errors import CommitFailedError, NoOffsetForPartitionError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.fetcher import NO_EPOCH
from sskafka.client.group.classic_membership import ClassicMembership, check_strategies
from sskafka.client.group.consumer_membership import ConsumerMembership
from sskafka.client.group.member_driver import MemberDriver
from sskafka.client.group.member_offsets import MemberOffsets, OffsetToCommit
from sskafka.client.group.membership import ChangeKind, Membership, MembershipChange, TopicSubscription
from sskafka.client.groups import Committed
from sskafka.client.metadata import MetadataSnapshot
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.ids import TopicPartition

_log = logging.getLogger(__name__)

RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[object] | object]
"""Called with sorted partitions. May be a coroutine function."""

CLOSE_TIMEOUT_MS = 5_000
ITERATION_POLL_MS = 100
"""Maximum time for which an iteration returns buffered records without a poll."""
_RESET_TO = {"earliest": EARLIEST, "latest": LATEST}


class RebalanceCallbacks(NamedTuple):
    on_assign: RebalanceCallback | None = None
    on_revoke: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None
    """None: `on_revoke` is called."""


class GroupConsumer:
    """`group_cluster` has the connections to the coordinator; `engine` reads records with connections of its own."""

    def __init__(self, cluster: Cluster, group_cluster: Cluster, engine: ConsumerEngine, config: GroupConfig) -> None:
        self._cluster = cluster
        self._group_cluster = group_cluster
        self._engine = engine
        self._config = config
        self._offsets = MemberOffsets(group_cluster, config.group_id, self._kick)
        self._membership: Membership | None = None
        self._driver: MemberDriver | None = None
        self._callbacks = RebalanceCallbacks()
        self._reads_any_replica = False
        self._polling = asyncio.Lock()
        self._polled_ms = 0.0
        self._committed: dict[TopicPartition, int] = {}
        """Offsets of owned partitions that are known to be committed."""
        self._auto_commit_at_ms = 0.0
        self._auto_commit: asyncio.Task[None] | None = None
        if not config.uses_consumer_protocol:
            check_strategies(config)

    def adopt(self, metadata: MetadataSnapshot) -> None:
        """Find the coordinator with metadata that was fetched elsewhere."""
        self._group_cluster.adopt(metadata)

    # Subscription

    def subscribe(
        self,
        topics: "str | Iterable[str] | re.Pattern[str]",
        callbacks: RebalanceCallbacks,
        *,
        any_replica: bool,
    ) -> None:
        """Join the group, or replace the subscription of this member. Returns at once."""
        pattern = _pattern_of(topics)
        names = frozenset([topics] if isinstance(topics, str) else () if isinstance(topics, re.Pattern) else topics)
        self._callbacks, self._reads_any_replica = callbacks, any_replica
        subscription = TopicSubscription(frozenset() if pattern is not None else names, pattern and pattern.pattern)
        if not self._config.uses_consumer_protocol and pattern is not None:
            subscription = TopicSubscription(frozenset())  # the driver finds the topics
        now_ms = self._cluster.clock.monotonic_ms()
        if self._membership is not None and self._driver is not None:
            if pattern is None or self._config.uses_consumer_protocol:
                self._membership.resubscribe(subscription, now_ms)
            self._driver.follow(pattern)
            return
        self._membership = self._new_membership(subscription, now_ms)
        self._auto_commit_at_ms = now_ms + self._config.auto_commit_interval_ms
        self._driver = MemberDriver(self._group_cluster, self._membership, self._note_news, pattern)
        self._driver.start()

    def _new_membership(self, subscription: TopicSubscription, now_ms: float) -> Membership:
        rack = self._engine.config.client_rack
        if self._config.uses_consumer_protocol:
            return ConsumerMembership(self._config, subscription, str(uuid4()), now_ms, rack)
        return ClassicMembership(self._config, subscription, now_ms, rack)

    def _kick(self) -> None:
        if self._driver is not None:
            self._driver.kick()

    def _note_news(self) -> None:
        """Interrupt a poll that waits for records, if there is something to apply or to raise."""
        membership, interruption = self._membership, self._engine.interruption
        if membership is None or interruption is None or interruption.done():
            return
        if membership.change is not None or membership.failure is not None:
            interruption.set_result(None)

    # Poll

    async def poll(self, timeout_ms: int, max_records: int | None) -> list[ConsumedRecord]:
        deadline_ms = self._cluster.deadline_ms(timeout_ms)
        membership, driver = self._membership, self._driver
        if membership is None or driver is None:
            raise RuntimeError("call subscribe() before poll()")
        async with self._polling:
            now_ms = self._polled_ms = self._cluster.clock.monotonic_ms()
            if membership.polled(now_ms):
                driver.kick()
            self._maybe_auto_commit(now_ms)
            while True:
                await self._apply_changes(membership)
                self._raise_failure(membership, driver)
                records = await self._read(max(0, int(deadline_ms - self._cluster.clock.monotonic_ms())), max_records)
                if records or self._cluster.clock.monotonic_ms() >= deadline_ms:
                    return records

    async def _read(self, timeout_ms: int, max_records: int | None) -> list[ConsumedRecord]:
        """Return records, or none when `timeout_ms` is over or the assignment changes."""
        interruption = self._engine.interruption = asyncio.get_running_loop().create_future()
        if self._engine.assignment:
            return await self._engine.poll(timeout_ms, max_records)
        await asyncio.wait([interruption], timeout=timeout_ms / 1000)
        return []

    def take_buffered(self) -> ConsumedRecord | None:
        """Return a record without a poll, for iterations; None if a poll is due."""
        membership = self._membership
        is_quiet = membership is not None and membership.change is None and membership.failure is None
        if not is_quiet or self._cluster.clock.monotonic_ms() - self._polled_ms >= ITERATION_POLL_MS:
            return None
        return self._engine.take_buffered()

    @staticmethod
    def _raise_failure(membership: Membership, driver: MemberDriver) -> None:
        failure = membership.failure or driver.lasting_failure()
        if failure is not None:
            raise failure

    # Changes of the assignment

    async def _apply_changes(self, membership: Membership) -> None:
        while membership.change is not None:
            change = membership.change
            if change.kind is ChangeKind.ASSIGN:
                await self._assign(membership, change)
            else:
                await self._remove(membership, change)
            self._kick()

    async def _assign(self, membership: Membership, change: MembershipChange) -> None:
        committed = await self.committed(change.partitions)
        positions = await self._starting_positions(change.partitions, committed)
        if membership.change is not change:
            return  # the group has rebalanced in the meantime
        self._committed.update({partition: found.offset for partition, found in committed.items()})
        for partition, position in positions.items():
            self._engine.add(
                partition, position.offset, any_replica=self._reads_any_replica, last_epoch=position.leader_epoch
            )
        membership.applied(change, self._cluster.clock.monotonic_ms())
        self._kick()
        await _call(self._callbacks.on_assign, change.partitions)

    async def _remove(self, membership: Membership, change: MembershipChange) -> None:
        is_lost = change.kind is ChangeKind.LOSE
        if not is_lost and self._config.enable_auto_commit:
            await self._commit_quietly(change.partitions)
        try:
            on_lost = self._callbacks.on_lost or self._callbacks.on_revoke
            await _call(on_lost if is_lost else self._callbacks.on_revoke, change.partitions)
        finally:
            for partition in change.partitions:
                self._engine.unassign(partition)
                self._committed.pop(partition, None)
            membership.applied(change, self._cluster.clock.monotonic_ms())

    async def _starting_positions(
        self, partitions: Iterable[TopicPartition], committed: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, OffsetToCommit]:
        """Return the committed positions; without one, what `auto.offset.reset` says."""
        config = self._engine.config
        positions = {key: OffsetToCommit(found.offset, found.leader_epoch) for key, found in committed.items()}
        missing = [partition for partition in partitions if partition not in committed]
        if missing:
            reset_to = _RESET_TO.get(config.auto_offset_reset)
            if reset_to is None:
                text = f"group {self._config.group_id!r} has no committed offset of {min(missing)}"
                raise NoOffsetForPartitionError(f"{text} and auto.offset.reset is none")
            timestamps = dict.fromkeys(missing, reset_to)
            found = await list_offsets(self._cluster, timestamps, isolation=config.isolation)
            positions |= {partition: OffsetToCommit(start.offset, NO_EPOCH) for partition, start in found.items()}
        return positions

    # Offsets

    def _positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetToCommit]:
        engine = self._engine
        owned = [partition for partition in partitions if partition in engine.assignment]
        return {
            partition: OffsetToCommit(engine.position(partition), engine.last_epoch(partition)) for partition in owned
        }

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or the positions of all partitions that the consumer owns."""
        if offsets is None:
            await self._commit(self._positions(self._engine.assignment))
        else:
            await self._commit({partition: OffsetToCommit(offset) for partition, offset in offsets.items()})

    async def _commit(self, offsets: Mapping[TopicPartition, OffsetToCommit], deadline_ms: float | None = None) -> None:
        await self._offsets.commit(self._membership, offsets, deadline_ms=deadline_ms)
        for partition, committed in offsets.items():
            if partition in self._engine.assignment:
                self._committed[partition] = committed.offset

    async def committed(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of these partitions, or of those that the consumer owns."""
        wanted = self._engine.assignment if partitions is None else partitions
        return await self._offsets.committed(wanted, is_stable=self._engine.config.isolation_level == "read_committed")

    def _maybe_auto_commit(self, now_ms: float) -> None:
        """Commit in the background what earlier polls returned, every `auto.commit.interval.ms`. Not retried: the next
        one commits more."""
        is_running = self._auto_commit is not None and not self._auto_commit.done()
        if not self._config.enable_auto_commit or now_ms < self._auto_commit_at_ms or is_running:
            return
        self._auto_commit_at_ms = now_ms + self._config.auto_commit_interval_ms
        offsets = self._uncommitted(self._engine.assignment)
        if offsets:
            self._auto_commit = asyncio.create_task(self._commit_or_log(offsets, now_ms))

    def _uncommitted(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetToCommit]:
        positions = self._positions(partitions)
        return {key: at for key, at in positions.items() if self._committed.get(key) != at.offset}

    async def _commit_quietly(self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None) -> None:
        """Commit the positions of these partitions, before they are given up."""
        if self._auto_commit is not None:
            await asyncio.wait([self._auto_commit])
        await self._commit_or_log(self._uncommitted(partitions), self._cluster.deadline_ms(timeout_ms))

    async def _commit_or_log(self, offsets: Mapping[TopicPartition, OffsetToCommit], deadline_ms: float) -> None:
        try:
            await self._commit(offsets, deadline_ms)
        except CommitFailedError as error:
            _log.warning("Automatic commit: %s", error)
        except Exception as error:  # the records will be delivered again
            _log.warning("Automatic commit for group %s failed: %s", self._config.group_id, error)

    # Close

    async def close(self, *, is_committing: bool = True) -> None:
        """Commit (with `enable.auto.commit`), call `on_revoke`, leave the group and close the connections to it."""
        try:
            if self._membership is not None and self._driver is not None:
                await self._give_up_partitions(self._membership, is_committing=is_committing)
        finally:
            await self._end()

    async def _give_up_partitions(self, membership: Membership, *, is_committing: bool) -> None:
        owned = membership.owned
        is_lost = membership.identity() is None
        if is_committing and self._config.enable_auto_commit and not is_lost:
            await self._commit_quietly(owned, CLOSE_TIMEOUT_MS)
        if owned:
            on_lost = self._callbacks.on_lost or self._callbacks.on_revoke
            await _call(on_lost if is_lost else self._callbacks.on_revoke, owned)

    async def _end(self) -> None:
        if self._driver is not None:
            await self._driver.stop()
            await self._driver.leave(CLOSE_TIMEOUT_MS)
        if self._auto_commit is not None:
            self._auto_commit.cancel()
            await asyncio.wait([self._auto_commit])
        self._membership = self._driver = None
        await self._group_cluster.close()


def _pattern_of(topics: "str | Iterable[str] | re.Pattern[str]") -> "re.Pattern[str] | None":
    """Return the regular expression; a string is one if it starts with `^`, as for librdkafka."""
    if isinstance(topics, re.Pattern):
        return topics
    return re.compile(topics) if isinstance(topics, str) and topics.startswith("^") else None


async def _call(callback: RebalanceCallback | None, partitions: Iterable[TopicPartition]) -> None:
    if callback is not None:
        result = callback(sorted(partitions))
        if inspect.isawaitable(result):
            await result
