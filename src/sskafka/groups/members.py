"""Members of groups: of classic ones, and of consumer groups (KIP-848).

A classic member is as its last JoinGroup described it; most of it is soft state, see classic_group. A member of a
consumer group is a value: what it wants, what it has, and what it still has to give up. It changes by being replaced
with what the log says.

    STABLE                  has what the target says
    UNREVOKED_PARTITIONS    was told to give up partitions and has not said yet that it did; keeps its old epoch
    UNRELEASED_PARTITIONS   has the target's epoch, but partitions meant for it are still with others
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.model.coordination import Completion
from sskafka.model.ids import Uuid

Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignment strategies with what the member says in each, the most wanted first."""


class Client(NamedTuple):
    """Where a request came from."""

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
        """It has not heard of its first generation yet, so it cannot heartbeat."""

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
        """The most wanted of the candidates, each of which the member supports."""
        return next(name for name, _ in self.protocols if name in candidates)


# -- consumer groups

AssignmentEpochs = Mapping[tuple[Uuid, int], int]

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""The instance is expected back: its partitions wait for it until the session is over."""


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class ClassicSide(NamedTuple):
    """Of a member that still speaks the classic protocol to this group."""

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
    """Of what it owns: the epoch since which the partition is its own. Commits of older epochs do not count."""

    @property
    def owned(self) -> Partitions:
        """What nobody else may have yet."""
        return self.assigned | self.pending_revocation

    @property
    def subscription(self) -> tuple[frozenset[str], str]:
        return self.topic_names, self.topic_regex

    @property
    def name(self) -> str:
        return self.instance_id or self.member_id

    def may_commit(self, partition: tuple[Uuid | None, int], epoch: int) -> bool:
        """Whether the partition was the member's own in an epoch before its current one, and still is."""
        topic_id, index = partition
        since = None if topic_id is None else self.assignment_epochs.get((topic_id, index))
        return since is not None and epoch >= since

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def owning(self, assigned: Partitions, pending_revocation: Partitions, since: int = 0) -> "ConsumerMember":
        """Return the member with these partitions; what it did not own before is its own since epoch `since`."""
        known = self.assignment_epochs
        epochs = {partition: known.get(partition, since) for partition in assigned | pending_revocation}
        return self._replace(
            assigned=assigned, pending_revocation=pending_revocation, assignment_epochs=MappingProxyType(epochs)
        )

    def at_epoch(self, epoch: int) -> "ConsumerMember":
        return self if epoch == self.epoch else self._replace(epoch=epoch, previous_epoch=self.epoch)
