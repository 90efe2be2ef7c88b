"""The bundled consumer's membership in virtual time: its driver and poller on a network that loses and delays.

The coordinator is the real one (tests/support/consumer_lab.py). Records are numbers: a partition always has more. What
a member reads and commits is told to a witness, which checks it.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from consumer_lab import ConsumerLab
from group_lab import GROUP, Asked

from sskafka.client.config import GroupConfig
from sskafka.client.group.classic_membership import ClassicMembership
from sskafka.client.group.consumer_membership import ConsumerMembership
from sskafka.client.group.membership import ChangeKind, Membership, OwnedPartitions, TopicSubscription
from sskafka.groups.classic_requests import Joining
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.members import Client
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from sskafka.wire.schema import Message

SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS = 6_000, 1_000, 10_000
PATIENCE_MS = {JoinGroupRequest: MAX_POLL_MS + 5_000, SyncGroupRequest: MAX_POLL_MS + 5_000}
TICK_MS, BACKOFF_MS = 50, 100
_RESPONSES: dict[type, Callable[..., Any]] = {
    ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
    HeartbeatRequest: HeartbeatResponse,
    JoinGroupRequest: JoinGroupResponse,
    LeaveGroupRequest: LeaveGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
}


class MemberWitness(Protocol):
    loss: float

    def assigned(self, member: "ClientMember", partitions: OwnedPartitions) -> None: ...

    def read(self, member: "ClientMember", partition: TopicPartition, start: int, end: int) -> None: ...

    def committed(self, member: "ClientMember", partition: TopicPartition, offset: int) -> None: ...


class ClientMember:
    def __init__(
        self, name: str, lab: ConsumerLab, random: Random, witness: MemberWitness, properties: dict[str, Any]
    ) -> None:
        self.name = name
        self.is_alive = True
        self.positions: dict[TopicPartition, int] = {}
        self._lab = lab
        self._random = random
        self._witness = witness
        self._turn = 0
        self._is_waiting = False
        self._is_closing = False
        self.busy_until_ms = 0.0
        config = GroupConfig(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=MAX_POLL_MS,
            **properties,
        )
        subscription = TopicSubscription(frozenset({"t"}))
        self.core: Membership = (
            ConsumerMembership(config, subscription, f"id-of-{name}", self._now_ms)
            if config.uses_consumer_protocol
            else ClassicMembership(config, subscription, self._now_ms)
        )
        self._every(TICK_MS, self._drive)
        self._every(TICK_MS * 2, self._poll)

    @property
    def _now_ms(self) -> float:
        return self._lab.time.monotonic_ms()

    def _every(self, interval_ms: float, call: Callable[[], None]) -> None:
        def again() -> None:
            if self.is_alive:
                call()
                self._every(interval_ms, call)

        self._lab.time.call_later(self._random.uniform(0.5, 1.5) * interval_ms / 1000, again)

    # -- the driver

    def _drive(self) -> None:
        if self._is_waiting:
            return
        topics = {topic.topic_id: name for name, topic in self._lab.topics.items()}
        if isinstance(self.core, ConsumerMembership) and self.core.unknown_topics:
            self.core.learn_topics(topics, self._now_ms)
        if isinstance(self.core, ClassicMembership) and self.core.topics_to_count is not None:
            counts = {name: topic.partition_count for name, topic in self._lab.topics.items()}
            self.core.count(counts, self._now_ms)
        request = self.core.next_request(self._now_ms)
        if request is not None:
            self._send(request)

    def _send(self, request: Message) -> None:
        self._turn += 1
        turn, self._is_waiting = self._turn, True

        def give_up() -> None:
            if self._turn == turn and self._is_waiting and self.is_alive:
                self._is_waiting = False
                self.core.failed(self._now_ms, BACKOFF_MS)

        def arrive() -> None:
            asked = self._ask(request)
            self._watch(asked, lambda: self._hear(request, asked, turn))

        self._lab.time.call_later(PATIENCE_MS.get(type(request), 3_000) / 1000, give_up)
        if self._random.random() >= self._witness.loss:
            is_late = self._random.random() < self._witness.loss
            delay_s = self._random.uniform(2, 12) if is_late else self._random.uniform(0.001, 0.1)
            self._lab.time.call_later(delay_s, arrive)

    def _watch(self, asked: Asked, deliver: Callable[[], None]) -> None:
        def look() -> None:
            if not asked.is_answered:
                self._lab.time.call_later(0.05, look)
            elif self._random.random() >= self._witness.loss:
                self._lab.time.call_later(self._random.uniform(0.001, 0.1), deliver)

        look()

    def _hear(self, request: Message, asked: Asked, turn: int) -> None:
        if not self.is_alive or turn != self._turn or not self._is_waiting:
            return
        self._is_waiting = False
        response = asked.response
        if asked.error is not None:
            response = _RESPONSES[type(request)](error_code=asked.error)
        if self.core.answered(request, response, self._now_ms) is not None:
            self.core.failed(self._now_ms, BACKOFF_MS)

    def _ask(self, request: Message) -> Asked:
        lab, now_ms = self._lab, self._lab.time.now_ms()
        client = Client(self.name, "/127.0.0.1")
        match request:
            case ConsumerGroupHeartbeatRequest():
                return lab.heartbeat(request)
            case JoinGroupRequest():
                return lab.ask(lambda completion: lab.shard.join(Joining(request, 9, client, completion), now_ms))
            case SyncGroupRequest():
                return lab.ask(lambda completion: lab.shard.sync(request, completion, now_ms))
            case HeartbeatRequest():
                return lab.ask(lambda _: lab.shard.heartbeat(request, now_ms))
            case _:
                assert isinstance(request, LeaveGroupRequest)
                return lab.ask(lambda _: lab.shard.leave(request, 5, now_ms))

    # -- the poller

    def _poll(self) -> None:
        if self._is_closing:
            self._maybe_leave()
            return
        if self._now_ms < self.busy_until_ms:
            return
        self.core.polled(self._now_ms)
        while (change := self.core.change) is not None:
            if change.kind is ChangeKind.ASSIGN:
                self._witness.assigned(self, change.partitions)
                for partition in change.partitions:
                    self.positions[partition] = self._lab.committed(partition.partition) or 0
            elif change.kind is ChangeKind.REVOKE:
                self._commit(change.partitions)
            if change.kind is not ChangeKind.ASSIGN:
                for partition in change.partitions:
                    self.positions.pop(partition, None)
            self.core.applied(change, self._now_ms)
        assert self.positions.keys() == self.core.owned, f"{self.name} reads other partitions than it owns"
        for partition, start in self.positions.items():
            end = start + self._random.randint(0, 3)
            self._witness.read(self, partition, start, end)
            self.positions[partition] = end
        if self._random.random() < 0.1:
            self._commit(self.core.owned)

    def _commit(self, partitions: OwnedPartitions) -> bool:
        """Return False if the commit is to be repeated, because a generation is about to begin."""
        for partition in sorted(partitions):
            identity = self.core.identity()
            if identity is None or self._random.random() < self._witness.loss:
                return True
            committer = OffsetCommitter(identity.member_id, identity.instance_id, identity.generation)
            code = self._lab.commit(self.positions[partition], committer, partition=partition.partition)
            if code == ErrorCode.NONE:
                self._witness.committed(self, partition, self.positions[partition])
            else:
                self.core.commit_refused(code, identity, self._now_ms)
                is_rebalancing = code in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}
                return not is_rebalancing or self.core.identity() is None
        return True

    def is_valid_owner(self, partition: TopicPartition) -> bool:
        """Whether the coordinator would accept a commit of this member for the partition that it reads."""
        identity = self.core.identity()
        if not self.is_alive or partition not in self.core.owned or identity is None:
            return False
        committer = OffsetCommitter(identity.member_id, identity.instance_id, identity.generation)
        now_ms = self._lab.time.now_ms()
        try:
            self._lab.shard.offset_requests.check_committer(GROUP, committer, [partition], now_ms)
        except KafkaError:
            return False
        return True

    # -- the end

    def close(self) -> None:
        """Commit and leave, as `close` does."""
        self._is_closing = True
        self._maybe_leave()

    def _maybe_leave(self) -> None:
        """Leave when everything is committed. The last request may get lost."""
        if self._commit(self.core.owned):
            self.crash()
            request = self.core.leave_request()
            if request is not None and self._random.random() >= self._witness.loss:
                self._ask(request)

    def crash(self) -> None:
        self.is_alive = False
