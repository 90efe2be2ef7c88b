"""Bugs that coordinators of other brokers have had, to be switched on one at a time."""

from collections.abc import Callable

import pytest

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.classic_rebalance import ClassicRebalance
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.model.coordination import CoordinatorResult

Bug = Callable[[pytest.MonkeyPatch], None]


def commits_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    """An old owner's late commit takes the group back."""

    def anything_goes(group: ClassicGroup, committer: OffsetCommitter, partitions: object) -> None: ...

    patch.setattr(ClassicGroup, "check_commit", anything_goes)


def generations_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "check_generation", lambda group, generation: None)


def silent_members_stay(patch: pytest.MonkeyPatch) -> None:
    """Ghosts: partitions whose owner died are read by nobody."""
    patch.setattr(ClassicRebalance, "_expire_member", lambda *_: CoordinatorResult())


def a_lost_sync_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A member that never asks for its assignment wedges the group."""
    patch.setattr(ClassicRebalance, "_wait_for_syncs", lambda *_: None)
    patch.setattr(ClassicRebalance, "_expire_member", _unless_completing(ClassicRebalance._expire_member))


def sessions_outlive_their_members(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicRebalance, "end_session", lambda *_: None)


def parked_syncs_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicRebalance, "_refuse_syncs", lambda *_: [])


def a_new_coordinator_watches_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupCoordinatorShard, "start", lambda *_: CoordinatorResult())


def _unless_completing(expire: Callable[..., CoordinatorResult]) -> Callable[..., CoordinatorResult]:
    def patched(rebalance: ClassicRebalance, group: ClassicGroup, *rest: object) -> CoordinatorResult:
        return CoordinatorResult() if group.state == "CompletingRebalance" else expire(rebalance, group, *rest)

    return patched


BUGS: list[Bug] = [
    commits_are_not_checked,
    generations_are_not_checked,
    silent_members_stay,
    a_lost_sync_is_waited_for,
    sessions_outlive_their_members,
    parked_syncs_are_forgotten,
    a_new_coordinator_watches_nobody,
]
