"""Committed offsets of groups: OffsetCommit, OffsetFetch, OffsetDelete.

Newer versions name topics by id. Groups store names, so this module resolves ids and puts them into the responses.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple, cast

from sskafka.coordination.completions import FutureCompletion
from sskafka.coordination.group_coordinator import FetchedOffsets, GroupCoordinator
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.offset_requests import AllOffsets, FetchedOffset, OffsetCommit
from sskafka.model.acl import AclOperation
from sskafka.model.coordination import CallbackCompletion, Completion
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.completions import Gathering, completing_api
from sskafka.servers.kafka.handlers.all_offsets import GROUPS_FROM, NO_OFFSET, fetched_partition, visible_offsets
from sskafka.servers.kafka.handlers.groups import allowed_on_group
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from sskafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from sskafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MEMBER_EPOCHS_FROM = 9
TOPIC_IDS_FROM = 10
GROUP_ERROR_FROM = 2


class _Topic(NamedTuple):
    """A topic as a request names it."""

    name: str
    topic_id: Uuid
    error: ErrorCode
    partition_count: int = 0

    def error_of(self, partition: int) -> ErrorCode:
        if self.error or 0 <= partition < self.partition_count:
            return self.error
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class GroupOffsetHandlers:
    def __init__(self, groups: GroupCoordinator, view: ClusterView) -> None:
        self._groups = groups
        self._view = view
        self.handle_commit = completing_api(ApiKey.OFFSET_COMMIT, self.commit, _commit_refused)
        self.handle_fetch = completing_api(
            ApiKey.OFFSET_FETCH, self.fetch, _fetch_refused, call_in_steps=self.fetch_in_steps
        )
        self.handle_delete = completing_api(ApiKey.OFFSET_DELETE, self.delete, _delete_refused)

    # -- OffsetCommit

    def commit(self, message: OffsetCommitRequest, request: Request, completion: Completion) -> None:
        if not allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            return
        topics = [self._topic(topic.name, topic.topic_id, request, AclOperation.READ) for topic in message.topics]
        commits = list(_commits(message.topics, topics))
        if not commits:
            completion.answer(_commit_response(message.topics, topics, []))
            return
        committer = OffsetCommitter(
            message.member_id,
            message.group_instance_id,
            message.generation_id_or_member_epoch,
            is_too_old_for_epochs=request.version < MEMBER_EPOCHS_FROM,
        )
        outcomes = _commit_outcomes(completion, message.topics, topics)
        self._groups.commit_offsets(message.group_id, committer, commits, message.retention_time_ms, outcomes)

    def _topic(self, name: str, topic_id: Uuid, request: Request, operation: AclOperation) -> _Topic:
        image = self._view.image
        by_id = request.version >= TOPIC_IDS_FROM
        topic = image.topics_by_id.get(topic_id) if by_id else image.topics_by_name.get(name)
        known_name = name if not by_id else topic.name if topic is not None else None
        if known_name is not None and not request.may_on_topic(operation, known_name):
            return _Topic(known_name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic is None:
            missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _Topic(name, topic_id, missing)
        return _Topic(topic.name, topic.topic_id, ErrorCode.NONE, len(topic.partitions))

    # -- OffsetFetch

    def fetch(self, message: OffsetFetchRequest, request: Request, completion: Completion) -> None:
        groups = message.groups if request.version >= GROUPS_FROM else [_as_group(message)]

        def answer(found: dict[Any, FetchedOffsets | ErrorCode]) -> None:
            answers = [
                _fetched_group(group, found[number], request.version, self._view) for number, group in enumerate(groups)
            ]
            completion.answer(_fetch_response(answers, message, request.version))

        gathering = Gathering(answer)
        for number, group in enumerate(groups):
            part = gathering.part(number)
            if allowed_on_group(request, AclOperation.DESCRIBE, group.group_id, part):
                self._fetch_group(group, message.require_stable, request, part)
        gathering.close()

    def fetch_in_steps(
        self, message: OffsetFetchRequest, request: Request
    ) -> "Generator[asyncio.Future[Any] | None, None, OffsetFetchResponse]":
        """Handle a piece of a long request, or a request for all offsets of some groups."""
        answers: list[OffsetFetchResponseGroup] = []
        for group in message.groups if request.version >= GROUPS_FROM else [_as_group(message)]:
            completion = FutureCompletion()
            if allowed_on_group(request, AclOperation.DESCRIBE, group.group_id, completion):
                self._fetch_group(group, message.require_stable, request, completion)
            if not completion.future.done():
                yield completion.future
            try:
                found: FetchedOffsets | AllOffsets | ErrorCode = completion.future.result()
            except KafkaError as error:
                found = error.code
            if isinstance(found, AllOffsets):
                topics = yield from visible_offsets(found, request)
                answers.append(_group_with_all(group.group_id, topics, request.version, self._view))
            else:
                answers.append(_fetched_group(group, found, request.version, self._view))
        return _fetch_response(answers, message, request.version)

    def _fetch_group(
        self, group: OffsetFetchRequestGroup, require_stable: bool, request: Request, completion: Completion
    ) -> None:
        """Ask the group for its offsets. Refuse named topics that the client may not describe."""
        member = (group.member_id, group.member_epoch)
        if group.topics is None:
            self._groups.fetch_offsets(group.group_id, None, require_stable, member, completion)
            return
        refused: dict[TopicPartition, FetchedOffset] = {}
        partitions: list[TopicPartition] = []
        for requested in group.topics:
            topic = self._fetchable(requested, request)
            wanted = [TopicPartition(topic.name, index) for index in requested.partition_indexes]
            if topic.error is ErrorCode.NONE:
                partitions += wanted
            else:
                refused.update({partition: FetchedOffset(None, topic.error) for partition in wanted})
        merged = _transformed(completion, lambda found: {**found, **refused} if refused else found)
        self._groups.fetch_offsets(group.group_id, partitions, require_stable, member, merged)

    def _fetchable(self, requested: OffsetFetchRequestTopics, request: Request) -> _Topic:
        """Return the partitions of the request. A topic that no longer exists may still be named."""
        if request.version >= TOPIC_IDS_FROM:
            topic = self._topic(requested.name, requested.topic_id, request, AclOperation.DESCRIBE)
            return topic if topic.error is ErrorCode.NONE else topic._replace(name=_placeholder(requested.topic_id))
        is_allowed = request.may_on_topic(AclOperation.DESCRIBE, requested.name)
        error = ErrorCode.NONE if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _Topic(requested.name, ZERO_UUID, error)

    # -- OffsetDelete

    def delete(self, message: OffsetDeleteRequest, request: Request, completion: Completion) -> None:
        if not allowed_on_group(request, AclOperation.DELETE, message.group_id, completion):
            return
        topics = [self._topic(topic.name, ZERO_UUID, request, AclOperation.READ) for topic in message.topics]
        partitions = [
            TopicPartition(topic.name, partition.partition_index)
            for requested, topic in zip(message.topics, topics, strict=True)
            for partition in requested.partitions
            if not topic.error_of(partition.partition_index)
        ]
        outcomes = _transformed(completion, lambda found: _delete_response(message, topics, found))
        self._groups.delete_offsets(message.group_id, partitions, outcomes)


def _transformed(completion: Completion, transform: Callable[[Any], Any]) -> Completion:
    """Return a completion that converts the results of the coordinator to a response of the request's version."""
    return CallbackCompletion(lambda found: completion.answer(transform(found)), completion.refuse)


