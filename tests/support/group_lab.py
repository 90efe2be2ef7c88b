"""Groups without a broker: one shard in virtual time, its log as a list, and members that ask it things.

Decisions take effect at once: records are kept, replayed where they ask for it, and answers given. `fail_over` makes a
new shard from the log, as another broker would.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from virtual_time import VirtualTime

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.classic_requests import Joining
from sskafka.groups.consumer_group import Topic
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.members import Client
from sskafka.groups.offset_deletion import DeleteOffsets, OffsetDeletion
from sskafka.groups.offset_requests import FetchedOffset, OffsetCommit
from sskafka.groups.offsets import CommittedOffset
from sskafka.groups.pattern_resolution import ResolvePatterns
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.groups.target_assignment import ComputeTarget, NewTarget, compute
from sskafka.model.computation import Computation, finished
from sskafka.model.coordination import PARKED, Completion, CoordinatorResult, Respond, StateRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 30_000
JOIN_VERSION = 9

Logged = tuple[StateRecord, ProducerIdAndEpoch | None] | tuple[ProducerIdAndEpoch, bool]


class Asked:
    """A request on its way: answered once, or not yet."""

    def __init__(self) -> None:
        self.response: Any = None
        self.error: ErrorCode | None = None
        self.message = ""

    def __repr__(self) -> str:
        return f"Asked({self.response or self.error or 'waiting'})"

    @property
    def is_answered(self) -> bool:
        return self.response is not None or self.error is not None

    @property
    def code(self) -> ErrorCode:
        assert self.is_answered, "there is no answer yet"
        return self.error if self.error is not None else ErrorCode(self.response.error_code)

    def answer(self, response: Any) -> None:
        assert not self.is_answered, f"answered twice: {self} and {response}"
        self.response = response

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        assert not self.is_answered, f"answered twice: {self} and {error}"
        self.error = error
        self.message = message


class LabTimers:
    """Timers of one shard; none goes off once it was stopped."""

    def __init__(self, time: VirtualTime, take: Callable[[CoordinatorResult], None]) -> None:
        self._time = time
        self._take = take
        self.pending: dict[Hashable, object] = {}

    def schedule(self, key: Hashable, delay_ms: int, due: Callable[[int], CoordinatorResult]) -> None:
        token = self.pending[key] = object()

        def fire() -> None:
            if self.pending.get(key) is token:
                del self.pending[key]
                self._take(due(self._time.now_ms()))

        self._time.call_later(delay_ms / 1000, fire)

    def cancel(self, key: Hashable) -> None:
        self.pending.pop(key, None)

    def __contains__(self, key: Hashable) -> bool:
        return key in self.pending


class GroupLab:
    def __init__(self, **settings: Any) -> None:
        self.time = VirtualTime()
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.log: list[Logged] = []
        self.batch_bytes_max = 1 << 20
        self.topics: dict[str, Topic] = {}
        self.targets: dict[str, Computation[NewTarget] | None] = {}
        """Target assignments that were asked for, by group, and their computations once they have begun."""
        self.patterns: dict[str, ResolvePatterns] = {}
        """Groups whose patterns are to be resolved."""
        self.deletions: dict[OffsetDeletion, Iterator[tuple[str, list[TopicPartition]]]] = {}
        """Deletions of offsets that were asked for, and what they still have to look at."""
        self._uuids = count(1)
        self._make_shard()

    def _make_shard(self) -> None:
        self.timers = LabTimers(self.time, self.take)
        self.shard = GroupCoordinatorShard(
            self.settings, self.timers, lambda: f"{next(self._uuids):04}", lambda: self.topics
        )

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    # -- what the runtime does

    def take(self, decision: CoordinatorResult[Any, Any], asked: Completion | None = None) -> None:
        encoded = [self.shard.encode(record) for record in decision.records]
        if decision.if_too_large is not None and sum(len(item.value or b"") for item in encoded) > self.batch_bytes_max:
            decision = decision.if_too_large(self.time.now_ms())
            encoded = [self.shard.encode(record) for record in decision.records]
        for record, bytes_of in zip(decision.records, encoded, strict=True):
            self.log.append((bytes_of, decision.producer))
            self.shard.replay(record, decision.producer)
        if asked is not None and decision.answer is not PARKED:
            asked.answer(decision.answer)
        for effect in decision.effects:
            if isinstance(effect, Respond):
                effect.completion.answer(effect.response)
            else:
                assert isinstance(effect, ComputeTarget | ResolvePatterns | DeleteOffsets)
                if isinstance(effect, ComputeTarget):
                    self.targets.setdefault(effect.group_id, None)
                elif isinstance(effect, DeleteOffsets):
                    self.deletions.setdefault(effect.deletion, effect.deletion.parts())
                else:
                    self.patterns[effect.group_id] = effect

    def step_targets(self) -> None:
        """Take one step of every target assignment that was asked for, and install those that are finished."""
        for group_id, under_way in list(self.targets.items()):
            snapshot = self.shard.consumer.snapshot(group_id) if under_way is None else None
            steps = under_way if snapshot is None else compute(snapshot)
            if steps is None:
                del self.targets[group_id]
                continue
            self.targets[group_id] = steps
            try:
                next(steps)
            except StopIteration as stop:
                del self.targets[group_id]
                self.take(self.shard.consumer.install(stop.value, self.time.now_ms()))

    def step_deletions(self) -> None:
        """Take one step of every deletion of offsets that was asked for."""
        for deletion, parts in list(self.deletions.items()):
            part = next(parts, None)
            if part is not None:
                self.take(deletion.tombstones(*part))
            else:
                del self.deletions[deletion]
                self.take(self.shard.deletions.finish(deletion))

    def finish_deletions(self) -> None:
        while self.deletions:
            self.step_deletions()

    def finish_patterns(self) -> None:
        for group_id, wanted in list(self.patterns.items()):
            del self.patterns[group_id]
            allowed = finished(self.shard.consumer.resolve_patterns(wanted))
            with suppress(KafkaError):
                self.take(self.shard.consumer.patterns_resolved(wanted, allowed, self.time.now_ms()))

    def finish_targets(self) -> None:
        while self.targets:
            self.step_targets()

    def ask(self, operation: Callable[[Completion], CoordinatorResult]) -> Asked:
        asked = Asked()
        try:
            decision = operation(asked)
        except KafkaError as error:
            asked.refuse(error.code, error.message)
        else:
            self.take(decision, asked)
        return asked

    def end_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        self.log.append((producer, is_committed))
        self.shard.replay_end_of_transaction(producer, is_committed)

    def fail_over(self) -> None:
        self.timers.pending.clear()
        self.deletions.clear()
        for completion in self.shard.stop():
            completion.refuse(ErrorCode.NOT_COORDINATOR)
        self._make_shard()
        for first, second in self.log:
            if isinstance(first, StateRecord):
                assert not isinstance(second, bool)
                record = self.shard.decode(first)
                if record is not None:
                    self.shard.replay(record, second)
            else:
                self.shard.replay_end_of_transaction(first, bool(second))
        self.take(self.shard.start(self.time.now_ms()))

    def pass_time(self, duration_ms: int) -> None:
        self.time.run_for(duration_ms)

    # -- what members ask

    def join(
        self,
        member_id: str = "",
        protocols: Sequence[tuple[str, bytes]] = (("range", b"topics"),),
        *,
        instance_id: str | None = None,
        version: int = JOIN_VERSION,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        reason: str | None = None,
        client_id: str = "client",
    ) -> Asked:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in protocols],
            reason=reason,
        )
        client = Client(client_id, "/127.0.0.1")
        return self.ask(
            lambda completion: self.shard.join(Joining(request, version, client, completion), self.time.now_ms())
        )

    def join_fully(self, protocols: Sequence[tuple[str, bytes]] = (("range", b"topics"),), **options: Any) -> Asked:
        """As clients do it: ask for a member id, then join with it."""
        first = self.join(protocols=protocols, **options)
        assert first.code is ErrorCode.MEMBER_ID_REQUIRED
        return self.join(first.response.member_id, protocols, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
    ) -> Asked:
        request = SyncGroupRequest(
            GROUP,
            generation,
            member_id,
            instance_id,
            assignments=[SyncGroupRequestAssignment(name, share) for name, share in (assignments or {}).items()],
        )
        return self.ask(lambda completion: self.shard.sync(request, completion, self.time.now_ms()))

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(GROUP, generation, member_id, instance_id)
        return self.ask(lambda completion: self.shard.heartbeat(request, self.time.now_ms())).code

    def leave(self, *identities: MemberIdentity) -> Asked:
        request = LeaveGroupRequest(GROUP, members=list(identities))
        return self.ask(lambda completion: self.shard.leave(request, 5, self.time.now_ms()))

    # -- offsets

    def commit(
        self,
        offset: int,
        committer: OffsetCommitter = OffsetCommitter(),  # noqa: B008  a constant
        *,
        partition: int = 0,
        topic: str = "t",
        metadata: str | None = "",
        retention_ms: int = -1,
        producer: ProducerIdAndEpoch | None = None,
        group_id: str = GROUP,
    ) -> ErrorCode:
        commit = OffsetCommit(TopicPartition(topic, partition), offset, 3, metadata)
        committer = committer._replace(is_transactional=producer is not None)

        def operation(completion: Completion) -> CoordinatorResult:
            now_ms = self.time.now_ms()
            decision = self.shard.commit_offsets(group_id, committer, [commit], retention_ms, now_ms)
            return replace(decision, producer=producer)

        asked = self.ask(operation)
        return asked.error if asked.error is not None else asked.response[0]

    def fetched(self, partition: int = 0, require_stable: bool = False, group_id: str = GROUP) -> FetchedOffset:
        wanted = TopicPartition("t", partition)
        return self.shard.offset_requests.fetch(group_id, [wanted], require_stable)[wanted]

    def fetched_at(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        return self.shard.offset_requests.fetch(group_id, [partition], require_stable=False)[partition].offset

    def committed(self, partition: int = 0, group_id: str = GROUP) -> int | None:
        found = self.fetched(partition, group_id=group_id).offset
        return found.offset if found is not None else None

    # -- a whole group

    def stable_group(self, size: int = 2) -> list[str]:
        """Members of a stable group, the leader first; each is assigned its own name."""
        joins = [self.join_fully() for _ in range(size)]
        self.pass_time(self.settings.initial_rebalance_delay_ms + 1)
        while not all(join.is_answered for join in joins):
            joins = [self.join(join.response.member_id) if join.is_answered else join for join in joins]
        return self.assign([join.response.member_id for join in joins])

    def assign(self, members: list[str]) -> list[str]:
        generation, leader = self.group.generation, self.group.leader_id
        assert leader is not None
        followers = [member for member in members if member != leader]
        waiting = [self.sync(member, generation) for member in followers]
        shares = {member: member.encode() for member in members}
        done = [self.sync(leader, generation, shares), *waiting]
        assert [sync.code for sync in done] == [ErrorCode.NONE] * len(members)
        return [leader, *followers]
