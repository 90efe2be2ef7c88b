"""A leader's view of the replicas that fetch from it: the offset and time of their last fetch.

The high watermark is the largest offset that a majority of voters has on disk; for the leader, its flushed offset
counts. The high watermark advances only past the first record of the leader's epoch: records of earlier epochs are
committed by committing a record of this epoch, never by counting their replicas.
"""

from collections.abc import Iterable
from dataclasses import field

from sskafka.model.values import structure
from sskafka.raft.voters import VoterSet

OBSERVER_SESSION_MS = 300_000
OBSERVERS_MAX = 1_000
"""Further observers are answered, but not listed: anybody may claim any id."""
NEVER = -1


@structure
class ReplicaProgress:
    log_end_offset: int = -1
    """Offset of its last valid fetch: the replica has everything before it on disk. -1: no fetch in this epoch yet."""
    last_fetch_ms: int = NEVER
    last_caught_up_ms: int = NEVER
    leader_end_at_last_fetch: int = -1
    begin_due_ms: int = 0
    """When to send the next BeginQuorumEpoch."""

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif self.leader_end_at_last_fetch >= 0 and offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = self.last_fetch_ms
        self.leader_end_at_last_fetch = leader_end_offset
        self.log_end_offset = offset
        self.last_fetch_ms = now_ms


@structure
class Progress:
    voters: VoterSet
    leader_id: int
    replicas: dict[int, ReplicaProgress] = field(default_factory=dict)
    observers: dict[int, ReplicaProgress] = field(default_factory=dict)
    heard_ms: dict[int, int] = field(default_factory=dict)
    """Time of the last fetch of each other voter, of records or snapshot; initially the time of the election."""

    @classmethod
    def of_new_leader(cls, voters: VoterSet, leader_id: int, now_ms: int) -> "Progress":
        others = voters.others(leader_id)
        replicas = {voter: ReplicaProgress(begin_due_ms=now_ms) for voter in others}
        return cls(voters, leader_id, replicas, heard_ms=dict.fromkeys(others, now_ms))

    def heard_from(self, replica_id: int, now_ms: int, begin_interval_ms: int) -> None:
        if replica_id in self.heard_ms:
            self.heard_ms[replica_id] = now_ms
            self.replicas[replica_id].begin_due_ms = now_ms + begin_interval_ms

    def fetched(self, replica_id: int, offset: int, leader_end_offset: int, now_ms: int) -> None:
        replica = self.replicas.get(replica_id) or self._observer(replica_id, now_ms)
        replica.fetched(offset, leader_end_offset, now_ms)

    def _observer(self, replica_id: int, now_ms: int) -> ReplicaProgress:
        if replica_id not in self.observers:
            self._forget_silent_observers(now_ms)
            if len(self.observers) >= OBSERVERS_MAX:
                return ReplicaProgress()
        return self.observers.setdefault(replica_id, ReplicaProgress())

    def _forget_silent_observers(self, now_ms: int) -> None:
        oldest_ms = now_ms - OBSERVER_SESSION_MS
        self.observers = {node: seen for node, seen in self.observers.items() if seen.last_fetch_ms >= oldest_ms}

    def majority_offset(self, own_flushed_offset: int) -> int:
        """Return the largest offset that a majority of voters has on disk; -1 while it is unknown."""
        offsets = [replica.log_end_offset for replica in self.replicas.values()]
        return self._of_majority([*offsets, own_flushed_offset])

    def majority_heard_ms(self, now_ms: int) -> int:
        """Return the latest time since which a majority, including this leader, has fetched."""
        return self._of_majority([*self.heard_ms.values(), now_ms])

    def _of_majority(self, values: Iterable[int]) -> int:
        return sorted(values, reverse=True)[self.voters.majority - 1]

    def by_log_end(self) -> tuple[int, ...]:
        """Return the other voters, longest log first: the preferred successors of a resigning leader."""
        return tuple(sorted(self.replicas, key=lambda voter: (-self.replicas[voter].log_end_offset, voter)))