# -- OffsetCommit


def _commit_outcomes(
    completion: Completion, requested: list[OffsetCommitRequestTopic], topics: list[_Topic]
) -> Completion:
    """Complete an OffsetCommit. If the group rejects it, partitions that do not exist keep their own error."""

    def answered(outcomes: Iterable[ErrorCode]) -> None:
        completion.answer(_commit_response(requested, topics, outcomes))

    return CallbackCompletion(answered, lambda error, _: answered(repeat(error)))


def _commits(requested: Iterable[OffsetCommitRequestTopic], topics: Iterable[_Topic]) -> Iterator[OffsetCommit]:
    for request_topic, topic in zip(requested, topics, strict=True):
        for partition in request_topic.partitions:
            if topic.error_of(partition.partition_index):
                continue
            yield OffsetCommit(
                TopicPartition(topic.name, partition.partition_index),
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata,
            )


def _commit_response(
    requested: list[OffsetCommitRequestTopic], topics: list[_Topic], outcomes: Iterable[ErrorCode]
) -> OffsetCommitResponse:
    outcome_of = iter(outcomes)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                request_topic.name,
                request_topic.topic_id,
                [
                    OffsetCommitResponsePartition(
                        partition.partition_index, topic.error_of(partition.partition_index) or next(outcome_of)
                    )
                    for partition in request_topic.partitions
                ],
            )
            for request_topic, topic in zip(requested, topics, strict=True)
            if request_topic.partitions
        ]
    )


