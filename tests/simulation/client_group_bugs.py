"""Bugs that group members of clients have had or could have, to be switched on one at a time."""

from collections.abc import Callable

import pytest

from sskafka.client.group.classic_membership import ClassicMembership, _State
from sskafka.client.group.consumer_membership import ConsumerMembership
from sskafka.client.group.membership import Membership
from sskafka.model.errors import ErrorCode

Bug = tuple[str, Callable[[pytest.MonkeyPatch], None]]
"""The protocol under which the bug shows, and the bug."""


def an_eager_member_joins_with_its_partitions(patch: pytest.MonkeyPatch) -> None:
    def rejoin(member: ClassicMembership, now_ms: float) -> None:
        member.change = None
        member._state, member._send_at_ms = _State.JOIN, now_ms

    patch.setattr(ClassicMembership, "_rejoin", rejoin)


def partitions_are_released_before_they_are_revoked(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat that reports the target alone."""
    report = ConsumerMembership._reported

    def reported(member: ConsumerMembership) -> object:
        owned, member.owned = member.owned, frozenset()
        try:
            return report(member)
        finally:
            member.owned = owned

    patch.setattr(ConsumerMembership, "_reported", reported)


def a_removed_member_keeps_its_partitions(patch: pytest.MonkeyPatch) -> None:
    def lose_nothing(member: Membership) -> None:
        member.change = None

    patch.setattr(Membership, "_lose_partitions", lose_nothing)


def a_removed_member_goes_on_with_its_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerMembership, "_forget_membership", lambda member: None)


def revoked_partitions_are_not_assigned_anew(patch: pytest.MonkeyPatch) -> None:
    """A cooperative member that does not join again after a revocation."""
    proceed = ClassicMembership._continue

    def without_rejoin(member: ClassicMembership, now_ms: float) -> None:
        member._must_rejoin = False
        proceed(member, now_ms)

    patch.setattr(ClassicMembership, "_continue", without_rejoin)


def a_forgotten_member_id_is_used_again(patch: pytest.MonkeyPatch) -> None:
    become_lost = ClassicMembership._become_lost

    def with_old_id(member: ClassicMembership, code: int, now_ms: float) -> None:
        become_lost(member, ErrorCode.ILLEGAL_GENERATION, now_ms)

    patch.setattr(ClassicMembership, "_become_lost", with_old_id)


BUGS: list[Bug] = [
    ("range", an_eager_member_joins_with_its_partitions),
    ("consumer", partitions_are_released_before_they_are_revoked),
    ("range", a_removed_member_keeps_its_partitions),
    ("cooperative", a_removed_member_keeps_its_partitions),
    ("consumer", a_removed_member_keeps_its_partitions),
    ("consumer", a_removed_member_goes_on_with_its_epoch),
    ("cooperative", revoked_partitions_are_not_assigned_anew),
    ("range", a_forgotten_member_id_is_used_again),
]
