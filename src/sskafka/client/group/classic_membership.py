"""Membership by the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

    JOIN      sends JoinGroup, which the coordinator answers when all members have joined
    COUNT     is the leader of the generation and needs the number of partitions of the group's topics
    SYNC      sends SyncGroup, the leader with everybody's assignment; the response has this member's assignment
    STABLE    sends heartbeats, while the poller applies the assignment
    REJOIN    the group rebalances. With an eager assignor the poller revokes everything first; heartbeats go on
    LOST      the coordinator has removed this member: it joins again when the poller has applied LOSE
    LEAVE     sends LeaveGroup, because the application did not poll for `max.poll.interval.ms`
    EXPIRED   has left; joins again with the next poll
    FAILED    has given up

            +---------------------------- REBALANCE_IN_PROGRESS, new subscription ---+
            v                                                                        |
    JOIN -> [COUNT] -> SYNC -> STABLE -----------------------------> REJOIN (eager) -+-> JOIN
     ^                            |  UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION
     +------ LOSE applied --------+

A lost response is handled by sending the request again: the coordinator knows the member id and the generation.
Static members do not send LeaveGroup: the group keeps their partitions for `session.timeout.ms`.
"""

from collections.abc import Mapping
from enum import Enum

from sskafka.client.config import GroupConfig
from sskafka.client.errors import ConfigError, broker_error
from sskafka.client.group.assignors import (
    COOPERATIVE_STICKY,
    STRATEGIES,
    Assigned,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
)
from sskafka.client.group.membership import (
    RETRIED_CODES,
    ChangeKind,
    CommitterIdentity,
    Membership,
    MembershipChange,
    OwnedPartitions,
    TopicSubscription,
)
from sskafka.groups.subscription import CONSUMER_PROTOCOL
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.codec import MalformedMessageError
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from sskafka.wire.schema import Message

NO_GENERATION = -1
_FENCED_CODES = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class _State(Enum):
    JOIN = "join"
    COUNT = "count"
    SYNC = "sync"
    STABLE = "stable"
    REJOIN = "rejoin"
    LOST = "lost"
    LEAVE = "leave"
    EXPIRED = "expired"
    FAILED = "failed"


