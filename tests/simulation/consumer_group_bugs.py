"""Mistakes that can be made with target assignments that are computed in the background, to be switched on one at a
time."""

from collections.abc import Callable, Iterator

import pytest

from sskafka.groups import consumer_records as records
from sskafka.groups.consumer_records import Draft
from sskafka.groups.log_records import GroupRecord
from sskafka.groups.target_assignment import NewTarget

Bug = Callable[[pytest.MonkeyPatch], None]


def stale_targets_are_installed(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether the group is still the one of the snapshot, or has a newer target."""
    patch.setattr(NewTarget, "is_for", lambda target, group: group is not None)


def epochs_alone_are_compared(patch: pytest.MonkeyPatch) -> None:
    """A group that was deleted and created again may have the same epoch by chance."""
    patch.setattr(
        NewTarget,
        "is_for",
        lambda target, group: group is not None and group.target_epoch < target.epoch <= group.epoch,
    )


def the_newest_epoch_is_claimed(patch: pytest.MonkeyPatch) -> None:
    """Members that joined meanwhile are in no target, and none is computed for them."""
    patch.setattr(NewTarget, "records", lambda target, now_ms: _records(target, now_ms, epoch=target.group.epoch))


def members_that_left_have_shares(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NewTarget, "records", lambda target, now_ms: _records(target, now_ms, keeps_all=True))


def static_members_that_came_back_have_none(patch: pytest.MonkeyPatch) -> None:
    """There is no new epoch, so their partitions are read by nobody."""
    patch.setattr(NewTarget, "records", _records)


def a_lost_computation_is_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    """Only the heartbeat that begins an epoch asks for its target."""
    ask = Draft.with_effect
    patch.setattr(Draft, "with_effect", lambda draft, effect: ask(draft, effect) if draft.records else draft)


def _records(
    target: NewTarget, now_ms: int, *, epoch: int | None = None, keeps_all: bool = False
) -> Iterator[GroupRecord]:
    group = target.group
    for member_id, share in target.shares.items():
        if keeps_all or member_id in group.members:
            yield records.target_record(group.group_id, member_id, share.partitions)
    yield records.target_epoch_record(group.group_id, target.epoch if epoch is None else epoch, now_ms)


BUGS: list[Bug] = [
    stale_targets_are_installed,
    epochs_alone_are_compared,
    the_newest_epoch_is_claimed,
    members_that_left_have_shares,
    static_members_that_came_back_have_none,
    a_lost_computation_is_not_asked_for_again,
]