def _commit_refused(message: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    refused = [_Topic(topic.name, topic.topic_id, error) for topic in message.topics]
    return _commit_response(message.topics, refused, [])


# -- OffsetFetch


def _as_group(message: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if message.topics is not None:
        topics = [OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes) for topic in message.topics]
    return OffsetFetchRequestGroup(message.group_id, topics=topics)


def _fetch_response(
    answers: list[OffsetFetchResponseGroup], message: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    if version >= GROUPS_FROM:
        return OffsetFetchResponse(groups=answers)
    only = answers[0]
    if only.error_code and version < GROUP_ERROR_FROM:
        return _fetch_refused_by_partition(message, ErrorCode(only.error_code))
    topics = [OffsetFetchResponseTopic(topic.name, cast(Any, topic.partitions)) for topic in only.topics]
    return OffsetFetchResponse(error_code=only.error_code, topics=topics)


def _fetched_group(
    group: OffsetFetchRequestGroup, found: FetchedOffsets | ErrorCode, version: int, view: ClusterView
) -> OffsetFetchResponseGroup:
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group.group_id, [], found)
    by_id = version >= TOPIC_IDS_FROM
    topics: dict[str, OffsetFetchResponseTopics] = {
        requested.name or _placeholder(requested.topic_id): OffsetFetchResponseTopics(
            requested.name, requested.topic_id
        )
        for requested in group.topics or ()
        if not requested.partition_indexes
    }
    for partition, fetched in found.items():
        topic = topics.get(partition.topic)
        if topic is None:
            topic_id = _id_of(partition.topic, view) if by_id else ZERO_UUID
            topics[partition.topic] = topic = OffsetFetchResponseTopics(partition.topic, topic_id)
        topic.partitions.append(cast(Any, fetched_partition(partition.partition, fetched, version)))
    return OffsetFetchResponseGroup(group.group_id, list(topics.values()))


def _group_with_all(
    group_id: str, topics: dict[str, list[Any]], version: int, view: ClusterView
) -> OffsetFetchResponseGroup:
    by_id = version >= TOPIC_IDS_FROM
    return OffsetFetchResponseGroup(
        group_id,
        [
            OffsetFetchResponseTopics(name, _id_of(name, view) if by_id else ZERO_UUID, partitions)
            for name, partitions in topics.items()
        ],
    )


def _placeholder(topic_id: Uuid) -> str:
    """The name used for a topic of which only the id is known. It is not a valid topic name."""
    return f"id:{topic_id.hex()}"


def _id_of(name: str, view: ClusterView) -> Uuid:
    topic = view.image.topics_by_name.get(name)
    if topic is not None:
        return topic.topic_id
    return bytes.fromhex(name.removeprefix("id:")) if name.startswith("id:") else ZERO_UUID


def _fetch_refused(message: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    groups = [OffsetFetchResponseGroup(group.group_id, [], error) for group in message.groups]
    return OffsetFetchResponse(error_code=error, groups=groups)


def _fetch_refused_by_partition(message: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(index, NO_OFFSET, NO_OFFSET, "", error)
                    for index in topic.partition_indexes
                ],
            )
            for topic in message.topics or ()
        ]
    )


# -- OffsetDelete


def _delete_response(
    message: OffsetDeleteRequest, topics: list[_Topic], outcomes: Iterable[ErrorCode]
) -> OffsetDeleteResponse:
    """Put partitions that do not exist first in each topic, as Apache Kafka does."""
    outcome_of = iter(outcomes)
    response = OffsetDeleteResponse()
    for requested, topic in zip(message.topics, topics, strict=True):
        if not requested.partitions:
            continue
        errors = {item.partition_index: topic.error_of(item.partition_index) for item in requested.partitions}
        missing = [OffsetDeleteResponsePartition(index, error) for index, error in errors.items() if error]
        there = [OffsetDeleteResponsePartition(index, next(outcome_of)) for index, error in errors.items() if not error]
        response.topics.append(OffsetDeleteResponseTopic(requested.name, missing + there))
    return response


def _delete_refused(_: OffsetDeleteRequest, error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)