class ClassicMembership(Membership):
    def __init__(self, config: GroupConfig, subscription: TopicSubscription, now_ms: float, rack_id: str = "") -> None:
        super().__init__(config, subscription, now_ms)
        check_strategies(config)
        self._rack_id = rack_id or None
        self._state = _State.JOIN
        self._member_id = ""
        self._generation = NO_GENERATION
        self._strategy = ""
        self._joined: JoinGroupResponse | None = None
        """The response to this generation's JoinGroup, for the leader."""
        self._assigned: Assigned = {}
        self._target: OwnedPartitions = frozenset()
        self._joined_topics: frozenset[str] = frozenset()
        """The subscription of the last JoinGroup."""
        self._must_rejoin = False
        self._is_cooperative = all(name == COOPERATIVE_STICKY for name in config.strategies)

    @property
    def is_sending(self) -> bool:
        return self._state not in {_State.COUNT, _State.LOST, _State.EXPIRED, _State.FAILED}

    @property
    def is_waiting_for_group(self) -> bool:
        """Whether the coordinator may hold back its next answer until other members have joined."""
        return self._state in {_State.JOIN, _State.SYNC}

    # Requests

    def next_request(self, now_ms: float) -> Message | None:
        if self._has_polled_too_late(now_ms):
            self._expire(now_ms)
        if not self.is_sending or now_ms < self._send_at_ms:
            return None
        match self._state:
            case _State.JOIN:
                return self._join()
            case _State.SYNC:
                return self._sync()
            case _State.LEAVE:
                return self._leave()
            case _:
                return HeartbeatRequest(
                    self.config.group_id, self._generation, self._member_id, self.config.instance_id
                )

    def _join(self) -> JoinGroupRequest:
        owned = self.owned if self._is_cooperative else frozenset()
        metadata = encode_subscription(self.subscription.topics, owned, self._generation, self._rack_id)
        self._joined_topics = self.subscription.topics
        return JoinGroupRequest(
            group_id=self.config.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=self.config.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[JoinGroupRequestProtocol(name, metadata) for name in self.config.strategies],
        )

    def _sync(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.config.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self.config.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=self._strategy,
            assignments=[
                SyncGroupRequestAssignment(member_id, encode_assignment(partitions))
                for member_id, partitions in self._assigned.items()
            ],
        )

    def _leave(self) -> LeaveGroupRequest:
        return LeaveGroupRequest(self.config.group_id, members=[MemberIdentity(self._member_id)])

    def leave_request(self) -> Message | None:
        is_dynamic = self.config.instance_id is None
        return self._leave() if self._member_id and is_dynamic and self.failure is None else None

    # The leader of a generation

    @property
    def topics_to_count(self) -> frozenset[str] | None:
        """The topics whose partitions the leader has to count, or None if it has nothing to assign."""
        if self._state is not _State.COUNT or self._joined is None:
            return None
        members = [decode_member(one.member_id, one.group_instance_id, one.metadata) for one in self._joined.members]
        return frozenset(topic for member in members for topic in member.topics)

    def count(self, partition_counts: Mapping[str, int], now_ms: float) -> None:
        """Assign partitions to all members of the generation."""
        if self._state is not _State.COUNT or self._joined is None:
            return
        members = [decode_member(one.member_id, one.group_instance_id, one.metadata) for one in self._joined.members]
        self._assigned = STRATEGIES[self._strategy](members, partition_counts)
        self._state, self._send_at_ms = _State.SYNC, now_ms

    @property
    def is_leader(self) -> bool:
        return self._joined is not None and self._joined.leader == self._member_id

    # Responses

    def answered(self, request: Message, response: Message, now_ms: float) -> KafkaError | None:
        match response:
            case JoinGroupResponse():
                return self._join_answered(response, now_ms)
            case SyncGroupResponse():
                return self._sync_answered(response, now_ms)
            case HeartbeatResponse():
                return self._heartbeat_answered(response, now_ms)
            case _:
                assert isinstance(response, LeaveGroupResponse)
                self._left(now_ms)
                return None

    def failed(self, now_ms: float, delay_ms: float) -> None:
        super().failed(now_ms, delay_ms)
        if self._state is _State.LEAVE:
            self._left(now_ms)

    def _join_answered(self, response: JoinGroupResponse, now_ms: float) -> KafkaError | None:
        code = response.error_code
        if code == ErrorCode.NONE:
            self._begin_generation(response, now_ms)
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
        elif code in _FENCED_CODES:
            self._become_lost(code, now_ms)
        elif code in RETRIED_CODES or code == ErrorCode.REBALANCE_IN_PROGRESS:
            return broker_error(code, "JoinGroup")
        else:
            self._refused(code, _explained(code, self.config))
        return None

    def _begin_generation(self, response: JoinGroupResponse, now_ms: float) -> None:
        self._member_id, self._generation = response.member_id, response.generation_id
        self._strategy = response.protocol_name or ""
        self._joined, self._assigned = response, {}
        is_assigning = self.is_leader and not response.skip_assignment
        self._state, self._send_at_ms = _State.COUNT if is_assigning else _State.SYNC, now_ms

    def _sync_answered(self, response: SyncGroupResponse, now_ms: float) -> KafkaError | None:
        code = response.error_code
        if code == ErrorCode.NONE:
            self._accept(response.assignment, now_ms)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(now_ms)
        elif code in _FENCED_CODES:
            self._become_lost(code, now_ms)
        elif code in RETRIED_CODES:
            return broker_error(code, "SyncGroup")
        else:
            self._refused(code, _explained(code, self.config))
        return None

    def _accept(self, assignment: bytes, now_ms: float) -> None:
        try:
            self._target = decode_assignment(assignment)
        except MalformedMessageError as error:
            self.give_up(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the leader's assignment: {error}"))
            return
        self._state, self._send_at_ms = _State.STABLE, now_ms + self.config.heartbeat_interval_ms
        self._must_rejoin = self._joined_topics != self.subscription.topics
        if self._is_cooperative and self.owned - self._target:
            self._must_rejoin = True  # once these are revoked, the leader can assign them to others
        self._continue(now_ms)

    def _heartbeat_answered(self, response: HeartbeatResponse, now_ms: float) -> KafkaError | None:
        code = response.error_code
        if self._state not in {_State.STABLE, _State.REJOIN}:
            return None  # the poller let the member join again in the meantime
        if code in RETRIED_CODES:
            return broker_error(code, "Heartbeat")
        self._send_at_ms = now_ms + self.config.heartbeat_interval_ms
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(now_ms)
        elif code in _FENCED_CODES:
            self._become_lost(code, now_ms)
        elif code != ErrorCode.NONE:
            self._refused(code, _explained(code, self.config))
        return None

    def give_up(self, error: Exception) -> None:
        self._state = _State.FAILED
        super().give_up(error)

    # Rebalances

    def rejoin(self, now_ms: float) -> None:
        """Join again: the topics of the group have other partitions than at the last assignment."""
        if self._state is _State.STABLE:
            self._rejoin(now_ms)

    def _rejoin(self, now_ms: float) -> None:
        if self._is_cooperative:
            self.change = None
            self._state, self._send_at_ms = _State.JOIN, now_ms
            return
        self._state = _State.REJOIN
        self.change = MembershipChange(ChangeKind.REVOKE, self.owned) if self.owned else None
        self._continue(now_ms)

    def _continue(self, now_ms: float) -> None:
        self._maybe_join_again(now_ms)
        if self.change is not None:
            return
        if self._state is _State.REJOIN:
            self._state, self._send_at_ms = _State.JOIN, now_ms
        elif self._state is _State.STABLE:
            self.change = self._next_step_to(self._target)
            if self._must_rejoin and self.change is None:
                self._rejoin(now_ms)

    # Losing the membership

    def _become_lost(self, code: int, now_ms: float) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._state, self._generation = _State.LOST, NO_GENERATION
        self._lose_partitions()
        self._maybe_join_again(now_ms)

    def _expire(self, now_ms: float) -> None:
        self._is_expired = True
        if self._state is _State.FAILED:
            return
        has_to_leave = self.leave_request() is not None and self._state is not _State.LOST
        self._state, self._send_at_ms = _State.LEAVE if has_to_leave else _State.EXPIRED, now_ms
        self._generation = NO_GENERATION
        self._lose_partitions()

    def _left(self, now_ms: float) -> None:
        self._member_id, self._generation = "", NO_GENERATION
        self._state = _State.EXPIRED if self._is_expired else _State.LOST
        self._maybe_join_again(now_ms)

    def _maybe_join_again(self, now_ms: float) -> None:
        if self._state is _State.EXPIRED and not self._is_expired:
            self._state = _State.LOST
        if self._state is _State.LOST and self.change is None:
            self._state, self._send_at_ms = _State.JOIN, now_ms

    # For the poller

    def resubscribe(self, subscription: TopicSubscription, now_ms: float) -> None:
        if subscription == self.subscription:
            return
        self.subscription = subscription
        if self._state is _State.STABLE:
            self._rejoin(now_ms)

    def identity(self) -> CommitterIdentity | None:
        if self._generation == NO_GENERATION:
            return None
        return CommitterIdentity(self._generation, self._member_id, self.config.instance_id)

    def commit_refused(self, code: int, identity: CommitterIdentity, now_ms: float) -> None:
        if identity.generation != self._generation or self._state not in {_State.STABLE, _State.REJOIN}:
            return
        if code in _FENCED_CODES:
            self._become_lost(code, now_ms)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._refused(code, _explained(code, self.config))
        elif code == ErrorCode.REBALANCE_IN_PROGRESS and self._state is _State.STABLE:
            self._send_at_ms = min(self._send_at_ms, now_ms)  # the next heartbeat starts to rejoin


def check_strategies(config: GroupConfig) -> None:
    """Raise ConfigError unless `partition.assignment.strategy` names assignors of this client."""
    unknown = [name for name in config.strategies if name not in STRATEGIES]
    if unknown or not config.strategies:
        given = config.partition_assignment_strategy
        raise ConfigError(f"partition.assignment.strategy={given!r}: expected some of {', '.join(STRATEGIES)}")


def _explained(code: int, config: GroupConfig) -> str:
    match code:
        case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return f"the members of group {config.group_id!r} have no partition.assignment.strategy in common"
        case ErrorCode.INVALID_SESSION_TIMEOUT:
            limits = "group.min.session.timeout.ms and group.max.session.timeout.ms"
            return f"session.timeout.ms={config.session_timeout_ms} is not between the brokers' {limits}"
        case ErrorCode.FENCED_INSTANCE_ID:
            return (
                f"another consumer of group {config.group_id!r} has the group.instance.id {config.group_instance_id!r}"
            )
        case ErrorCode.GROUP_MAX_SIZE_REACHED:
            return f"group {config.group_id!r} has as many members as the brokers' group.max.size"
        case _:
            return f"group {config.group_id!r}"
