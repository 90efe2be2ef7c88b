"""Members of groups: of classic ones, and of consumer groups (KIP-848).

A classic member has the fields of its last JoinGroup; most of them are soft state, see classic_group. A member of a
consumer group is an immutable value: its subscription, its partitions, and those that it has to revoke. Replay replaces
it.

    STABLE                  has its target assignment
    UNREVOKED_PARTITIONS    has to revoke partitions and has not confirmed that yet; keeps its old epoch
    UNRELEASED_PARTITIONS   has the target epoch, but some of its partitions are not released by other members yet
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.partition_set import MutablePartitionSet, PartitionSet
from sskafka.model.coordination import Completion
from sskafka.model.ids import Uuid

Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignment strategies with the member's metadata for each, in order of preference."""


class Client(NamedTuple):
    """The client that sent a request."""

    client_id: str = ""
    host: str = ""


class ClassicMember:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Client,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client = client
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Completion | None = None
        self.awaiting_sync: Completion | None = None
        self.is_new = False
        """Whether the member has not received its first JoinGroup response; it cannot heartbeat yet."""

    def __repr__(self) -> str:
        return f"ClassicMember({self.member_id!r})"

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the member's most preferred protocol among the candidates, all of which it supports."""
        return next(name for name, _ in self.protocols if name in candidates)


# -- consumer groups

AssignmentEpochs = Mapping[int, Partitions]

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""The epoch of a static member that left temporarily. It keeps its partitions until its session times out."""


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class ClassicSide(NamedTuple):
    """The fields of a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


class ConsumerMember(NamedTuple):
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client: Client = Client()
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NOTHING
    pending_revocation: Partitions = NOTHING
    assignment_epochs: AssignmentEpochs = MappingProxyType({})
    """By epoch: the owned partitions that the member has had since then. Commits with older epochs are rejected."""

    @property
    def owned(self) -> Partitions:
        """The partitions that no other member may have yet."""
        return self.assigned | self.pending_revocation

    @property
    def subscription(self) -> tuple[frozenset[str], str]:
        return self.topic_names, self.topic_regex

    @property
    def name(self) -> str:
        return self.instance_id or self.member_id

    def may_commit(self, partition: tuple[Uuid | None, int], epoch: int) -> bool:
        """Return whether the member has owned the partition since that earlier epoch."""
        return any(epoch >= since and partition in owned for since, owned in self.assignment_epochs.items())

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def owning(
        self, assigned: Partitions, pending_revocation: Partitions, since: int = 0, new: Partitions | None = None
    ) -> "ConsumerMember":
        """Return the member with these partitions. It owns those that are new since epoch `since`.

        `new`: the partitions that it has not owned before, if they are known."""
        owned = assigned | pending_revocation
        epochs = {epoch: kept for epoch, before in self.assignment_epochs.items() if (kept := before & owned)}
        if new is None:
            known = MutablePartitionSet()
            for kept in epochs.values():
                known.update(kept)
            new = owned - PartitionSet(known.release())
        if new:
            epochs[since] = epochs.get(since, NOTHING) | new
        return self._replace(
            assigned=assigned, pending_revocation=pending_revocation, assignment_epochs=MappingProxyType(epochs)
        )

    def at_epoch(self, epoch: int) -> "ConsumerMember":
        return self if epoch == self.epoch else self._replace(epoch=epoch, previous_epoch=self.epoch)

    def assigned_as(self, other: "ConsumerMember") -> "ConsumerMember":
        """Return the member with the epochs, state and partitions of the other."""
        return self._replace(
            epoch=other.epoch,
            previous_epoch=other.previous_epoch,
            state=other.state,
            assigned=other.assigned,
            pending_revocation=other.pending_revocation,
            assignment_epochs=other.assignment_epochs,
        )
