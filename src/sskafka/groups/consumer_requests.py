"""ConsumerGroupHeartbeat: with it, members join, report their subscription and partitions, get assignments, and leave.

    heartbeat -> update the member -> [subscription or topics changed: group epoch + 1]
              -> [target older than the group epoch, and assignment interval is over: new target (target_assignment)]
              -> the member's next step towards the target -> response

No request waits: a member learns of a new target with its next heartbeat. A member that does not heartbeat within the
session timeout, or does not revoke partitions within the rebalance timeout, is removed, and its partitions are free.

A decision works on drafts of the group (consumer_records.Draft); the group changes when its records are replayed.
Timers and `GroupMemory` are soft state.

While nothing can be written, a heartbeat that would change something is refused, but it renews the session, and the
member retries. Heartbeats that change nothing get a response as usual.
"""

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Protocol

from sskafka.groups import consumer_records as records
from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_heartbeat import (
    Heartbeat,
    TopicRights,
    check_epoch,
    check_instance,
    check_released,
    heartbeat_response,
)
from sskafka.groups.consumer_records import Draft
from sskafka.groups.group import EventKind
from sskafka.groups.group_settings import ConsumerTimings, GroupSettings
from sskafka.groups.log_records import GroupRecord, GroupResult
from sskafka.groups.member_memory import MATCHED_BYTES, consumer_member_bytes
from sskafka.groups.members import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    Client,
    ConsumerMember,
    MemberState,
)
from sskafka.groups.pattern_resolution import (
    NOTHING_ALLOWED,
    AllowedTopics,
    ResolvePatterns,
    resolve_patterns,
    resolved_records,
    unused_patterns,
)
from sskafka.groups.reconciliation import TargetAssignment, reconciled
from sskafka.groups.subscribed_topics import SubscribedTopics
from sskafka.groups.target_assignment import ComputeTarget, NewTarget, Snapshot, compute, is_large, snapshot_of
from sskafka.groups.topic_changes import TopicChanges, patterns_of
from sskafka.model.computation import Computation, finished
from sskafka.model.coordination import CoordinatorResult, Timers
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.pattern_matching import CpuClock
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

SESSION, REBALANCE = "consumer session", "consumer rebalance"
CLASSIC_JOIN, CLASSIC_SYNC = "consumer join", "consumer sync"
"""Kinds of timers of a member. The latter two are for members that use the classic protocol."""


class ConsumerGroups(Protocol):
    """The groups of the shard, as far as this module uses them."""

    def find_consumer(self, group_id: str) -> ConsumerGroup | None: ...

    def why_not_consumer(self, group_id: str) -> str:
        """Return why the group is not a consumer group, or an empty text if it does not exist."""
        ...

    def create_consumer(self, group_id: str) -> Draft:
        """Return a new consumer group, or the upgrade of a classic one. Raise KafkaError if that cannot be upgraded."""
        ...

    def begin_consumer(self, draft: Draft) -> Draft:
        """Change the soft state of a group that is created or upgraded, once nothing can refuse the heartbeat any more.

        Keep the memory of a new group. Watch the members of an upgraded one, and answer the requests that are parked in
        the classic group. Do nothing if the group was a consumer group before."""
        ...

    def downgraded_after_leave(self, draft: Draft, now_ms: int) -> Draft | None:
        """Return the draft with the downgrade to a classic group if the members that are left require it."""
        ...


