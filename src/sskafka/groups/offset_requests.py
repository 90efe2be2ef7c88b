"""Offsets of groups of any kind: commit, fetch, delete, and expiry.

Requests have topic names here; the server resolves topic ids.
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.consumer_group import Topics
from sskafka.groups.group import Group, OffsetCommitter
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.log_records import OffsetRecord, Record
from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset, Offsets, OffsetStore
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition, Uuid

TIMESTAMP_MAX = 2**63 - 1


class OffsetCommit(NamedTuple):
    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str | None


class FetchedOffset(NamedTuple):
    offset: CommittedOffset | None
    error: ErrorCode = ErrorCode.NONE


class AllOffsets(NamedTuple):
    """The committed offsets of a group. Nothing in it ever changes."""

    offsets: Offsets
    unstable: AbstractSet[TopicPartition]
    """Partitions whose offset an open transaction may change, if the client must not see them."""


class OffsetRequests:
    """`find` returns a group of any kind; `topics` returns the topics of the cluster."""

    def __init__(
        self,
        offsets: OffsetStore,
        find: Callable[[str], Group | None],
        settings: GroupSettings,
        topics: Callable[[], Topics] = dict,
    ) -> None:
        self._offsets = offsets
        self._find = find
        self._settings = settings
        self._topics = topics

    # -- commit

    def check_committer(
        self, group_id: str, committer: OffsetCommitter, partitions: Iterable[TopicPartition], now_ms: int
    ) -> Group:
        group = self._find(group_id)
        if group is None:
            if committer.generation >= 0:
                is_old = committer.is_transactional or committer.is_too_old_for_epochs
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION if is_old else ErrorCode.GROUP_ID_NOT_FOUND)
            group = ClassicGroup(group_id, now_ms)  # added to the store when an offset of it is replayed
        group.check_commit(committer, (self._with_id(partition) for partition in partitions))
        return group

    def _with_id(self, partition: TopicPartition) -> tuple[Uuid | None, int]:
        topic = self._topics().get(partition.topic)
        return None if topic is None else topic.topic_id, partition.partition

    def commit(
        self, group_id: str, commits: Iterable[OffsetCommit], retention_ms: int, now_ms: int
    ) -> tuple[list[Record], list[ErrorCode]]:
        """Return the records, and the error code of each commit. Call `check_committer` first."""
        expire_ms = NO_TIMESTAMP if retention_ms < 0 else min(now_ms + retention_ms, TIMESTAMP_MAX)
        records: list[Record] = []
        outcomes: list[ErrorCode] = []
        for commit in commits:
            metadata = commit.metadata or ""
            if len(metadata.encode()) > self._settings.offset_metadata_bytes_max:
                outcomes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            offset = CommittedOffset(commit.offset, commit.leader_epoch, metadata, now_ms, expire_ms)
            records.append(OffsetRecord(group_id, commit.partition, offset))
            outcomes.append(ErrorCode.NONE)
        return records, outcomes

    # -- fetch

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition], require_stable: bool
    ) -> dict[TopicPartition, FetchedOffset]:
        """Return committed offsets. With `require_stable`, offsets that an open transaction may change are refused."""
        unstable = self._unstable(group_id, require_stable)
        return {
            partition: FetchedOffset(None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if partition in unstable
            else FetchedOffset(self._offsets.visible_offset(group_id, partition))
            for partition in partitions
        }

    def fetch_all(self, group_id: str, require_stable: bool) -> AllOffsets:
        return AllOffsets(self._offsets.visible(group_id), self._unstable(group_id, require_stable))

    def _unstable(self, group_id: str, require_stable: bool) -> AbstractSet[TopicPartition]:
        return self._offsets.pending_partitions(group_id) if require_stable else set()

    # -- delete

    def delete(self, group: Group, partitions: Iterable[TopicPartition]) -> tuple[list[Record], list[ErrorCode]]:
        """As `commit`. Offsets of topics that members are subscribed to are not deleted."""
        committed = self._offsets.committed(group.group_id)
        records: list[Record] = []
        outcomes: list[ErrorCode] = []
        for partition in partitions:
            if not group.is_empty and group.is_subscribed(partition.topic):
                outcomes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            if partition in committed:
                records.append(OffsetRecord(group.group_id, partition))
            outcomes.append(ErrorCode.NONE)
        return records, outcomes

    def delete_all(self, group_id: str) -> list[Record]:
        return [OffsetRecord(group_id, partition) for partition in self._offsets.partitions_of(group_id)]

    def delete_topics(self, topics: AbstractSet[str]) -> list[Record]:
        return [
            OffsetRecord(group_id, partition)
            for group_id in self._offsets.groups_of(topics)
            for partition in self._offsets.partitions_of(group_id)
            if partition.topic in topics
        ]

    # -- expiry

    def expired(self, group: Group, now_ms: int) -> Iterator[TopicPartition]:
        pending = self._offsets.pending_partitions(group.group_id)
        for partition, offset in self._offsets.committed(group.group_id).items():
            if partition not in pending and group.expires_offset(
                partition.topic, offset, now_ms, self._settings.offsets_retention_ms
            ):
                yield partition
