"""The next step of a member of a consumer group towards its target assignment.

    has what it must give up?   told so, and waited for           UNREVOKED_PARTITIONS, epoch as before
    nothing to give up          gets what nobody else has now     UNRELEASED_PARTITIONS while some is with others,
                                                                  STABLE otherwise; epoch of the target

No partition ever has two owners: it is given only when its owner before has said that it let go, or is gone.
"""

from collections.abc import Callable

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.consumer_member import ConsumerMember, MemberState
from sskafka.model.ids import Uuid

IsFree = Callable[[tuple[Uuid, int]], bool]


def reconciled(
    member: ConsumerMember, target_epoch: int, target: Partitions, is_free: IsFree, reported: Partitions | None
) -> ConsumerMember:
    """`reported` is what the member says that it owns; None when it did not say."""
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch and member.assigned == target:
            return member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(member.pending_revocation, reported):
            return member
    return _next_step(member, target_epoch, target, is_free, reported)


def _next_step(
    member: ConsumerMember, target_epoch: int, target: Partitions, is_free: IsFree, reported: Partitions | None
) -> ConsumerMember:
    kept = member.assigned & target
    to_revoke = member.assigned - target
    if to_revoke and _still_owns(to_revoke, reported):
        return member._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=to_revoke)
    missing = target - kept
    given = frozenset(item for item in missing if is_free(item))
    state = MemberState.STABLE if given == missing else MemberState.UNRELEASED_PARTITIONS
    advanced = member.at_epoch(target_epoch)
    return advanced._replace(state=state, assigned=kept | given, pending_revocation=NOTHING)


def _still_owns(partitions: Partitions, reported: Partitions | None) -> bool:
    return reported is None or bool(partitions & reported)
