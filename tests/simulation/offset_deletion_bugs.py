"""Mistakes that can be made with offsets that are deleted in the background, to be switched on one at a time."""

from collections.abc import Callable, Iterable

import pytest

from sskafka.groups.log_records import GroupResult, OffsetRecord
from sskafka.groups.offset_deletion import OffsetDeletion
from sskafka.groups.offsets import OffsetStore
from sskafka.model.coordination import CoordinatorResult
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition

Bug = Callable[[pytest.MonkeyPatch], None]


def new_offsets_are_deleted_too(patch: pytest.MonkeyPatch) -> None:
    def tombstones(deletion: OffsetDeletion, group_id: str, partitions: Iterable[TopicPartition]) -> GroupResult:
        topics = deletion.topics
        wanted = [each for each in partitions if topics is None or each.topic in topics]
        return CoordinatorResult([OffsetRecord(group_id, each) for each in wanted], ErrorCode.NONE)

    patch.setattr(OffsetDeletion, "tombstones", tombstones)


def offsets_are_visible_until_they_are_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetStore, "_is_hidden", lambda *_: False)


def everything_of_the_name_is_hidden(patch: pytest.MonkeyPatch) -> None:
    """Offsets that are committed meanwhile cannot be fetched."""
    patch.setattr(
        OffsetStore,
        "_is_hidden",
        lambda store, group_id, topic, _: group_id in store._hidden_groups or topic in store._hidden_topics,
    )


def newer_deletions_are_shown_with_older_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetStore, "show_group", lambda store, group_id, _: store._hidden_groups.pop(group_id, None))


def pending_offsets_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What an open transaction wrote before the deletion comes back when the transaction commits."""
    patch.setattr(OffsetStore, "partitions_of", lambda store, group_id: set(store.committed(group_id)))


def nobody_waits_for_transactions(patch: pytest.MonkeyPatch) -> None:
    """An old offset without a tombstone is visible again when the deletion is finished."""
    patch.setattr(OffsetDeletion, "is_blocked", property(lambda _: False, lambda *_: None), raising=False)


BUGS: list[Bug] = [
    new_offsets_are_deleted_too,
    offsets_are_visible_until_they_are_deleted,
    everything_of_the_name_is_hidden,
    newer_deletions_are_shown_with_older_ones,
    pending_offsets_are_forgotten,
    nobody_waits_for_transactions,
]
