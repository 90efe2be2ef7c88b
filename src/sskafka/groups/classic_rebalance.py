"""Rebalances of a classic group, and the sessions of its members.

    prepare ──► members rejoin ──► complete_join ──► leader assigns ──► complete_sync
       ▲            │ timeout: missing members are dropped     │ timeout: members without SyncGroup are dropped
       └────────────┴───────────────────────────────────────────────┘

Timers, one of each kind for each group or member:

    join       the first rebalance waits for further members; later ones wait for members that have not rejoined
    sync       members of a new generation must send SyncGroup
    session    a member must heartbeat, except while one of its requests is parked

A parked JoinGroup or SyncGroup always gets a response: the result, or an error. The decision that responds removes the
request from the member at once, so it is answered only once.

This module changes soft state (see classic_group) and timers. The state in the log changes by the records of decisions:
at the end of `complete_sync` and `_become_empty`.
"""

from collections.abc import Iterable, Mapping

from sskafka.groups.classic_group import ClassicGroup, State, StaticReplacement
from sskafka.groups.group import EventKind, Group, GroupEvent
from sskafka.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from sskafka.groups.log_records import GroupResult, group_record
from sskafka.groups.members import ClassicMember
from sskafka.model.coordination import CoordinatorResult, Respond, Timers
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from sskafka.wire.messages.sync_group import SyncGroupResponse


