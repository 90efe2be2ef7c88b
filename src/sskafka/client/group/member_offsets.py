"""Commit offsets as a member of the group, and read what is committed.

The coordinator refuses the commit of a member that it has removed, of an old generation and of an old member epoch:
another member may have read the partitions further by then. Such a refusal is final, except if the commit can be
repeated with the next epoch or generation of the member:

    STALE_MEMBER_EPOCH      the member has a new epoch, which the next heartbeat brings
    REBALANCE_IN_PROGRESS   the group begins a generation, and this member, which is joining it, keeps all of the
    ILLEGAL_GENERATION      partitions until it has revoked them (cooperative-sticky)

A commit is not repeated once one of its partitions was revoked or lost, even if the member owns the partition again:
another member may have committed a later offset in between.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.coordinators import CoordinatorType, coordinator_connection
from sskafka.client.errors import ClientError, CommitFailedError, broker_error
from sskafka.client.group.membership import CommitterIdentity, Membership
from sskafka.client.groups import Committed, committed_offsets
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_TOPIC_NAMES_UNTIL = 9
_REFUSALS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
NO_MEMBER = CommitterIdentity(-1, "", None)


class OffsetToCommit(NamedTuple):
    offset: int
    leader_epoch: int = -1


class _CommitAgainError(ClientError):
    """The member will have a new epoch or generation soon, with which the commit is repeated."""

    retriable = True

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class MemberOffsets:
    """`on_refusal` is called when the membership has changed because of a refused commit."""

    def __init__(self, cluster: Cluster, group_id: str, on_refusal: Callable[[], None]) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._on_refusal = on_refusal
        self._order = asyncio.Lock()

    async def commit(
        self,
        membership: Membership | None,
        offsets: Mapping[TopicPartition, OffsetToCommit],
        *,
        deadline_ms: float | None = None,
    ) -> None:
        """Commit as a member, or without a membership if the consumer is not subscribed. One commit at a time: a retry
        must not overwrite a later commit."""
        if not offsets:
            return
        removals = {} if membership is None else membership.removals(offsets)

        async def commit() -> None:
            if membership is not None and membership.removals(offsets) != removals:
                text = f"partitions of this commit for group {self._group_id!r} were revoked or lost in the meantime"
                raise CommitFailedError(ErrorCode.ILLEGAL_GENERATION, text)
            await self._commit(membership, offsets)

        async with self._order:
            try:
                await self._cluster.retrying(commit, deadline_ms=deadline_ms)
            except _CommitAgainError as error:
                raise CommitFailedError(error.code, str(error)) from error

    async def _commit(self, membership: Membership | None, offsets: Mapping[TopicPartition, OffsetToCommit]) -> None:
        identity = NO_MEMBER if membership is None else membership.identity()
        if identity is None:
            text = f"the consumer is not a member of group {self._group_id!r} now, so that its partitions are lost"
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        connection = await coordinator_connection(self._cluster, CoordinatorType.GROUP, self._group_id)
        for partition, code in (await self._request(connection, identity, offsets)).items():
            if code in _REFUSALS:
                raise self._refusal(membership, identity, ErrorCode(code), offsets)
            if code != ErrorCode.NONE:
                raise broker_error(code, f"commit of {partition} for group {self._group_id!r}")

    async def _request(
        self,
        connection: BrokerConnection,
        identity: CommitterIdentity,
        offsets: Mapping[TopicPartition, OffsetToCommit],
    ) -> dict[TopicPartition, int]:
        """Send the commit and return the error code of each partition."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, index), (offset, epoch) in offsets.items():
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
            topic.partitions.append(OffsetCommitRequestPartition(index, offset, epoch, ""))
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=list(topics.values()),
        )
        version = connection.version_for(OffsetCommitRequest, at_most=_TOPIC_NAMES_UNTIL)
        response = await connection.request(request, OffsetCommitResponse, version=version)
        return {
            TopicPartition(answered.name, partition.partition_index): partition.error_code
            for answered in response.topics
            for partition in answered.partitions
        }

    def _refusal(
        self,
        membership: Membership | None,
        identity: CommitterIdentity,
        code: ErrorCode,
        offsets: Mapping[TopicPartition, OffsetToCommit],
    ) -> Exception:
        """Return the error to raise: a retriable one if the commit may succeed with the next epoch of the member."""
        text = f"group {self._group_id!r} refused the commit of this member: {code.name}"
        if membership is not None:
            membership.commit_refused(code, identity, self._cluster.clock.monotonic_ms())
            self._on_refusal()
            is_rebalancing = code in _REBALANCING and offsets.keys() <= membership.owned
            is_member = membership.identity() is not None
            if is_member and (is_rebalancing or code == ErrorCode.STALE_MEMBER_EPOCH):
                return _CommitAgainError(code, text)
        return CommitFailedError(code, text)

    async def committed(
        self, partitions: Iterable[TopicPartition], *, is_stable: bool
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of those partitions that have one. With `is_stable`, wait for transactions that
        may change them."""
        return await committed_offsets(self._cluster, self._group_id, list(partitions), require_stable=is_stable)
