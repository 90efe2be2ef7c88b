"""A ConsumerGroupHeartbeat request, and the checks of its fields.

A request may list tens of thousands of topics. They are read in steps, before the turn in which the group decides.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sskafka.groups.assignors import Partitions
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.encoded_partitions import encode_names, encoded_topics
from sskafka.groups.members import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, Client, ConsumerMember
from sskafka.groups.partition_set import of_topics_in_steps
from sskafka.groups.topic_changes import check_pattern
from sskafka.model.computation import Computation, finished
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

MEMBER_IDS_OF_CLIENTS_FROM = 1


class TopicRights(NamedTuple):
    """Which topics a client may describe: a pattern matches only such topics."""

    may_describe: Callable[[str], bool]
    acls: object
    """The same object until an ACL of the cluster changes."""


class LongFields(NamedTuple):
    """The fields of a request that may be long, as groups use them. None: the request leaves the field out."""

    topic_names: frozenset[str] | None
    names_to_write: list[str]
    """The same, encoded for the record of the member."""
    reported: Partitions | None
    """The partitions that the member says it owns."""


def read_long_fields(request: ConsumerGroupHeartbeatRequest) -> Computation[LongFields]:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    if names is None and owned is None:
        return _NO_LONG_FIELDS  # nearly always
    encoded: list[str] = []
    if names:
        encoded = yield from encode_names(list(dict.fromkeys(names)))
    reported: Partitions | None = None
    if owned is not None:
        reported = yield from of_topics_in_steps((topic.topic_id, topic.partitions) for topic in owned)
    return LongFields(None if names is None else frozenset(names), encoded, reported)


_NO_LONG_FIELDS = LongFields(None, [], None)


class Heartbeat:
    """A ConsumerGroupHeartbeat request, its version and client. `rights` None: the client may describe all topics.

    `long_fields`: those of the request, if they were read before."""

    __slots__ = ("client", "long_fields", "request", "rights", "version")

    def __init__(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: Client,
        rights: TopicRights | None = None,
        long_fields: LongFields | None = None,
    ) -> None:
        self.request = request
        self.version = version
        self.client = client
        self.rights = rights
        self.long_fields = long_fields or finished(read_long_fields(request))

    @property
    def reported(self) -> Partitions | None:
        return self.long_fields.reported

    @property
    def is_full(self) -> bool:
        """Whether the request has all fields; then the response has the whole assignment."""
        request = self.request
        wants = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        return request.rebalance_timeout_ms != -1 and wants and request.topic_partitions is not None

    def check(self, assignors: Sequence[str]) -> None:
        """Raise KafkaError if a field of the request is invalid."""
        request, epoch = self.request, self.request.member_epoch
        must_have_id = self.version >= MEMBER_IDS_OF_CLIENTS_FROM or epoch > 0 or epoch == LEAVING_EPOCH
        _require(not (must_have_id and _is_blank(request.member_id)), "MemberId can't be empty.")
        _require(not _is_blank(request.group_id), "GroupId can't be empty.")
        _require(not _is_blank(request.instance_id), "InstanceId can't be empty.")
        _require(not _is_blank(request.rack_id), "RackId can't be empty.")
        if epoch == JOINING_EPOCH:
            wants = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
            _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
            _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
            _require(wants, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
        elif epoch == STATIC_LEAVING_EPOCH:
            _require(request.instance_id is not None, "InstanceId can't be null.")
        _require(epoch >= STATIC_LEAVING_EPOCH, "MemberEpoch is invalid.")
        assignor = request.server_assignor
        if assignor is not None and assignor not in assignors:
            text = f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}."
            raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
        if request.subscribed_topic_regex:
            check_pattern(request.subscribed_topic_regex)

    def applied_to(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member as the request describes it. Fields that the request leaves out stay the same."""
        request = self.request
        names, regex = self.long_fields.topic_names, request.subscribed_topic_regex
        return member._replace(
            instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
            rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
            client=self.client,
            topic_names=names if names is not None else member.topic_names,
            topic_regex=regex if regex is not None else member.topic_regex,
            rebalance_timeout_ms=request.rebalance_timeout_ms
            if request.rebalance_timeout_ms != -1
            else member.rebalance_timeout_ms,
            server_assignor=request.server_assignor if request.server_assignor is not None else member.server_assignor,
            classic=None,
        )


def heartbeat_response(
    member: ConsumerMember, interval_ms: int, with_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    assignment = Assignment(encoded_topics(member.assigned, TopicPartitions)) if with_assignment else None
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def check_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> None:
    known = group.static_members.get(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {known}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, text)


def check_released(member: ConsumerMember, new_id: str) -> None:
    """Raise KafkaError if the instance id is in use. A member of this protocol releases it when it leaves temporarily;
    one of the classic protocol does not."""
    if member.epoch != STATIC_LEAVING_EPOCH and member.classic is None:
        text = (
            f"Static member {new_id} with instance id {member.instance_id} cannot join the group because the instance "
            f"id is owned by {member.member_id} member."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, text)


def check_epoch(member: ConsumerMember, epoch: int, reported: Partitions | None) -> None:
    """Raise KafkaError unless the epoch is current, or the previous one because the response with the new was lost."""
    if epoch == member.epoch:
        return
    missed_answer = epoch == member.previous_epoch and reported is not None and reported <= member.assigned
    if epoch > member.epoch or not missed_answer:
        size = "greater" if epoch > member.epoch else "smaller"
        text = (
            f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, text)


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
