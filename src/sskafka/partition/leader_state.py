"""State of a replica while it leads a partition in one leader epoch: the progress of the followers, and the ISR.

The high watermark is the smallest log end offset in the maximal ISR; for the leader itself it is the offset up to which
its log may acknowledge records. The high watermark does not advance while fewer than min.insync.replicas are in sync
(KIP-966): records that only such a leader has are not committed. A replica outside the ISR that has nearly caught up
also holds the high watermark back; otherwise it could chase a busy leader forever without getting into sync.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from sskafka.model.values import value
from sskafka.partition.follower_progress import (
    NEVER_MS,
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    FollowerProgress,
)
from sskafka.partition.in_sync_replicas import InSyncReplicas, IsrChange

REJECTED_PAUSE_MS: Final = 100

RegisteredEpoch: TypeAlias = Callable[[int], int | None]
"""Returns the epoch of a broker's registration; None if the broker is fenced, shutting down or unknown."""


@value
class Leadership:
    """Leader and in-sync replicas of a partition, according to the cluster metadata."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    def is_led_by(self, broker_id: int) -> bool:
        return self.leader_id == broker_id


class LeaderState:
    __slots__ = (
        "_quiet_until_ms",
        "broker_id",
        "epoch_start_offset",
        "followers",
        "isr",
        "lag_max_ms",
        "leader_epoch",
        "replicas",
    )

    def __init__(
        self, leadership: Leadership, broker_id: int, epoch_start_offset: int, lag_max_ms: int, now_ms: float
    ) -> None:
        """Members of the ISR start as caught up, so that they have the full lag time to find the new leader."""
        self.broker_id = broker_id
        self.leader_epoch = leadership.leader_epoch
        self.epoch_start_offset = epoch_start_offset
        self.lag_max_ms = lag_max_ms
        self.replicas = leadership.replicas
        self._quiet_until_ms = NEVER_MS
        self.isr = InSyncReplicas(leadership.isr, leadership.partition_epoch)
        self.followers = {
            replica: FollowerProgress(now_ms if replica in leadership.isr else NEVER_MS)
            for replica in self._others(leadership.replicas)
        }

    def _others(self, replicas: Iterable[int]) -> list[int]:
        return [replica for replica in replicas if replica != self.broker_id]

    @property
    def is_alone(self) -> bool:
        """Whether a record is committed as soon as this leader has it."""
        return len(self.isr.maximal) == 1

    def has_enough_in_sync(self, min_insync_replicas: int) -> bool:
        return len(self.isr.committed) >= min(min_insync_replicas, len(self.replicas))

    # -- offsets

    def high_watermark_candidate(
        self, own_offset: int, log_end_offset: int, registered_epoch: RegisteredEpoch, now_ms: float
    ) -> int:
        """Return the high watermark for the case that enough replicas are in sync; -1 while a position is unknown."""
        maximal = self.isr.maximal
        candidate = own_offset
        for replica, progress in self.followers.items():
            if progress.log_end_offset < candidate and (
                replica in maximal
                or (
                    progress.is_caught_up(log_end_offset, now_ms, self.lag_max_ms)
                    and self._is_eligible(replica, registered_epoch)
                )
            ):
                candidate = progress.log_end_offset
        return candidate

    def low_watermark(self, own_log_start_offset: int, registered_epoch: RegisteredEpoch) -> int:
        """Return the lowest log start offset of replicas on live brokers; -1 while one of them is unknown."""
        starts = [
            progress.log_start_offset
            for replica, progress in self.followers.items()
            if registered_epoch(replica) is not None
        ]
        return min([own_log_start_offset, *starts])

    def largest_lag(self, log_end_offset: int) -> int:
        """Return how many records the slowest follower is behind. Followers that have not fetched yet do not count."""
        known = (one.log_end_offset for one in self.followers.values() if one.log_end_offset != UNKNOWN_OFFSET)
        return log_end_offset - min(known, default=log_end_offset)

    # -- ISR changes

    def commit_isr(self, isr: tuple[int, ...], partition_epoch: int) -> bool:
        """Apply an ISR that the controller has written; return False if this partition epoch is already known.

        The controller may have removed a replica because its broker was fenced, e.g. after a network failure. When the
        broker returns, the replica must not hold the high watermark back before its first fetch: producers would wait
        for a connection that may take seconds to recover."""
        before = self.isr.committed
        if not self.isr.commit(isr, partition_epoch):
            return False
        for replica in before:
            if replica not in isr and replica in self.followers:
                self.followers[replica].left_isr()
        return True

    def change_replicas(self, replicas: tuple[int, ...]) -> None:
        """Apply a new replica assignment; replicas that remain keep their progress."""
        self.replicas = replicas
        self.followers = {
            replica: self.followers.get(replica) or FollowerProgress() for replica in self._others(replicas)
        }

    def plan_expand(
        self,
        replica_id: int,
        high_watermark: int,
        registered_epoch: RegisteredEpoch,
        own_broker_epoch: int,
        now_ms: float,
    ) -> IsrChange | None:
        """Return the change that adds a follower, if it has reached the high watermark and the start of this epoch."""
        if self.isr.pending is not None or replica_id in self.isr.committed or now_ms < self._quiet_until_ms:
            return None
        progress = self.followers[replica_id]
        if progress.log_end_offset < max(high_watermark, self.epoch_start_offset):
            return None
        if not self._is_eligible(replica_id, registered_epoch):
            return None
        return self._change([*self.isr.committed, replica_id], own_broker_epoch)

    def plan_shrink(self, log_end_offset: int, own_broker_epoch: int, now_ms: float) -> IsrChange | None:
        """Return the change that removes replicas that have not been caught up for too long, if there are any."""
        if self.isr.pending is not None or self.isr.committed == (self.broker_id,):
            return None
        staying = [
            replica
            for replica in self.isr.committed
            if replica == self.broker_id or self._is_in_step(replica, log_end_offset, now_ms)
        ]
        if len(staying) == len(self.isr.committed):
            return None
        return self._change(staying, own_broker_epoch)

    def not_applied(self, change: IsrChange, now_ms: float) -> None:
        """Handle a change that the controller rejected; pause briefly, or each fetch would request the same change."""
        self.isr.not_applied(change)
        self._quiet_until_ms = now_ms + REJECTED_PAUSE_MS

    def _is_in_step(self, replica: int, log_end_offset: int, now_ms: float) -> bool:
        progress = self.followers.get(replica)
        return progress is not None and progress.is_caught_up(log_end_offset, now_ms, self.lag_max_ms)

    def _is_eligible(self, replica: int, registered_epoch: RegisteredEpoch) -> bool:
        """KIP-903: the fetching process must be the registered one, because a restart may have lost records."""
        registered = registered_epoch(replica)
        if registered is None:
            return False
        return self.followers[replica].broker_epoch in {UNKNOWN_BROKER_EPOCH, registered}

    def _change(self, isr: list[int], own_broker_epoch: int) -> IsrChange:
        def broker_epoch(replica: int) -> int:
            if replica == self.broker_id:
                return own_broker_epoch
            progress = self.followers.get(replica)
            return progress.broker_epoch if progress else UNKNOWN_BROKER_EPOCH

        epochs = tuple(broker_epoch(replica) for replica in isr)
        return IsrChange(self.leader_epoch, self.isr.partition_epoch, tuple(isr), epochs)
