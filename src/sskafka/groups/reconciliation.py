"""The next step of a member of a consumer group towards its target assignment.

    partitions to revoke   sent to the member; the group waits   UNREVOKED_PARTITIONS, epoch as before
    nothing to revoke      the member gets its free partitions       UNRELEASED_PARTITIONS while other members have some
                                                                     of them, STABLE otherwise; epoch of the target

No partition ever has two owners: it is assigned only when its previous owner has confirmed the revocation, or is gone.
A target may be older than the member's subscription; partitions of topics that the member no longer subscribes to are
never assigned, and are revoked.
"""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.members import ConsumerMember, MemberState
from sskafka.model.ids import Uuid

FreeOf = Callable[[Partitions], Partitions]
"""Returns the partitions that no other member owns."""


class TargetAssignment(NamedTuple):
    epoch: int
    partitions: Partitions
    subscribed: Callable[[], frozenset[Uuid]]
    """Returns the topics of the member's current subscription, which may be newer than the target."""

    @property
    def wanted(self) -> Partitions:
        return self.partitions.in_topics(self.subscribed()) if self.partitions else NOTHING


def reconciled(
    member: ConsumerMember,
    target: TargetAssignment,
    free_of: FreeOf,
    reported: Partitions | None,
    is_resubscribed: bool,
) -> ConsumerMember:
    """Return the member after its next step. `reported`: the partitions that it says it owns, or None."""
    match member.state:
        case MemberState.STABLE if member.epoch == target.epoch:
            return _without_unsubscribed(member, target, reported) if is_resubscribed else member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(member.pending_revocation, reported):
            return _without_unsubscribed(member, target, reported) if is_resubscribed else member
    return _next_step(member, target, free_of, reported)


def _next_step(
    member: ConsumerMember, target: TargetAssignment, free_of: FreeOf, reported: Partitions | None
) -> ConsumerMember:
    wanted = target.wanted
    kept = member.assigned & wanted
    to_revoke = NOTHING if kept is member.assigned else member.assigned - wanted
    if to_revoke and _still_owns(to_revoke, reported):
        return member.owning(kept, to_revoke)._replace(state=MemberState.UNREVOKED_PARTITIONS)
    missing = wanted - kept
    granted = free_of(missing)
    is_all = granted == missing
    state = MemberState.STABLE if is_all else MemberState.UNRELEASED_PARTITIONS
    has = wanted if is_all else kept | granted
    new = None if member.pending_revocation else granted
    return member.at_epoch(target.epoch).owning(has, NOTHING, since=target.epoch, new=new)._replace(state=state)


def _without_unsubscribed(
    member: ConsumerMember, target: TargetAssignment, reported: Partitions | None
) -> ConsumerMember:
    """Revoke partitions of topics that the member no longer subscribes to, before there is a new target."""
    if not member.assigned:
        return member
    dropped = member.assigned - member.assigned.in_topics(target.subscribed())
    if not dropped:
        return member
    kept, pending = member.assigned - dropped, member.pending_revocation | dropped
    if _still_owns(pending, reported):
        return member.owning(kept, pending)._replace(state=MemberState.UNREVOKED_PARTITIONS)
    return member.owning(kept, member.pending_revocation)


def _still_owns(partitions: Partitions, reported: Partitions | None) -> bool:
    return reported is None or not partitions.isdisjoint(reported)
