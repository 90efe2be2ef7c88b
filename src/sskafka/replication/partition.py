"""One replica on this broker: its log, its role, and the requests that wait for it.

    leader      clients append; followers fetch up to the log end, and their fetch offsets advance the high watermark
    follower    a fetcher appends the leader's batches; the high watermark is the leader's, up to the own log end
    neither     the partition has no leader: committed records can be read, nothing is written

A produce request appends here and may wait for the high watermark. A fetch reads here and may wait for data. The
leader's own position is what its log may acknowledge (`ready_offset`), so with flush.messages=1 nothing is visible
before it is on disk. `sskafka.partition` decides on offsets and the ISR.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from sskafka.model.buffers import Buffer
from sskafka.model.counters import TopicCounters
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.partition.follower_progress import LastFetch
from sskafka.partition.in_sync_replicas import IsrChange, Outcome, outcome_of
from sskafka.partition.leader_state import Leadership, LeaderState
from sskafka.replication.errors import (
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    StaleBrokerEpochError,
    UnknownLeaderEpochError,
)
from sskafka.replication.readable_partition import UNKNOWN_EPOCH, PartitionRead, ReadablePartition
from sskafka.replication.reader_positions import ReaderPositions
from sskafka.replication.replica_counters import ReplicaCounters
from sskafka.replication.throttle import ThrottledSides
from sskafka.runtime.delayed_operation import OffsetWaiters
from sskafka.storage.append_checks import Inspected
from sskafka.storage.errors import OffsetOutOfRangeError
from sskafka.storage.log import AppendInfo as AppendInfo  # noqa: PLC0414  servers import it from here
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig

_log = logging.getLogger(__name__)

ACKS_ALL: Final = -1


class DelayedFetch(Protocol):
    def data_arrived(self) -> None:
        """Answer if there is enough data now. Do nothing if the fetch has been answered already."""
        ...


class DataWaiter(Protocol):
    """Waits for new data in this partition: a parked fetch, or the session of a follower."""

    def note_data(self) -> DelayedFetch | None:
        """Note new data. Return the fetch that waits for it, which is called once all new data is noted."""
        ...

    def partition_changed(self) -> None:
        """Stop waiting: the partition has a new leader epoch or is gone."""
        ...


class FollowerPosition:
    """The state of a follower's replica, taken from its fetch."""

    __slots__ = (
        "broker_epoch",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetch",
        "last_fetched_epoch",
        "log_start_offset",
        "replica_id",
    )

    def __init__(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
        current_leader_epoch: int,
        last_fetch: LastFetch | None = None,
    ) -> None:
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.current_leader_epoch = current_leader_epoch
        self.last_fetch = last_fetch


class PartitionHost(Protocol):
    """What a partition needs from its broker."""

    broker_id: int
    lag_max_ms: int
    counters: ReplicaCounters

    def monotonic_ms(self) -> float: ...

    def broker_epoch(self) -> int: ...

    def registered_epoch(self, broker_id: int) -> int | None: ...

    def wake_soon(self, partition: "Partition") -> None: ...

    def wake_followers_later(self, partition: "Partition") -> None: ...

    def ask_for_isr(self, partition: "Partition", change: IsrChange) -> None: ...


