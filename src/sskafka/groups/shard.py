"""The `CoordinatorShard` of groups: the groups of all kinds in one partition of __consumer_offsets, and their offsets.

The parts `classic`, `consumer` and `offset_requests` decide on requests and share this store. A decision returns
records, an answer and effects. Only `replay` changes the state that is in the log, both on the broker that decided and
on one that loads the log. Soft state is in no record: classic groups between two generations (classic_group), timers,
offsets that are hidden while they are deleted (offset_deletion), and `GroupMemory`.

A committed offset of an unknown group creates a group that never had members. A group without members and offsets is
removed when offsets are next checked for expiry.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from sskafka.groups import consumer_records, log_records, offset_deletion
from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.classic_in_consumer import ClassicInConsumer
from sskafka.groups.classic_rebalance import ClassicRebalance, refuse_parked
from sskafka.groups.classic_requests import ClassicRequests, Joining, check_session_timeout
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_records import Draft
from sskafka.groups.consumer_requests import ConsumerRequests
from sskafka.groups.group import Group, GroupMemory, OffsetCommitter
from sskafka.groups.group_settings import ConsumerTimings, GroupSettings
from sskafka.groups.log_records import GroupRecord, GroupResult, OffsetRecord, Record
from sskafka.groups.member_memory import MemberMemory
from sskafka.groups.migration import downgraded, not_upgraded, upgraded
from sskafka.groups.offset_deletion import OffsetDeletions
from sskafka.groups.offset_requests import OffsetCommit, OffsetRequests
from sskafka.groups.offsets import OffsetStore
from sskafka.groups.subscription import CONSUMER_PROTOCOL
from sskafka.model.computation import Computation
from sskafka.model.coordination import Completion, CoordinatorResult, StateRecord, Timers
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.model.pattern_matching import CpuClock
from sskafka.wire.messages.group_records import ConsumerGroupMetadataKey, GroupMetadataKey
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.leave_group import LeaveGroupRequest
from sskafka.wire.messages.sync_group import SyncGroupRequest

NO_PRODUCER = -1
EXPIRY_LOOKS = 1_000
"""Groups and offsets that are checked for expiry in one turn."""
EXPIRED_MAX = 500
"""Offsets of one group that expire in one turn."""
EXPIRY_PAUSE_MS = 20
_EXPIRY = "expiry"


class GroupCoordinatorShard:
    """`topics` returns the current topics of the cluster, `timings` the timings of a consumer group.

    `is_writable`: whether records can be written now. `new_member_id` creates ids for members of consumer groups that
    join without one; if it is None, `new_uuid` does. `cpu_ns` returns the CPU time of the thread: patterns of topics
    that take too much of it are refused."""

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        new_uuid: Callable[[], str],
        topics: Callable[[], Topics] = dict,
        timings: Callable[[str], ConsumerTimings] | None = None,
        is_writable: Callable[[], bool] = lambda: True,
        new_member_id: Callable[[], str] | None = None,
        cpu_ns: CpuClock = lambda: 0,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._memories: dict[str, GroupMemory] = {}
        self._to_expire: list[str] = []
        """Groups that the current check for expiry has still to look at."""
        self._is_writable = is_writable
        self.offset_requests = OffsetRequests(self.offsets, self.groups.get, settings, topics)
        self.deletions = OffsetDeletions(self.offsets, timers)
        self._settings = settings
        self._timers = timers
        self._rebalance = ClassicRebalance(self.groups, settings, timers)
        groups, memory = self.groups.values(), MemberMemory()
        self.classic = ClassicRequests(
            self._find_classic, self._create_classic, self._rebalance, settings, new_uuid, groups, memory
        )
        self._topics = topics
        self._new_uuid = new_uuid
        timings = timings or (lambda group_id: settings.consumer_timings)
        self.consumer = ConsumerRequests(
            self,
            topics,
            settings,
            timers,
            new_member_id or new_uuid,
            timings,
            is_writable,
            cpu_ns,
            lambda size, now_ms: memory.take(size, groups, now_ms),
        )
        self._classic_in_consumer = ClassicInConsumer(self.consumer, self, topics, settings, timers)

    # -- the log

    def encode(self, record: Record) -> StateRecord:
        return log_records.encode_record(record)

    def decode(self, record: StateRecord) -> Record | None:
        return log_records.decode_record(record)

    def decode_in_steps(self, record: StateRecord) -> Computation[Record | None]:
        decoded = yield from log_records.decode_record_in_steps(record)
        if isinstance(decoded, GroupRecord):
            decoded = decoded._replace(kept=(yield from consumer_records.kept_of(decoded.value)))
        return decoded

    def replay(self, record: Record, producer: ProducerIdAndEpoch | None) -> None:
        if isinstance(record, OffsetRecord):
            self._replay_offset(record, producer)
        elif isinstance(record.key, GroupMetadataKey):
            self._replay_group(record)
        else:
            self._replay_consumer(record)

    def _replay_offset(self, record: OffsetRecord, producer: ProducerIdAndEpoch | None) -> None:
        group_id, partition, offset = record
        self.offsets.replay(group_id, partition, offset, producer.producer_id if producer else NO_PRODUCER)
        if offset is not None and group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, memory=self._memory_of(group_id))

    def _replay_group(self, record: GroupRecord) -> None:
        group_id, value = record.key.group, record.value
        group = self.groups.get(group_id)
        if record.successor is not None:
            self.groups[group_id] = record.successor
        elif value is not None and isinstance(group, ClassicGroup):
            group.replay(value, record.replacement)
            if record.replacement is not None:
                self._rebalance.static_member_replaced(group, record.replacement)
        elif value is not None:
            self.groups[group_id] = ClassicGroup.from_value(group_id, value, self._memory_of(group_id))
        elif isinstance(group, ClassicGroup):
            del self.groups[group_id]
            self._rebalance.forget_group(group)

    def _replay_consumer(self, record: GroupRecord) -> None:
        group_id = record.key.group_id
        group = self.groups.get(group_id)
        if record.value is not None and not isinstance(group, ConsumerGroup):
            group = self.groups[group_id] = ConsumerGroup(group_id, self._memory_of(group_id))
        if isinstance(group, ConsumerGroup):
            consumer_records.replay(group, record)
            if record.value is None and isinstance(record.key, ConsumerGroupMetadataKey):
                del self.groups[group_id]
                if record.successor is not None:
                    self.groups[group_id] = record.successor

    def replay_end_of_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        for group_id in self.offsets.end_transaction(producer.producer_id, is_committed):
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id, memory=self._memory_of(group_id))

    def _memory_of(self, group_id: str) -> GroupMemory:
        return self._memories.setdefault(group_id, GroupMemory())

    def start(self, now_ms: int) -> GroupResult:
        decision: GroupResult = CoordinatorResult()
        for group_id in self.offsets.groups():  # a group whose deletion was not finished
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id, memory=self._memory_of(group_id))
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                decision += self._rebalance.resume(group, now_ms)
            elif isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self.consumer.watch(group, member)
                    self.consumer.expect_revocation(group, member)
        self._expire_later()
        return decision

    def stop(self) -> list[Completion]:
        """Return the completions of requests that wait. Nothing may be asked afterwards."""
        parked = [completion for group in self.groups.values() for completion in group.waiting()]
        del self.classic, self.consumer, self._classic_in_consumer  # these refer to the shard: it is freed without them
        return [*parked, *self.deletions.waiting()]

    # -- groups of any kind

    def find(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    def listed(self, states: AbstractSet[str] = frozenset(), types: AbstractSet[str] = frozenset()) -> list[Group]:
        """Return the groups in one of the states and of one of the types, in lower case. An empty set matches all."""
        return [
            group
            for group in self.groups.values()
            if (not states or group.state_name.lower() in states) and (not types or group.type_name in types)
        ]

    def delete_group(self, group_id: str, completion: Completion | None = None) -> GroupResult:
        """Delete the group and its offsets; many offsets in the background, before `completion` is answered."""
        group = self.find(group_id)
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        if self.offsets.count_in([group_id]) > offset_deletion.AT_ONCE_MAX:
            self._require_writable()
            self._memories.pop(group_id, None)
            return CoordinatorResult(_tombstones(group), effects=[self.deletions.begin_of_group(group_id, completion)])
        self._memories.pop(group_id, None)
        records = [*self.offset_requests.delete_all(group_id), *_tombstones(group)]
        return CoordinatorResult(records, ErrorCode.NONE, is_divisible=True)

    def commit_offsets(
        self,
        group_id: str,
        committer: OffsetCommitter,
        commits: Sequence[OffsetCommit],
        retention_ms: int,
        now_ms: int,
    ) -> GroupResult:
        """Answer with the error code of each commit. A commit renews the session of a classic member."""
        partitions = (commit.partition for commit in commits)
        group = self.offset_requests.check_committer(group_id, committer, partitions, now_ms)
        records, outcomes = self.offset_requests.commit(group_id, commits, retention_ms, now_ms)
        if isinstance(group, ClassicGroup):
            self.classic.renew_session_of(group, committer.member_id)
        return CoordinatorResult(records, outcomes)

    def topics_deleted(self, names: Iterable[str]) -> GroupResult:
        """Delete the offsets of deleted topics. They must not apply to a new topic of the same name."""
        topics = frozenset(name for name in names if name in self.offsets.topics())
        if self.offsets.count_in(self.offsets.groups_of(topics)) > offset_deletion.AT_ONCE_MAX:
            return CoordinatorResult(effects=[self.deletions.begin_of_topics(topics)])
        return CoordinatorResult(self.offset_requests.delete_topics(topics), is_divisible=True)

    def topics_missing(self, known: Collection[str]) -> GroupResult:
        """Delete the offsets of topics whose names are not in `known`, the topics that exist."""
        return self.topics_deleted([topic for topic in self.offsets.topics() if topic not in known])

    # -- classic groups

    def _find_classic(self, group_id: str) -> ClassicGroup | None:
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return group
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _create_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        group = self.groups[group_id] = ClassicGroup(group_id, now_ms, self._memory_of(group_id))
        return group

    # -- the classic protocol, spoken to groups of both kinds

    def join(self, joining: Joining, now_ms: int) -> GroupResult:
        self._require_writable()
        group = self.groups.get(joining.request.group_id)
        if not isinstance(group, ConsumerGroup):
            return self.classic.join(joining, now_ms)
        if group.members:
            return self._classic_in_consumer.join(group, joining, self._new_uuid(), now_ms)
        return self._join_emptied(group, joining, now_ms)

    def _join_emptied(self, group: ConsumerGroup, joining: Joining, now_ms: int) -> GroupResult:
        """Turn a group without members into a classic one, whatever the migration policy: its first member decides."""
        made, records = downgraded(group, self._topics(), now_ms)
        decision: GroupResult = CoordinatorResult(records)
        try:
            check_session_timeout(joining.request, self._settings)
            return decision + self.classic.join_group(made, joining, now_ms)
        except KafkaError as error:
            return joining.refused(error.code)

    def abandon_join(self, group_id: str, completion: Completion, now_ms: int) -> GroupResult:
        """Remove the member. While nothing can be written, do nothing: its session will time out."""
        return self.classic.abandon_join(group_id, completion, now_ms) if self._is_writable() else CoordinatorResult()

    def sync(self, request: SyncGroupRequest, completion: Completion, now_ms: int) -> GroupResult:
        self._require_writable()
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_in_consumer.sync(group, request)
        return self.classic.sync(request, completion, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> GroupResult:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_in_consumer.heartbeat(group, request, now_ms)
        return self.classic.heartbeat(request)

    def leave(self, request: LeaveGroupRequest, version: int, now_ms: int) -> GroupResult:
        self._require_writable()
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_in_consumer.leave(group, request, version, now_ms)
        return self.classic.leave(request, version, now_ms)

    def _require_writable(self) -> None:
        """Refuse to change a classic group while nothing can be written: its soft state would get ahead of the log."""
        if not self._is_writable():
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # -- consumer groups

    def find_consumer(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group, or None. `create_consumer` checks whether a classic group can be upgraded."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def why_not_consumer(self, group_id: str) -> str:
        return f"Group {group_id} is not a consumer group." if group_id in self.groups else ""

    def create_consumer(self, group_id: str) -> Draft:
        group = self.groups.get(group_id)
        if group is None:
            return Draft(ConsumerGroup(group_id))
        assert isinstance(group, ClassicGroup)
        if group.members:
            self._check_upgrade(group)
        return upgraded(group, self._topics())

    def begin_consumer(self, draft: Draft) -> Draft:
        group = self.groups.get(draft.group.group_id)
        if group is None:
            self._memories[draft.group.group_id] = draft.group.memory
        if not isinstance(group, ClassicGroup):
            return draft
        for member in draft.group.members.values():
            self.consumer.watch(draft.group, member)
        refused: GroupResult = CoordinatorResult(
            effects=[
                response
                for member in group.members.values()
                for response in refuse_parked(member, ErrorCode.REBALANCE_IN_PROGRESS)
            ]
        )
        return draft.followed_by(refused)

    def downgraded_after_leave(self, draft: Draft, now_ms: int) -> Draft | None:
        if not self.may_downgrade(draft.group):
            return None
        downgraded_draft, made = self._downgrade(draft, now_ms)
        reason = "the last member of the newer protocol left"
        return downgraded_draft.followed_by(self._rebalance.prepare(made, reason, now_ms))

    def downgraded_after_replacement(self, draft: Draft, now_ms: int) -> Draft:
        """There is no rebalance if every member has what the newest target assignment says."""
        is_assigned = draft.group.target_epoch == draft.group.epoch and draft.group.is_stable
        downgraded_draft, made = self._downgrade(draft, now_ms)
        if is_assigned:
            return downgraded_draft
        reason = "the last member of the newer protocol was replaced"
        return downgraded_draft.followed_by(self._rebalance.prepare(made, reason, now_ms))

    def may_downgrade(self, group: ConsumerGroup) -> bool:
        """Return whether the group becomes classic again: no member uses the newer protocol any more."""
        is_allowed = self._settings.migration_policy in {"bidirectional", "downgrade"}
        is_small = 0 < len(group.members) <= self._settings.group_size_max
        return is_allowed and is_small and group.speaks_classic_only(group.members.values())

    def _downgrade(self, draft: Draft, now_ms: int) -> tuple[Draft, ClassicGroup]:
        """The classic group takes the place of the consumer group when the records are replayed."""
        for member in draft.group.members.values():
            self.consumer.forget_timers(draft.group, member)
        made, records = downgraded(draft.group, self._topics(), now_ms)
        for joined in made.members.values():
            self._rebalance.renew_session(made, joined)
        return draft.followed_by(CoordinatorResult(records)), made

    def _check_upgrade(self, group: ClassicGroup) -> None:
        problem = ""
        if self._settings.migration_policy not in {"bidirectional", "upgrade"}:
            problem = "online upgrade is disabled"
        elif group.protocol_type != CONSUMER_PROTOCOL:
            problem = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._settings.consumer_group_size_max:
            problem = "the group size exceeds the consumer group maximum size"
        if problem:
            raise not_upgraded(group, problem)

    # -- expiry

    def _expire_later(self) -> None:
        """Go on soon with the groups that are left, or look at all groups again after the interval."""
        is_begun = bool(self._to_expire)
        interval_ms = EXPIRY_PAUSE_MS if is_begun else self._settings.retention_check_interval_ms
        self._timers.schedule(_EXPIRY, interval_ms, self._expire)

    def _expire(self, now_ms: int) -> GroupResult:
        """Delete expired offsets, and groups without members and offsets, of as many groups as fit into a turn."""
        self._to_expire = self._to_expire or list(self.groups)
        records: list[Record] = []
        left = EXPIRY_LOOKS
        while self._to_expire and left > 0:
            group = self.groups.get(self._to_expire.pop())
            if group is None:
                continue
            left -= 1 + self.offsets.count_in([group.group_id])
            expired = list(islice(self.offset_requests.expired(group, now_ms), EXPIRED_MAX))
            records += [OffsetRecord(group.group_id, partition) for partition in expired]
            if len(expired) == EXPIRED_MAX:
                self._to_expire.append(group.group_id)
                break
            if self._is_over(group, expired):
                self._memories.pop(group.group_id, None)
                records += _tombstones(group)
        self._expire_later()
        return CoordinatorResult(records, is_divisible=True)

    def _is_over(self, group: Group, expired: list[TopicPartition]) -> bool:
        is_idle = not isinstance(group, ClassicGroup) or group.state is State.EMPTY
        return is_idle and group.is_empty and self.offsets.partitions_of(group.group_id) <= set(expired)


def _tombstones(group: Group) -> Sequence[Record]:
    if isinstance(group, ConsumerGroup):
        return consumer_records.group_tombstones(group)
    return [log_records.group_tombstone(group.group_id)]
