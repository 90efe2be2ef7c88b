"""The metadata of one partition: replicas, leader, epochs.

leader_epoch      increases with every leader election, even if the leader stays the same or there is none
partition_epoch   increases with every change; AlterPartition compares it before it sets the ISR
"""

from dataclasses import replace

from sskafka.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
)
from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.model.values import value

UNASSIGNED_DIRECTORY = ZERO_UUID


@value
class PartitionImage:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...] = ()
    """Log directory of each replica, in the order of `replicas`."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    """Not in the ISR, but known to have everything below the high watermark (KIP-966)."""
    last_known_eligible_leader_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """1 (RECOVERING) while the leader of an unclean election recovers."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @classmethod
    def from_record(cls, record: PartitionRecord) -> "PartitionImage":
        return cls(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=_directories_for(record.replicas, record.directories),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_eligible_leader_replicas=tuple(record.last_known_elr or ()),
            leader_recovery_state=record.leader_recovery_state,
        )

    def changed_by(self, record: PartitionChangeRecord) -> "PartitionImage":
        changes_leader = record.leader != NO_LEADER_CHANGE
        recovery = record.leader_recovery_state
        replicas = _changed(self.replicas, record.replicas)
        last_known = _changed(self.last_known_eligible_leader_replicas, record.last_known_elr)
        return replace(
            self,
            replicas=replicas,
            isr=_changed(self.isr, record.isr),
            leader=record.leader if changes_leader else self.leader,
            leader_epoch=self.leader_epoch + changes_leader,
            partition_epoch=self.partition_epoch + 1,
            directories=self._directories_after(record, replicas),
            removing_replicas=_changed(self.removing_replicas, record.removing_replicas),
            adding_replicas=_changed(self.adding_replicas, record.adding_replicas),
            eligible_leader_replicas=_changed(self.eligible_leader_replicas, record.eligible_leader_replicas),
            last_known_eligible_leader_replicas=last_known,
            leader_recovery_state=self.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        )

    def directory_of(self, broker_id: int) -> Uuid:
        return self.directories[self.replicas.index(broker_id)]

    def _directories_after(self, record: PartitionChangeRecord, replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
        """Return the directories after the change; replicas that stay keep theirs if the record has none."""
        if record.directories is not None:
            return tuple(record.directories)
        known = dict(zip(self.replicas, self.directories, strict=True))
        return tuple(known.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)


def _directories_for(replicas: list[int], directories: list[Uuid]) -> tuple[Uuid, ...]:
    """Return the directories; older records have none."""
    if len(directories) != len(replicas):
        return (UNASSIGNED_DIRECTORY,) * len(replicas)
    return tuple(directories)


def _changed(current: tuple[int, ...], new: list[int] | None) -> tuple[int, ...]:
    return current if new is None else tuple(new)
