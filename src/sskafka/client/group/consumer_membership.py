"""Membership by the consumer protocol (KIP-848): ConsumerGroupHeartbeat does everything.

    JOINING    member epoch 0; sends its whole subscription
    JOINED     sends heartbeats. A response may have a new target assignment: the poller revokes partitions, the next
               heartbeat reports what is left, and the coordinator assigns others when their owners have revoked them
    LOST       the coordinator has removed this member: it joins again when the poller has applied LOSE
    LEAVING    sends the last heartbeat, because the application did not poll for `max.poll.interval.ms`
    EXPIRED    has left; joins again with the next poll
    FAILED     has given up

A heartbeat has only fields that changed since the last answered one. After a lost response it has all fields again,
and a response to such a heartbeat has the whole assignment: so a lost response loses nothing. Every tenth heartbeat has
all fields, too: an old request that arrives late may have been answered with an assignment that nobody has received.

A heartbeat reports the partitions that the member owns and those that it is assigned, whether the poller has added them
or not. If it reported only the former, the poller could add a partition while the heartbeat is on its way, and a
coordinator with a newer target would take the heartbeat for a revocation: the partition would have two owners.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, TypeVar

from sskafka.client.config import GroupConfig
from sskafka.client.errors import broker_error
from sskafka.client.group.membership import (
    RETRIED_CODES,
    ChangeKind,
    CommitterIdentity,
    Membership,
    OwnedPartitions,
    TopicSubscription,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from sskafka.wire.schema import Message

_FENCED_CODES = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
WHOLE_EVERY = 10

T = TypeVar("T")

_Target: TypeAlias = frozenset[tuple[Uuid, int]]


class _State(Enum):
    JOINING = "joining"
    JOINED = "joined"
    LOST = "lost"
    LEAVING = "leaving"
    EXPIRED = "expired"
    FAILED = "failed"


class ConsumerMembership(Membership):
    """`member_id` is a random id that the client has chosen; it stays the same for the life of the consumer."""

    def __init__(
        self, config: GroupConfig, subscription: TopicSubscription, member_id: str, now_ms: float, rack_id: str = ""
    ) -> None:
        super().__init__(config, subscription, now_ms)
        self.member_id = member_id
        self._rack_id = rack_id or None
        self._state = _State.JOINING
        self._epoch = JOIN_EPOCH
        self._target: _Target = frozenset()
        self._topic_names: Mapping[Uuid, str] = {}
        self._answered: ConsumerGroupHeartbeatRequest | None = None
        """The fields that the coordinator knows. None: it has to be told all of them."""
        self._partial_count = 0
        """Heartbeats that were answered since the last one with all fields."""
        self._has_sent_pattern = False

    @property
    def is_sending(self) -> bool:
        return self._state in {_State.JOINING, _State.JOINED, _State.LEAVING}

    @property
    def unknown_topics(self) -> set[Uuid]:
        """The topic ids of the target assignment whose names are not known yet."""
        return {topic_id for topic_id, _ in self._target} - self._topic_names.keys()

    def learn_topics(self, names: Mapping[Uuid, str], now_ms: float) -> None:
        """Add names of topics. Partitions of unknown topics are assigned when their topics are known."""
        self._topic_names = {**self._topic_names, **names}
        self._reconcile(now_ms)

    # Requests

    def next_request(self, now_ms: float) -> Message | None:
        if self._has_polled_too_late(now_ms) and self._state in {_State.JOINING, _State.JOINED, _State.LOST}:
            self._expire(now_ms)
        if not self.is_sending or now_ms < self._send_at_ms:
            return None
        if self._state is _State.LEAVING:
            return self._leave()
        return self._heartbeat()

    def _expire(self, now_ms: float) -> None:
        was_joined = self._state is _State.JOINED
        self._is_expired = True
        self._state, self._send_at_ms = _State.LEAVING if was_joined else _State.EXPIRED, now_ms
        self._lose_partitions()

    def _leave(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.config.group_id,
            member_id=self.member_id,
            member_epoch=STATIC_LEAVE_EPOCH if self.config.instance_id else LEAVE_EPOCH,
            instance_id=self.config.instance_id,
        )

    def leave_request(self) -> Message | None:
        has_joined = self._state is _State.JOINED or (self._state is _State.JOINING and self.failure is None)
        return self._leave() if has_joined else None

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        whole = self._whole_heartbeat()
        known = self._answered
        if known is None or self._partial_count >= WHOLE_EVERY - 1:
            return whole
        return ConsumerGroupHeartbeatRequest(
            group_id=whole.group_id,
            member_id=whole.member_id,
            member_epoch=whole.member_epoch,
            instance_id=whole.instance_id,
            subscribed_topic_names=_changed(whole.subscribed_topic_names, known.subscribed_topic_names),
            subscribed_topic_regex=_changed(whole.subscribed_topic_regex, known.subscribed_topic_regex),
            topic_partitions=_changed(whole.topic_partitions, known.topic_partitions),
        )

    def _whole_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.config.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            instance_id=self.config.instance_id,
            rack_id=self._rack_id,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            subscribed_topic_names=sorted(self.subscription.topics),
            subscribed_topic_regex=self._regex(),
            server_assignor=self.config.group_remote_assignor or None,
            topic_partitions=self._reported(),
        )

    def _regex(self) -> str | None:
        """Return the pattern; an empty text takes back a pattern that the coordinator may know."""
        if self.subscription.pattern is not None:
            self._has_sent_pattern = True
            return self.subscription.pattern
        return "" if self._has_sent_pattern else None

    def _reported(self) -> list[TopicPartitions]:
        ids = {name: topic_id for topic_id, name in self._topic_names.items()}
        owned = {(ids[partition.topic], partition.partition) for partition in self.owned}
        by_topic: dict[Uuid, list[int]] = {}
        for topic_id, index in sorted(owned | self._target):
            by_topic.setdefault(topic_id, []).append(index)
        return [TopicPartitions(topic_id, indexes) for topic_id, indexes in by_topic.items()]

    # Responses

    def answered(self, request: Message, response: Message, now_ms: float) -> KafkaError | None:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if request.member_epoch < JOIN_EPOCH:
            self._left(now_ms)
            return None
        code = response.error_code
        if code == ErrorCode.NONE:
            self._accept(request, response, now_ms)
        elif code in RETRIED_CODES:
            self._answered = None
            return broker_error(code, response.error_message)
        elif code in _FENCED_CODES and self._epoch > JOIN_EPOCH:
            self._become_lost(now_ms)
        elif code in _FENCED_CODES:
            return broker_error(code, response.error_message)
        else:
            self._refused(code, response.error_message or f"group {self.config.group_id!r}")
        return None

    def failed(self, now_ms: float, delay_ms: float) -> None:
        super().failed(now_ms, delay_ms)
        self._answered = None
        if self._state is _State.LEAVING:
            self._left(now_ms)

    def _accept(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now_ms: float
    ) -> None:
        if self._state not in {_State.JOINING, _State.JOINED}:
            return
        self._state = _State.JOINED
        self._epoch = response.member_epoch
        self._answered = _merged(self._answered, request)
        self._partial_count = 0 if request.rebalance_timeout_ms >= 0 else self._partial_count + 1
        self._send_at_ms = now_ms + response.heartbeat_interval_ms
        if response.assignment is not None:
            self._target = _items(response.assignment.topic_partitions)
            if self.change is not None and self.change.kind is ChangeKind.ASSIGN:
                self.change = None  # planned anew: the target may have other partitions now
        self._reconcile(now_ms)

    def _reconcile(self, now_ms: float) -> None:
        """Plan the next change towards the target. Report a revocation at once: other members wait for it."""
        if self._state is not _State.JOINED or self.change is not None:
            return
        self.change = self._next_step_to(self._named_target())
        known = self._answered.topic_partitions if self._answered is not None else None
        if _items(known or []) - _items(self._reported()):
            self._send_at_ms = min(self._send_at_ms, now_ms)

    def _named_target(self) -> OwnedPartitions:
        names = self._topic_names
        return frozenset(TopicPartition(names[topic], index) for topic, index in self._target if topic in names)

    def give_up(self, error: Exception) -> None:
        self._state = _State.FAILED
        super().give_up(error)

    # Losing the membership

    def _become_lost(self, now_ms: float) -> None:
        self._state = _State.LOST
        self._forget_membership()
        self._lose_partitions()
        self._maybe_join_again(now_ms)

    def _forget_membership(self) -> None:
        self._epoch, self._answered, self._target = JOIN_EPOCH, None, frozenset()

    def _left(self, now_ms: float) -> None:
        self._forget_membership()
        self._state = _State.EXPIRED if self._is_expired else _State.LOST
        self._maybe_join_again(now_ms)

    def _maybe_join_again(self, now_ms: float) -> None:
        if self._state is _State.EXPIRED and not self._is_expired:
            self._forget_membership()
            self._state = _State.LOST
        if self._state is _State.LOST and self.change is None:
            self._state, self._send_at_ms = _State.JOINING, now_ms

    def _continue(self, now_ms: float) -> None:
        self._maybe_join_again(now_ms)
        self._reconcile(now_ms)

    # For the poller

    def resubscribe(self, subscription: TopicSubscription, now_ms: float) -> None:
        self.subscription = subscription
        self._send_at_ms = min(self._send_at_ms, now_ms)

    def identity(self) -> CommitterIdentity | None:
        if self._state is not _State.JOINED:
            return None
        return CommitterIdentity(self._epoch, self.member_id, self.config.instance_id)

    def commit_refused(self, code: int, identity: CommitterIdentity, now_ms: float) -> None:
        is_current = self._state is _State.JOINED and identity.generation == self._epoch
        if is_current and code in _FENCED_CODES:
            self._become_lost(now_ms)
        elif is_current and code == ErrorCode.STALE_MEMBER_EPOCH:
            self._send_at_ms = min(self._send_at_ms, now_ms)  # the next heartbeat says which epoch is right


def _items(topics: list[TopicPartitions]) -> _Target:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def _changed(value: T | None, known: T | None) -> T | None:
    return None if value == known else value


def _merged(
    known: ConsumerGroupHeartbeatRequest | None, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatRequest:
    """Return what the coordinator knows after it has answered `request`."""
    if known is None:
        return request
    if request.subscribed_topic_names is not None:
        known.subscribed_topic_names = request.subscribed_topic_names
    if request.subscribed_topic_regex is not None:
        known.subscribed_topic_regex = request.subscribed_topic_regex
    if request.topic_partitions is not None:
        known.topic_partitions = request.topic_partitions
    return known
