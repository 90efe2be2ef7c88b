"""The in-sync replicas of a partition, as its leader knows them: agreed, and asked for.

    committed --propose--> pending --commit------> committed (the new set)
                              |-----not applied--> committed (as it was)
                              `-----superseded---> pending until the metadata tells what happened

A change holds only once the controller has written it; until then it may or may not come. So the high watermark is
computed over the maximal set: members asked to join count already, members asked to leave count still. Every change
names the partition epoch it was made from, and the controller refuses it if that is no longer the newest.
"""

from enum import Enum, auto

from sskafka.model.errors import ErrorCode
from sskafka.model.values import value


@value
class IsrChange:
    """What the leader asks the controller for."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Of each member when it last fetched, so that a broker that has restarted since does not get in; -1: unknown."""


class Outcome(Enum):
    """What an error says about the change that it answers."""

    NOT_APPLIED = auto()
    """The controller looked at the change in the current epoch and refused it: it cannot have been written."""
    SUPERSEDED = auto()
    """The controller is ahead, perhaps by this very change: only the metadata can tell."""
    UNKNOWN = auto()
    """Try again."""


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
        assert self.pending is None, "one change at a time"
        assert change.partition_epoch == self.partition_epoch, "a change is made from what is committed"
        self.pending = change
        self.maximal = frozenset(self.committed + change.isr)

    def commit(self, isr: tuple[int, ...], partition_epoch: int) -> bool:
        """The controller wrote this, whoever asked for it; False when that is no news."""
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
