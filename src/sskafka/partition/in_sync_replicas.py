"""The in-sync replicas of a partition on its leader: the committed ISR and a pending change.

    committed --propose--> pending --commit------> committed (the new ISR)
                              |-----not applied--> committed (the old ISR)
                              `-----superseded---> pending until the metadata log shows the outcome

A change is effective only once the controller has written it; until then its outcome is unknown. The high watermark is
therefore computed over the maximal ISR: replicas that are being added already count, and replicas that are being
removed still count. Every change names the partition epoch that it is based on, and the controller rejects it if that
is no longer the latest epoch.
"""

from enum import Enum, auto

from sskafka.model.errors import ErrorCode
from sskafka.model.values import value


@value
class IsrChange:
    """A request of the leader to the controller (AlterPartition)."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Broker epoch of each member at its last fetch, so that a broker restarted since is not added; -1: unknown."""


class Outcome(Enum):
    """The outcome of a change according to the error in a response."""

    NOT_APPLIED = auto()
    """The controller rejected the change in the current epoch: it has not been written."""
    SUPERSEDED = auto()
    """The controller has a later partition epoch, perhaps from this change: only the metadata log shows the outcome."""
    UNKNOWN = auto()
    """The outcome is unknown; retry."""


_OUTCOMES = {
    ErrorCode.INELIGIBLE_REPLICA: Outcome.NOT_APPLIED,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Outcome.NOT_APPLIED,
    ErrorCode.INVALID_REQUEST: Outcome.NOT_APPLIED,
    ErrorCode.FENCED_LEADER_EPOCH: Outcome.SUPERSEDED,
    ErrorCode.INVALID_UPDATE_VERSION: Outcome.SUPERSEDED,
    ErrorCode.NEW_LEADER_ELECTED: Outcome.SUPERSEDED,
    ErrorCode.UNKNOWN_TOPIC_ID: Outcome.SUPERSEDED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Outcome.SUPERSEDED,
}


def outcome_of(error: ErrorCode) -> Outcome:
    return _OUTCOMES.get(error, Outcome.UNKNOWN)


class InSyncReplicas:
    __slots__ = ("committed", "maximal", "partition_epoch", "pending")

    def __init__(self, committed: tuple[int, ...], partition_epoch: int) -> None:
        self.committed = committed
        self.partition_epoch = partition_epoch
        self.pending: IsrChange | None = None
        self.maximal = frozenset(committed)

    def propose(self, change: IsrChange) -> None:
        assert self.pending is None, "only one change may be pending"
        assert change.partition_epoch == self.partition_epoch, "a change must be based on the committed ISR"
        self.pending = change
        self.maximal = frozenset(self.committed + change.isr)

    def commit(self, isr: tuple[int, ...], partition_epoch: int) -> bool:
        """Apply an ISR that the controller has written; return False if this partition epoch is already known."""
        if partition_epoch <= self.partition_epoch:
            return False
        self.committed = isr
        self.partition_epoch = partition_epoch
        self.pending = None
        self.maximal = frozenset(isr)
        return True

    def not_applied(self, change: IsrChange) -> None:
        if self.pending is change:
            self.pending = None
            self.maximal = frozenset(self.committed)