class Partition(ReadablePartition):
    __slots__ = (
        "_has_enough_in_sync",
        "_host",
        "_leads_alone",
        "_min_insync_replicas",
        "committed_waiters",
        "counters",
        "data_waiters",
        "follower_waiters",
        "log_start_waiters",
        "on_flushed",
        "readers",
        "ready_waiters",
        "throttled",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: Log,
        leadership: Leadership,
        high_watermark: int,
        min_insync_replicas: int,
        counters: TopicCounters,
        host: PartitionHost,
    ) -> None:
        super().__init__(topic_partition, topic_id, log, leadership)
        log.advance_high_watermark(min(high_watermark, log.log_end_offset))
        self.counters = counters
        self.committed_waiters = OffsetWaiters()
        self.ready_waiters = OffsetWaiters()
        self.log_start_waiters = OffsetWaiters()
        """Wait until the logs of all replicas start at an offset."""
        self.data_waiters: dict[DataWaiter, None] = {}
        self.follower_waiters: dict[DataWaiter, None] = {}
        self.on_flushed: Callable[[], None] | None = None
        """Set by a fetcher that waits for the flush of what it appended."""
        self.throttled = ThrottledSides()
        self.readers = ReaderPositions()
        self._host = host
        self._min_insync_replicas = min_insync_replicas
        log.on_ready = self._flushed
        self._take_role(leadership)

    def has_enough_in_sync(self) -> bool:
        return self._has_enough_in_sync

    def has_follower_in_sync(self, replica_id: int) -> bool:
        return self.leader is not None and replica_id in self.leader.isr.committed

    def is_under_replicated(self) -> bool:
        return self.leader is not None and len(self.leader.isr.committed) < len(self.leader.replicas)

    def is_at_min_isr(self) -> bool:
        return self.leader is not None and len(self.leader.isr.committed) == self._min_insync_replicas

    def configure(self, config: LogConfig, min_insync_replicas: int) -> None:
        self.log.configure(config)
        self._min_insync_replicas = min_insync_replicas
        self._in_sync_changed()

    def flush_soon(self) -> None:
        """Start a flush in the background."""
        self.log.flush_soon()

    # -- writing

    def append(
        self,
        batches: memoryview,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
        inspected: Inspected | None = None,
    ) -> AppendInfo:
        """Append as the leader. `Log.append_as_leader` says what `inspected` is."""
        leader = self.leader
        if leader is None:
            raise NotLeaderOrFollowerError(f"broker {self.leadership.leader_id} leads {self.topic_partition}")
        if acks == ACKS_ALL and not self._has_enough_in_sync:
            raise NotEnoughReplicasError(f"{self.topic_partition} has {len(leader.isr.committed)} replicas in sync")
        info = self.log.append_as_leader(
            batches, leader.leader_epoch, now_ms, from_client=from_client, inspected=inspected
        )
        if self._leads_alone:
            self._maybe_advance_high_watermark()
        if self.follower_waiters:
            self._host.wake_soon(self)
        return info

    def _flushed(self) -> None:
        self.ready_waiters.release(self.log.ready_offset)
        self._maybe_advance_high_watermark()
        if self.on_flushed is not None:
            self.on_flushed()

    def _maybe_advance_high_watermark(self) -> None:
        leader, log = self.leader, self.log
        if leader is None or not self._has_enough_in_sync:
            return
        candidate = log.ready_offset
        if leader.followers:
            host = self._host
            candidate = leader.high_watermark_candidate(
                candidate, log.log_end_offset, host.registered_epoch, host.monotonic_ms()
            )
        if log.advance_high_watermark(candidate):
            self._high_watermark_moved()

    def _high_watermark_moved(self) -> None:
        if self.committed_waiters:
            self.committed_waiters.release(self.log.offsets.high_watermark)
        if self.data_waiters:
            self._host.wake_soon(self)
        if self.follower_waiters:
            self._host.wake_followers_later(self)

    # -- the followers of a leader

    def read_as_follower(
        self, position: FollowerPosition, max_bytes: int, min_one: bool, is_new: bool
    ) -> PartitionRead:
        """Return whole batches from the follower's log end offset on, up to the log end, committed or not.

        `is_new`: this is the fetch's first attempt, so its offset tells what the follower has."""
        self.check_leader_epoch(position.current_leader_epoch)
        if position.last_fetched_epoch != UNKNOWN_EPOCH:
            diverging = self._diverging(position.last_fetched_epoch, position.fetch_offset)
            if diverging is not None:
                return self._read_nothing(diverging)
        offsets = self.log.offsets
        if not offsets.log_start <= position.fetch_offset <= offsets.log_end:
            raise OffsetOutOfRangeError(position.fetch_offset, offsets.log_start, offsets.log_end)
        if is_new:
            self._note_follower(position)
        slices = self.log.read(position.fetch_offset, max_bytes, offsets.log_end, min_one)
        size_bytes = sum([part.length for part in slices])
        return PartitionRead(offsets.high_watermark, offsets.last_stable, offsets.log_start, slices, size_bytes, None)

    def _note_follower(self, position: FollowerPosition) -> None:
        """Record a follower's fetch offset: it has everything below."""
        leader = self.leader
        assert leader is not None
        progress = leader.followers.get(position.replica_id)
        if progress is None:
            if position.current_leader_epoch == UNKNOWN_EPOCH:
                raise NotLeaderOrFollowerError(f"{position.replica_id} is not a replica of {self.topic_partition}")
            # During a reassignment a new replica may learn of its leader before the leader learns of the replica. It
            # retries.
            raise UnknownLeaderEpochError(f"{position.replica_id} is not yet a replica of {self.topic_partition}")
        self._check_broker_epoch(position)
        offset, log_end_offset = position.fetch_offset, self.log.offsets.log_end
        now_ms = self._host.monotonic_ms()
        progress.fetched(
            offset, position.log_start_offset, position.broker_epoch, log_end_offset, now_ms, position.last_fetch
        )
        if offset > self.log.offsets.high_watermark:
            self._maybe_advance_high_watermark()
        if self.log_start_waiters:
            self.log_start_waiters.release(self.low_watermark)
        if position.replica_id not in leader.isr.maximal:
            self._maybe_expand_isr(position.replica_id)

    def forgotten_by(self, replica_id: int, last_fetch: LastFetch) -> None:
        """Note that a follower does not fetch this partition any more in the session of `last_fetch`."""
        progress = self.leader.followers.get(replica_id) if self.leader is not None else None
        if progress is not None:
            progress.forgotten_by(last_fetch)

    def _check_broker_epoch(self, position: FollowerPosition) -> None:
        registered = self._host.registered_epoch(position.replica_id)
        if registered is not None and UNKNOWN_EPOCH < position.broker_epoch < registered:
            raise StaleBrokerEpochError(
                f"broker {position.replica_id} fetches with epoch {position.broker_epoch} and is registered "
                f"with {registered}"
            )

    def _maybe_expand_isr(self, replica_id: int) -> None:
        assert self.leader is not None
        host = self._host
        change = self.leader.plan_expand(
            replica_id, self.high_watermark, host.registered_epoch, host.broker_epoch(), host.monotonic_ms()
        )
        if change is not None:
            self._propose(change)

    def check_lag(self) -> None:
        """Remove followers from the ISR that have not caught up for too long, so that they do not delay the others."""
        if self.leader is None:
            return
        host = self._host
        change = self.leader.plan_shrink(self.log_end_offset, host.broker_epoch(), host.monotonic_ms())
        if change is not None:
            _log.info("%s: the ISR is %s, requesting %s", self.topic_partition, self.leader.isr.committed, change.isr)
            self._propose(change)
        self._maybe_advance_high_watermark()

    def brokers_changed(self) -> None:
        if self.leader is not None and self.leader.followers:
            self._maybe_advance_high_watermark()

    def _propose(self, change: IsrChange) -> None:
        assert self.leader is not None
        self.leader.isr.propose(change)
        self._in_sync_changed()
        self._host.ask_for_isr(self, change)

    # -- results of ISR changes

    def is_waiting_for(self, change: IsrChange) -> bool:
        return self.leader is not None and self.leader.isr.pending is change

    def isr_committed(self, change: IsrChange, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Apply the ISR that the controller has committed. The matching metadata may arrive before or after.

        An ISR that has lost members is applied with its metadata: min.insync.replicas may have been raised before, and
        settings arrive with the metadata."""
        leader = self.leader
        if leader is None or leader.leader_epoch != change.leader_epoch:
            return
        if set(leader.isr.committed).issubset(isr):
            self._commit_isr(isr, partition_epoch)

    def isr_refused(self, change: IsrChange, error: ErrorCode) -> Outcome:
        outcome = outcome_of(error)
        if outcome is Outcome.NOT_APPLIED and self.leader is not None:
            self.leader.not_applied(change, self._host.monotonic_ms())
            self._in_sync_changed()
        if outcome is not Outcome.UNKNOWN:
            self._host.counters.failed_isr_updates += 1
            _log.info("%s: the ISR change to %s was rejected: %s", self.topic_partition, change.isr, error.name)
        return outcome

    def _commit_isr(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        assert self.leader is not None
        before = len(self.leader.isr.committed)
        if self.leader.commit_isr(isr, partition_epoch):
            self._host.counters.count_isr_change(before, len(isr))
            self._in_sync_changed()
            for waiter in self.follower_waiters:
                waiter.note_data()

    def _in_sync_changed(self) -> None:
        leader = self.leader
        self._leads_alone = leader is not None and leader.is_alone
        self._has_enough_in_sync = leader is not None and leader.has_enough_in_sync(self._min_insync_replicas)
        self._maybe_advance_high_watermark()

    # -- follower

    def append_as_follower(self, batches: Buffer, now_ms: int) -> None:
        self.log.append_as_follower(batches, now_ms)

    def follow_high_watermark(self, leader_high_watermark: int) -> None:
        """Advance to the leader's high watermark, up to the own log end. The high watermark never decreases."""
        if self.log.advance_high_watermark(min(leader_high_watermark, self.log.offsets.log_end)):
            self._high_watermark_moved()

    def follow_log_start(self, leader_log_start_offset: int) -> bool:
        """Advance to the leader's log start offset. Return True if the log start offset changed."""
        if not self.log_start_offset < leader_log_start_offset <= self.high_watermark:
            return False
        self.log.increment_log_start_offset(leader_log_start_offset)
        return True

    def truncate_to(self, offset: int) -> None:
        """Truncate what the leader does not have."""
        if offset < self.high_watermark:
            _log.warning(
                "%s is truncated to %d, below its high watermark %d: the leader was not in sync when it was elected",
                self.topic_partition,
                offset,
                self.high_watermark,
            )
        self.log.truncate_to(offset)

    def restart_at(self, offset: int) -> None:
        """Start over at `offset`, because the leader has nothing below it any more."""
        self.log.truncate_fully_and_start_at(offset)

    # -- changes from the metadata

    def change_leadership(self, leadership: Leadership) -> bool:
        """Apply metadata, unless it is older than the controller's last answer. Return True for a new leader epoch."""
        known = self.leadership
        if leadership.leader_epoch > known.leader_epoch:
            self._take_role(leadership)
            self._wake_everyone()
            return True
        if leadership.leader_epoch < known.leader_epoch or leadership.partition_epoch < self._partition_epoch():
            return False
        self.leadership = leadership
        if self.leader is not None:
            self.leader.change_replicas(leadership.replicas)
            self._commit_isr(leadership.isr, leadership.partition_epoch)
            self._in_sync_changed()
        return False

    def _partition_epoch(self) -> int:
        return self.leadership.partition_epoch if self.leader is None else self.leader.isr.partition_epoch

    def _take_role(self, leadership: Leadership) -> None:
        """Become leader or follower. A leader that stays leader keeps its waiting requests, a follower fails them."""
        host = self._host
        self.leadership = leadership
        self.leader = None
        if leadership.is_led_by(host.broker_id):
            self.leader = LeaderState(
                leadership, host.broker_id, self.log_end_offset, host.lag_max_ms, host.monotonic_ms()
            )
        else:
            self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._in_sync_changed()

    def release_all(self, error: ErrorCode) -> None:
        """Fail all waiting requests, and later appends of coordinators: the replica is deleted or offline.

        An append would open the files of the log again, which are gone, and take the directory for a broken one."""
        self.leader = None
        self._fail_waiters(error)
        self._wake_everyone()

    def _fail_waiters(self, error: ErrorCode) -> None:
        for waiters in (self.committed_waiters, self.ready_waiters, self.log_start_waiters):
            waiters.fail(error)

    def _wake_everyone(self) -> None:
        for waiter in [*self.data_waiters, *self.follower_waiters]:
            waiter.partition_changed()

    # -- the log

    def replace_log(self, log: Log) -> None:
        """Replace the log with its synced copy from another directory. Requests that wait for other replicas keep
        waiting."""
        log.producers.verifies_transactions = self.log.producers.verifies_transactions
        log.advance_high_watermark(self.high_watermark)
        self.log = log
        log.on_ready = self._flushed
        self._flushed()  # requests waited for a sync of the old log

    # -- log start offset

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of all replicas, except those on unavailable brokers."""
        own = self.log_start_offset
        return own if self.leader is None else self.leader.low_watermark(own, self._host.registered_epoch)

    def start_at(self, log_start_offset: int) -> None:
        """Advance the log start offset (DeleteRecords)."""
        self.log.increment_log_start_offset(log_start_offset)
        self._propagate_log_start()

    def retire_segments(self, now_ms: int) -> int:
        """Delete the segments that retention no longer keeps. Return their number."""
        gone = self.log.retire_segments(now_ms)
        if gone:
            self._propagate_log_start()
        return gone

    def _propagate_log_start(self) -> None:
        if self.follower_waiters:
            self._host.wake_followers_later(self)