class ClassicRebalance:
    def __init__(self, groups: Mapping[str, Group], settings: GroupSettings, timers: Timers) -> None:
        self._groups = groups
        self._settings = settings
        self._timers = timers

    # -- from members joining to a new generation

    def prepare_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        """Start a rebalance because of a change, or check whether the one in progress can complete."""
        if group.state is State.PREPARING:
            return self.maybe_complete_join(group, now_ms)
        return self.prepare(group, reason, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        decision: GroupResult = CoordinatorResult()
        if group.state is State.COMPLETING:
            decision = CoordinatorResult(effects=self._refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS))
        self._timers.cancel(_sync_key(group))
        is_first = group.state is State.EMPTY
        group.transition_to(State.PREPARING, now_ms)
        group.timeline.rebalance_started(now_ms, group.generation, reason, len(group.members))
        if not is_first:
            return decision + self._complete_or_wait(group, now_ms)
        group.was_joined_lately = False
        delay_ms = self._settings.initial_rebalance_delay_ms
        self._wait_for_first_members(group, delay_ms, max(0, group.rebalance_timeout_ms - delay_ms))
        return decision

    def maybe_complete_join(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """Complete the join phase if all members have rejoined. The first rebalance always waits for its delay."""
        if group.state is State.PREPARING and group.have_all_joined and group.previous_state is not State.EMPTY:
            return self._complete_join(group, now_ms)
        return CoordinatorResult()

    def _wait_for_first_members(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> None:
        """Extend the first rebalance as long as new members join, up to the rebalance timeout."""

        def due(now_ms: int) -> GroupResult:
            if not self._is_current(group) or group.state is not State.PREPARING:
                return CoordinatorResult()
            if not group.was_joined_lately or left_ms <= 0:
                return self._complete_join(group, now_ms)
            group.was_joined_lately = False
            next_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._wait_for_first_members(group, next_ms, max(0, left_ms - delay_ms))
            return CoordinatorResult()

        self._timers.schedule(_join_key(group), delay_ms, due)

    def _complete_or_wait(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        if group.have_all_joined:
            return self._complete_join(group, now_ms)
        self._wait_for_missing(group)
        return CoordinatorResult()

    def _wait_for_missing(self, group: ClassicGroup) -> None:
        def due(now_ms: int) -> GroupResult:
            is_waiting = self._is_current(group) and group.state is State.PREPARING
            return self._complete_join(group, now_ms) if is_waiting else CoordinatorResult()

        self._timers.schedule(_join_key(group), group.rebalance_timeout_ms, due)

    def _complete_join(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        self._timers.cancel(_join_key(group))
        self._drop_missing(group, now_ms)
        if not group.members:
            return self._become_empty(group, now_ms)
        if not group.elect_joined_leader():
            self._wait_for_missing(group)  # only static members, none of which has rejoined yet
            return CoordinatorResult()
        group.begin_generation(now_ms)
        joined = [member for member in group.members.values() if member.awaiting_join is not None]
        effects = [response for member in joined for response in self._answer_joined(group, member)]
        self._wait_for_syncs(group)
        return CoordinatorResult(effects=effects)

    def _drop_missing(self, group: ClassicGroup, now_ms: int) -> None:
        """Drop members that have not rejoined. Static members stay until their session times out."""
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                self._forget(group, member)
                note_member(
                    group, member, EventKind.TIMED_OUT, "did not join again within the rebalance timeout", now_ms
                )

    def _become_empty(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        value = group.emptied_value(now_ms)
        group.timeline.rebalance_completed(now_ms, value.generation, 0)
        return CoordinatorResult([group_record(group.group_id, value)])

    def _answer_joined(self, group: ClassicGroup, member: ClassicMember) -> list[Respond]:
        effects = answer_join(member, joined_response(group, member))
        member.is_new = False
        group.pending_sync.add(member.member_id)
        self.renew_session(group, member)
        return effects

    # -- from a new generation to its assignments

    def _wait_for_syncs(self, group: ClassicGroup) -> None:
        generation = group.generation

        def due(now_ms: int) -> GroupResult:
            is_waiting = self._is_current(group) and group.generation == generation and group.pending_sync
            return self._drop_unsynced(group, now_ms) if is_waiting else CoordinatorResult()

        self._timers.schedule(_sync_key(group), group.rebalance_timeout_ms, due)

    def _drop_unsynced(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        for member_id in list(group.pending_sync):
            member = group.members[member_id]
            self._forget(group, member)
            note_member(group, member, EventKind.TIMED_OUT, "sent no SyncGroup in time", now_ms)
        return self.prepare_or_complete(group, "members did not ask for their assignments", now_ms)

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Called when a member of this generation has sent SyncGroup."""
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._timers.cancel(_sync_key(group))

    def complete_sync(self, group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> GroupResult:
        """Respond to SyncGroup: the leader has assigned. The group becomes stable when the record is replayed."""
        record = group_record(group.group_id, group.assigned_value(assignments, now_ms))
        group.timeline.rebalance_completed(now_ms, group.generation, len(group.members))
        waiting = [member for member in group.members.values() if member.awaiting_sync is not None]
        effects: list[Respond] = []
        for member in waiting:
            effects += answer_sync(member, synced_response(group, assignments.get(member.member_id, b"")))
            self.renew_session(group, member)

        def if_too_large(now_ms: int) -> GroupResult:
            failed = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            refused: GroupResult = CoordinatorResult(effects=[Respond(effect.completion, failed) for effect in effects])
            return refused + self.prepare(group, "the assignment is too large for a batch", now_ms)

        return CoordinatorResult([record], effects=effects, if_too_large=if_too_large)

    def _refuse_syncs(self, group: ClassicGroup, error: ErrorCode) -> list[Respond]:
        effects: list[Respond] = []
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                effects += answer_sync(member, SyncGroupResponse(error_code=error))
                self.renew_session(group, member)
        return effects

    # -- sessions

    def renew_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        self._timers.schedule(
            _session_key(group, member.member_id), timeout_ms, lambda now_ms: self._expire_member(group, member, now_ms)
        )

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        """Cancel the session timer of a member id that is no longer used."""
        self._timers.cancel(_session_key(group, member_id))

    def _expire_member(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> GroupResult:
        is_there = self._is_current(group) and group.members.get(member.member_id) is member
        if not is_there or (member.is_waiting and not member.is_new):
            return CoordinatorResult()
        reason = f"sent no heartbeat for {member.session_timeout_ms} ms (session timeout)"
        removed = self.remove(group, member, EventKind.TIMED_OUT, reason, now_ms)
        return removed + self.after_removal(group, f"{member.client.client_id} {reason}", now_ms)

    def expect_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Expect a member to join with the id that was handed out."""

        def due(now_ms: int) -> GroupResult:
            if not self._is_current(group) or member_id not in group.pending_members:
                return CoordinatorResult()
            group.pending_members.discard(member_id)
            return self.maybe_complete_join(group, now_ms)

        group.pending_members.add(member_id)
        self._timers.schedule(_session_key(group, member_id), session_timeout_ms, due)

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_members.discard(member_id)
        self.end_session(group, member_id)

    def static_member_replaced(self, group: ClassicGroup, replacement: StaticReplacement) -> None:
        """Move the session to the new id, and tell the timeline. The group has the new member already."""
        old, member, reason, now_ms = replacement
        self.end_session(group, old.member_id)
        self.renew_session(group, member)
        note_member(group, old, EventKind.FENCED, "its instance id was taken over", now_ms)
        note_member(group, member, EventKind.JOINED, reason, now_ms)

    # -- the end of memberships

    def remove(
        self, group: ClassicGroup, member: ClassicMember, kind: EventKind, reason: str, now_ms: int
    ) -> GroupResult:
        """Remove a member, and respond to its parked requests with UNKNOWN_MEMBER_ID."""
        effects = answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        effects += answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        self._forget(group, member)
        note_member(group, member, kind, reason, now_ms)
        return CoordinatorResult(effects=effects)

    def after_removal(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        if group.state in {State.STABLE, State.COMPLETING}:
            return self.prepare(group, reason, now_ms)
        return self.maybe_complete_join(group, now_ms)

    def _forget(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.remove_member(member.member_id)
        self.end_session(group, member.member_id)

    def forget_group(self, group: ClassicGroup) -> None:
        """Cancel all timers of a deleted group."""
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))
        for member_id in [*group.members, *group.pending_members]:
            self.end_session(group, member_id)

    # -- a new coordinator

    def resume(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """Start the sessions of a group that was loaded from the log. Members have one session timeout to reconnect."""
        for member in group.members.values():
            self.renew_session(group, member)
        group.timeline.add(
            GroupEvent(now_ms, EventKind.LOADED, group.generation, "new coordinator", member_count=len(group.members))
        )
        if len(group.members) > self._settings.group_size_max:
            return self.prepare(group, "the group has more members than group.max.size", now_ms)
        return CoordinatorResult()

    def _is_current(self, group: ClassicGroup) -> bool:
        return self._groups.get(group.group_id) is group


def joined_response(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """Return the response to JoinGroup. That of the leader also lists the members."""
    is_leader = group.is_leader(member.member_id)
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=joined_members(group.members.values(), group.protocol_name) if is_leader else [],
    )


def joined_members(members: Iterable[ClassicMember], protocol_name: str | None) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(protocol_name))
        for member in members
    ]


def synced_response(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def answer_join(member: ClassicMember, response: JoinGroupResponse) -> list[Respond]:
    """Take the member's parked JoinGroup, if it has one, and answer it."""
    completion, member.awaiting_join = member.awaiting_join, None
    return [] if completion is None else [Respond(completion, response)]


def answer_sync(member: ClassicMember, response: SyncGroupResponse) -> list[Respond]:
    """Take the member's parked SyncGroup, if it has one, and answer it."""
    completion, member.awaiting_sync = member.awaiting_sync, None
    return [] if completion is None else [Respond(completion, response)]


def refuse_parked(member: ClassicMember, error: ErrorCode) -> list[Respond]:
    joined = JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name="")
    return answer_join(member, joined) + answer_sync(member, SyncGroupResponse(error_code=error))


def _session_key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return "session", group.group_id, member_id


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return "join", group.group_id


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return "sync", group.group_id


def note_member(group: ClassicGroup, member: ClassicMember, kind: EventKind, reason: str, now_ms: int) -> None:
    name, size = member.member_id, len(group.members)
    group.timeline.member(now_ms, kind, group.generation, reason, name, member.client, member.instance_id, size)