class ConsumerRequests:
    """`topics` returns the current topics of the cluster, `timings` the timings of a group by its id.

    `take_memory`: whether there is room for a member of that many bytes at that time."""

    def __init__(
        self,
        groups: ConsumerGroups,
        topics: Callable[[], Topics],
        settings: GroupSettings,
        timers: Timers,
        new_member_id: Callable[[], str],
        timings: Callable[[str], ConsumerTimings],
        is_writable: Callable[[], bool],
        cpu_ns: CpuClock,
        take_memory: Callable[[int, int], bool],
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._settings = settings
        self._timers = timers
        self._new_member_id = new_member_id
        self._timings = timings
        self._is_writable = is_writable
        self._take_memory = take_memory
        self._topic_changes = TopicChanges(cpu_ns)
        self._subscribed = SubscribedTopics(topics)

    # -- ConsumerGroupHeartbeat

    def heartbeat(self, heartbeat: Heartbeat, now_ms: int) -> GroupResult:
        request = heartbeat.request
        heartbeat.check(self._settings.assignors)
        if request.member_epoch in {LEAVING_EPOCH, STATIC_LEAVING_EPOCH}:
            return self._leave(heartbeat, now_ms)
        draft = self._draft_of(request)
        self.require_room(draft.group, request.member_id)
        self._require_memory(draft.group, request, now_ms)
        draft, member = self._member_of(draft, heartbeat, now_ms)
        if member.member_id in draft.group.members:
            self.watch(draft.group, member)  # even if the rest of the heartbeat is refused, the member is alive
        said = heartbeat.applied_to(member)
        names = heartbeat.long_fields.names_to_write if heartbeat.long_fields.topic_names is not None else None
        draft = self.changed(draft, member, said, now_ms, heartbeat.rights, names)
        draft = self.maybe_assign(draft, now_ms)
        is_resubscribed = said.subscription != member.subscription
        draft = self.reconcile(draft, member.member_id, heartbeat.reported, is_resubscribed, now_ms)
        draft = self._groups.begin_consumer(draft)
        updated = draft.group.members[member.member_id]
        self.watch(draft.group, updated)
        has_assignment = (
            heartbeat.is_full or request.member_epoch == JOINING_EPOCH or updated.assigned != member.assigned
        )
        interval_ms = self._timings(draft.group.group_id).heartbeat_interval_ms
        return draft.decided(heartbeat_response(updated, interval_ms, has_assignment))

    def _draft_of(self, request: ConsumerGroupHeartbeatRequest) -> Draft:
        group = self._groups.find_consumer(request.group_id)
        if group is not None:
            return Draft(group)
        if request.member_epoch == JOINING_EPOCH:
            self._require_writable()
            return self._groups.create_consumer(request.group_id)
        problem = self._groups.why_not_consumer(request.group_id) or f"Consumer group {request.group_id} not found."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, problem)

    def require_room(self, group: ConsumerGroup, member_id: str) -> None:
        size_max = self._settings.consumer_group_size_max
        if member_id not in group.members and len(group.members) >= size_max:
            text = f"The consumer group has reached its maximum capacity of {size_max} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)

    def _require_memory(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> None:
        """Raise KafkaError if the members of the shard take too much memory for this subscription."""
        if request.subscribed_topic_names is None and not request.subscribed_topic_regex:
            return
        regex = request.subscribed_topic_regex or ""
        size = consumer_member_bytes(request.subscribed_topic_names or (), regex)
        if regex and regex not in group.regex_topics:
            size += MATCHED_BYTES * len(self._topics())  # it may match all; what it does match is counted later
        if not self._take_memory(size + len(request.group_id), now_ms):
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, "The members of all groups take too much memory.")

    def _member_of(self, draft: Draft, heartbeat: Heartbeat, now_ms: int) -> tuple[Draft, ConsumerMember]:
        request = heartbeat.request
        if request.member_epoch == JOINING_EPOCH:
            return self._joining(draft, heartbeat, now_ms)
        if request.instance_id is not None:
            check_instance(draft.group, request.instance_id, request.member_id)
        member = draft.group.member(request.member_id)
        check_epoch(member, request.member_epoch, heartbeat.reported)
        return draft, member

    def _joining(self, draft: Draft, heartbeat: Heartbeat, now_ms: int) -> tuple[Draft, ConsumerMember]:
        """Return the member that joins; a static member that comes back replaces its old member id."""
        self._require_writable()
        request, group = heartbeat.request, draft.group
        member_id = request.member_id or self._new_member_id()
        instance_id = request.instance_id
        before = group.static_members.get(instance_id) if instance_id is not None else None
        if before is not None:
            check_released(group.members[before], member_id)
            replaced = self.replace_static(draft, group.members[before], member_id, now_ms)
            return replaced, replaced.group.members[member_id]
        known = group.members.get(member_id)
        if known is None:
            known = ConsumerMember(member_id, instance_id=instance_id)
            _note(group, known, heartbeat.client, EventKind.JOINED, "", now_ms)
        return draft, known

    def replace_static(self, draft: Draft, before: ConsumerMember, member_id: str, now_ms: int) -> Draft:
        """Give the partitions and the target of a static member to its new member id, and remove the old id."""
        group_id, target = draft.group.group_id, draft.group.target_of(before)
        self.forget_timers(draft.group, before)
        member = before._replace(member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
        replaced = draft.plus(
            *records.member_tombstones(group_id, before.member_id),
            records.member_record(group_id, member),
            records.target_record(group_id, member_id, target),
            records.current_record(group_id, member),
        )
        _note(replaced.group, member, member.client, EventKind.REJOINED, "the static member is back", now_ms)
        return replaced

    # -- what changes

    def changed(
        self,
        draft: Draft,
        member: ConsumerMember,
        said: ConsumerMember,
        now_ms: int,
        rights: TopicRights | None = None,
        names_to_write: list[str] | None = None,
        *,
        resolves_patterns: bool = True,
    ) -> Draft:
        """Update the member, and begin a new group epoch if subscriptions, topics or rights have changed.

        `names_to_write`: the topic names of the member, if they are encoded. `resolves_patterns`: False if the rights
        of the client are not known. The members that have patterns send heartbeats with their rights soon."""
        group_id, is_new = draft.group.group_id, member.member_id not in draft.group.members
        is_bumped = said.topic_names != member.topic_names
        if said.topic_regex != member.topic_regex:
            is_bumped = is_bumped or not said.topic_regex or said.topic_regex in draft.group.regex_topics
        if is_new or said != member:
            draft = self._plus(draft, records.member_record(group_id, said, names_to_write))
        if said.topic_regex != member.topic_regex:
            draft = self._plus(draft, *unused_patterns(draft.group))
        reason = "a member joined" if is_new else "the subscription of a member changed"
        is_moved = is_bumped or said.topic_regex != member.topic_regex
        if not resolves_patterns and patterns_of(draft.group):
            return self._maybe_begin_epoch_by_hash(draft, is_bumped, reason, now_ms)
        return self._maybe_begin_epoch(draft, is_bumped, is_moved, reason, now_ms, rights)

    def topics_may_have_changed(self, draft: Draft, now_ms: int) -> Draft:
        """Begin a new group epoch if subscribed topics have changed. Members that have patterns do this themselves."""
        if draft.group.memory.seen_topics is self._topics() or patterns_of(draft.group):
            return draft
        return self._maybe_begin_epoch(draft, False, False, "", now_ms, None)

    def _maybe_begin_epoch(
        self,
        draft: Draft,
        is_bumped: bool,
        is_moved: bool,
        reason: str,
        now_ms: int,
        rights: TopicRights | None,
        allowed: AllowedTopics = NOTHING_ALLOWED,
    ) -> Draft:
        """Begin a new group epoch if `is_bumped`, or if subscribed topics or the topics of patterns have changed.

        `is_moved`: the subscriptions of members have changed. `rights`: of the client that has sent the request, and
        `allowed`, what is known of them."""
        topics, memory = self._topics(), draft.group.memory
        are_rights_new = rights is not None and rights.acls is not memory.seen_acls
        if not is_moved and not are_rights_new and memory.seen_topics is topics:
            return draft  # nearly always; the rest of this method takes time for every member
        self._topic_changes.update(topics)
        has_other_rights = are_rights_new and bool(patterns_of(draft.group))
        is_concerned = is_moved or has_other_rights or self._topic_changes.concerns(draft.group)
        resolved: list[GroupRecord] | None = []
        if is_concerned:
            self._require_writable()
            resolved = resolved_records(draft.group, self._topic_changes, now_ms, rights, allowed)
        memory.seen_topics = None if resolved is None else topics
        memory.seen_acls = None if rights is None else rights.acls
        if not is_concerned:
            return draft
        before = draft.group.regex_topics
        if resolved is None:  # the next heartbeat asks again, unless the patterns are resolved by then
            draft = draft.with_effect(ResolvePatterns(draft.group.group_id, rights))
            return self._maybe_begin_epoch_by_hash(draft, is_bumped, reason, now_ms)
        draft = self._plus(draft, *resolved)
        are_patterns_resolved = any(
            found != before.get(name, frozenset()) for name, found in draft.group.regex_topics.items()
        )
        return self._maybe_begin_epoch_by_hash(draft, is_bumped or are_patterns_resolved, reason, now_ms)

    def resolve_patterns(self, wanted: ResolvePatterns) -> Computation[AllowedTopics]:
        """Resolve the patterns of a group in the background, for `patterns_resolved`."""
        group = self._groups.find_consumer(wanted.group_id)
        if group is None:
            return NOTHING_ALLOWED
        self._topic_changes.update(self._topics())
        return (yield from resolve_patterns(group, self._topic_changes, wanted.rights))

    def patterns_resolved(self, wanted: ResolvePatterns, allowed: AllowedTopics, now_ms: int) -> GroupResult:
        """Continue the heartbeat that asked for the resolution of patterns."""
        group = self._groups.find_consumer(wanted.group_id)
        if group is None:
            return CoordinatorResult()
        draft = self._maybe_begin_epoch(Draft(group), False, True, "", now_ms, wanted.rights, allowed)
        return self.maybe_assign(draft, now_ms).decided()

    def _maybe_begin_epoch_by_hash(self, draft: Draft, is_bumped: bool, reason: str, now_ms: int) -> Draft:
        metadata_hash = self._subscribed.hash_of(draft.group.subscribed_topics)
        if not is_bumped and metadata_hash == draft.group.metadata_hash:
            return draft
        return self._begin_epoch(draft, metadata_hash, reason or "subscribed topics changed", now_ms)

    def _begin_epoch(self, draft: Draft, metadata_hash: int, reason: str, now_ms: int) -> Draft:
        group = draft.group
        group.timeline.rebalance_started(now_ms, group.epoch + 1, reason, len(group.members))
        return self._plus(draft, records.epoch_record(group.group_id, group.epoch + 1, metadata_hash))

    def maybe_assign(self, draft: Draft, now_ms: int) -> Draft:
        """Compute the target of the group epoch, unless there is one, or the assignment interval is not over.

        Ask for the target of a large group: computing it takes many turns, and the members keep what they have."""
        group = draft.group
        interval_ms = self._timings(group.group_id).assignment_interval_ms
        is_too_soon = group.assigned_at_ms and interval_ms and now_ms < group.assigned_at_ms + interval_ms
        if group.target_epoch >= group.epoch or is_too_soon:
            return draft
        if not is_large(group, self._topics()):
            return self._plus(draft, *finished(compute(self._snapshot(group))).records(now_ms))
        self._require_writable()
        if group.memory.unstorable_epoch == group.epoch:
            text = f"The assignment of group {group.group_id} does not fit into a record."
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        return draft.with_effect(ComputeTarget(group.group_id))

    def snapshot(self, group_id: str) -> Snapshot | None:
        """Return what the new target of a group depends on, or None if it needs none by now."""
        group = self._groups.find_consumer(group_id)
        if group is None or not group.members or group.target_epoch >= group.epoch:
            return None
        return self._snapshot(group)

    def _snapshot(self, group: ConsumerGroup) -> Snapshot:
        assignor = group.preferred_assignor(group.members.values(), self._settings.assignors[0])
        return snapshot_of(group, assignor, self._topics())

    def install(self, target: NewTarget, now_ms: int) -> GroupResult:
        """Make a computed target that of its group, unless it is of no use any more (target_assignment)."""
        group = target.group
        if not target.is_for(self._groups.find_consumer(group.group_id)) or not group.members:
            return CoordinatorResult()

        def too_large(_: int) -> GroupResult:
            group.memory.unstorable_epoch = target.epoch
            return CoordinatorResult()

        return CoordinatorResult(list(target.records(now_ms)), is_divisible=True, if_too_large=too_large)

    def reconcile(
        self, draft: Draft, member_id: str, reported: Partitions | None, is_resubscribed: bool, now_ms: int
    ) -> Draft:
        """Take the member's next step towards its target assignment."""
        group, member = draft.group, draft.group.members[member_id]
        if not is_resubscribed and member.is_reconciled_to(group.target_epoch):
            return draft
        updated = reconciled(
            member,
            TargetAssignment(
                group.target_epoch,
                group.target_of(member),
                lambda: self._subscribed.ids_of(group.topics_of(member)),
            ),
            lambda partitions: group.free_for(member, partitions),
            reported,
            is_resubscribed,
        )
        if updated == member:
            return draft
        draft = self._plus(draft, records.current_record(group.group_id, updated))
        self.expect_revocation(draft.group, updated)
        if draft.group.is_stable:
            group.timeline.rebalance_completed(now_ms, group.epoch, len(group.members))
        return draft

    # -- leaving

    def _leave(self, heartbeat: Heartbeat, now_ms: int) -> GroupResult:
        request = heartbeat.request
        group = self._groups.find_consumer(request.group_id)
        if group is None:
            problem = self._groups.why_not_consumer(request.group_id) or f"Group {request.group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, problem)
        if request.instance_id is not None:
            check_instance(group, request.instance_id, request.member_id)
        member = group.member(request.member_id)
        self._require_writable()
        draft = Draft(group)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            kept = member._replace(epoch=STATIC_LEAVING_EPOCH, assignment_epochs=MappingProxyType({}))
            draft = self._plus(draft, records.current_record(group.group_id, kept.owning(kept.assigned, NOTHING)))
            _note(group, member, member.client, EventKind.LEFT, "a static member, expected back", now_ms)
        else:
            draft = self.remove(draft, [member], EventKind.LEFT, "", now_ms)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return draft.decided(response)

    def remove(
        self, draft: Draft, members: Iterable[ConsumerMember], kind: EventKind, reason: str, now_ms: int
    ) -> Draft:
        """Remove members. Those who stay get a new target with the next heartbeat of one of them."""
        tombstones: list[GroupRecord] = []
        for removed_count, member in enumerate(members):
            self.forget_timers(draft.group, member)
            _note(draft.group, member, member.client, kind, reason, now_ms, removed_count)
            tombstones += records.member_tombstones(draft.group.group_id, member.member_id)
        draft = self._plus(draft, *tombstones)
        draft = self._plus(draft, *unused_patterns(draft.group))
        downgraded = self._groups.downgraded_after_leave(draft, now_ms)
        if downgraded is not None:
            return downgraded
        metadata_hash = self._subscribed.hash_of(draft.group.subscribed_topics)
        draft = self._begin_epoch(draft, metadata_hash, reason or "a member left", now_ms)
        if not draft.group.members:
            draft.group.timeline.rebalance_completed(now_ms, draft.group.epoch, 0)
        return draft

    # -- over time

    def watch(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Renew the session of the member."""
        group_id, member_id = group.group_id, member.member_id
        self._timers.schedule(
            timer_key(SESSION, group, member),
            self.session_timeout_ms(group, member),
            lambda now_ms: self.expire(group_id, member_id, "did not heartbeat within its session", now_ms),
        )

    def expect_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Expect the member to revoke partitions within the rebalance timeout, which heartbeats do not extend.

        Members that use the classic protocol are expected to rejoin instead."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.classic is not None:
            self._timers.cancel(timer_key(REBALANCE, group, member))
            return
        group_id, member_id, epoch = group.group_id, member.member_id, member.epoch
        self._timers.schedule(
            timer_key(REBALANCE, group, member),
            max(member.rebalance_timeout_ms, 0),
            lambda now_ms: self.expire(group_id, member_id, "did not revoke its partitions in time", now_ms, epoch),
        )

    def session_timeout_ms(self, group: ConsumerGroup, member: ConsumerMember) -> int:
        classic = member.classic
        return self._timings(group.group_id).session_timeout_ms if classic is None else classic.session_timeout_ms

    def expire(self, group_id: str, member_id: str, reason: str, now_ms: int, epoch: int | None = None) -> GroupResult:
        """Remove the member, unless it is gone or, with `epoch`, has another epoch by now."""
        group = self._groups.find_consumer(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return CoordinatorResult()
        return self.remove(Draft(group), [member], EventKind.TIMED_OUT, reason, now_ms).decided()

    def forget_timers(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        for kind in (SESSION, REBALANCE, CLASSIC_JOIN, CLASSIC_SYNC):
            self._timers.cancel(timer_key(kind, group, member))

    # -- records

    def _plus(self, draft: Draft, *added: GroupRecord) -> Draft:
        """Return the draft with further records; raise KafkaError while nothing can be written."""
        if added:
            self._require_writable()
        return draft.plus(*added)

    def _require_writable(self) -> None:
        if not self._is_writable():
            text = "Too few replicas of the group's partition are in sync."
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)


def _note(
    group: ConsumerGroup,
    member: ConsumerMember,
    client: Client,
    kind: EventKind,
    reason: str,
    now_ms: int,
    removed_count: int = 0,
) -> None:
    """Tell the timeline of the group. `removed_count` members of the group have been removed before this one."""
    size = len(group.members) - removed_count
    group.timeline.member(now_ms, kind, group.epoch, reason, member.member_id, client, member.instance_id, size)


def timer_key(kind: str, group: ConsumerGroup, member: ConsumerMember) -> tuple[str, str, str]:
    return kind, group.group_id, member.member_id
