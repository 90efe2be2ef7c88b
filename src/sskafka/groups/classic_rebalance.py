"""How a classic group gets from one generation to the next, and how it notices that members have died.

    prepare ──► members join again ──► complete_join ──► leader assigns ──► complete_sync
       ▲            │ time is over: who is missing is dropped     │ time is over: who did not ask is dropped
       └────────────┴───────────────────────────────────────────────┘

Timers, one of a kind for each group or member, all of which end when what they watch is over:

    join       the first rebalance waits for further members; later ones for members that are missing
    sync       members of a new generation must ask for their assignments
    session    a member must heartbeat; while its request is parked here, waiting counts as a heartbeat

A member's parked JoinGroup or SyncGroup is always answered: with the outcome, or with why there is none.
"""

from collections.abc import Mapping

from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.classic_member import ClassicMember
from sskafka.groups.group import Group
from sskafka.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from sskafka.groups.log_records import GroupDecision, group_record
from sskafka.groups.timeline import EventKind, GroupEvent
from sskafka.model.coordination import Respond, Timers
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from sskafka.wire.messages.sync_group import SyncGroupResponse


class ClassicRebalance:
    def __init__(self, groups: Mapping[str, Group], settings: GroupSettings, timers: Timers) -> None:
        self._groups = groups
        self._settings = settings
        self._timers = timers

    # -- from members joining to a new generation

    def prepare_or_complete(self, group: ClassicGroup, reason: str, decision: GroupDecision, now_ms: int) -> None:
        """Something has changed: begin a rebalance, or see whether the one under way can go on."""
        if group.state is State.PREPARING:
            self.maybe_complete_join(group, decision, now_ms)
        else:
            self.prepare(group, reason, decision, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, decision: GroupDecision, now_ms: int) -> None:
        if group.state is State.COMPLETING:
            self._refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, decision)
        self._timers.cancel(_sync_key(group))
        is_first = group.state is State.EMPTY
        group.transition_to(State.PREPARING, now_ms)
        group.timeline.rebalance_started(now_ms, group.generation, reason, len(group.members))
        if is_first:
            group.was_joined_lately = False
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._wait_for_first_members(group, delay_ms, max(0, group.rebalance_timeout_ms - delay_ms))
        else:
            self._complete_or_wait(group, decision, now_ms)

    def maybe_complete_join(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        """The first rebalance of a group waits for its time, even if everybody known has come."""
        if group.state is State.PREPARING and group.have_all_joined and group.previous_state is not State.EMPTY:
            self._complete_join(group, decision, now_ms)

    def _wait_for_first_members(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> None:
        """As long as members keep coming, and the time for a rebalance is not over, wait for more."""

        def due(now_ms: int) -> GroupDecision:
            decision = _unreplayed()
            if not self._is_current(group) or group.state is not State.PREPARING:
                return decision
            if group.was_joined_lately and left_ms > 0:
                group.was_joined_lately = False
                next_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
                self._wait_for_first_members(group, next_ms, max(0, left_ms - delay_ms))
            else:
                self._complete_join(group, decision, now_ms)
            return decision

        self._timers.schedule(_join_key(group), delay_ms, due)

    def _complete_or_wait(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        if group.have_all_joined:
            self._complete_join(group, decision, now_ms)
        else:
            self._wait_for_missing(group)

    def _wait_for_missing(self, group: ClassicGroup) -> None:
        def due(now_ms: int) -> GroupDecision:
            decision = _unreplayed()
            if self._is_current(group) and group.state is State.PREPARING:
                self._complete_join(group, decision, now_ms)
            return decision

        self._timers.schedule(_join_key(group), group.rebalance_timeout_ms, due)

    def _complete_join(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        self._timers.cancel(_join_key(group))
        self._drop_missing(group, now_ms)
        if group.members and not group.elect_joined_leader():
            self._wait_for_missing(group)  # static members alone, none of which has come back yet
            return
        group.begin_generation(now_ms)
        if not group.members:
            self._become_empty(group, decision, now_ms)
            return
        for member in group.members.values():
            if member.awaiting_join is not None:
                self._answer_joined(group, member, decision)
        self._wait_for_syncs(group)

    def _drop_missing(self, group: ClassicGroup, now_ms: int) -> None:
        """Static members are expected back: only their session timeout ends their membership."""
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                self._forget(group, member)
                note_member(
                    group, member, EventKind.TIMED_OUT, "did not join again within the rebalance timeout", now_ms
                )

    def _become_empty(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        group.timeline.rebalance_completed(now_ms, group.generation, 0)
        decision.records.append(group_record(group.group_id, group.to_value()))

    def _answer_joined(self, group: ClassicGroup, member: ClassicMember, decision: GroupDecision) -> None:
        answer_join(member, joined_response(group, member), decision)
        member.is_new = False
        group.pending_sync.add(member.member_id)
        self.renew_session(group, member)

    # -- from a new generation to its assignments

    def _wait_for_syncs(self, group: ClassicGroup) -> None:
        generation = group.generation

        def due(now_ms: int) -> GroupDecision:
            decision = _unreplayed()
            if self._is_current(group) and group.generation == generation and group.pending_sync:
                self._drop_unsynced(group, decision, now_ms)
            return decision

        self._timers.schedule(_sync_key(group), group.rebalance_timeout_ms, due)

    def _drop_unsynced(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        for member_id in list(group.pending_sync):
            member = group.members[member_id]
            self._forget(group, member)
            note_member(group, member, EventKind.TIMED_OUT, "did not ask for its assignment", now_ms)
        self.prepare_or_complete(group, "members did not ask for their assignments", decision, now_ms)

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """A member of this generation has asked for its assignment."""
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._timers.cancel(_sync_key(group))

    def complete_sync(
        self, group: ClassicGroup, assignments: Mapping[str, bytes], decision: GroupDecision, now_ms: int
    ) -> None:
        """The leader has assigned; whoever it left out gets nothing to do."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.transition_to(State.STABLE, now_ms)
        record = group_record(group.group_id, group.to_value())
        if len(record.value or b"") > self._settings.record_bytes_max:
            self._refuse_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR, decision)
            self.prepare(group, "the assignment is too large to be kept", decision, now_ms)
            return
        decision.records.append(record)
        group.timeline.rebalance_completed(now_ms, group.generation, len(group.members))
        for member in group.members.values():
            if member.awaiting_sync is not None:
                answer_sync(member, synced_response(group, member), decision)
                self.renew_session(group, member)

    def _refuse_syncs(self, group: ClassicGroup, error: ErrorCode, decision: GroupDecision) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                answer_sync(member, SyncGroupResponse(error_code=error), decision)
                self.renew_session(group, member)

    # -- sessions

    def renew_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        self._timers.schedule(
            _session_key(group, member.member_id), timeout_ms, lambda now_ms: self._expire_member(group, member, now_ms)
        )

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        """Nobody goes by this id any more."""
        self._timers.cancel(_session_key(group, member_id))

    def _expire_member(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> GroupDecision:
        decision = _unreplayed()
        is_there = self._is_current(group) and group.members.get(member.member_id) is member
        if not is_there or (member.is_waiting and not member.is_new):
            return decision
        reason = f"was not heard of for {member.session_timeout_ms} ms (session timeout)"
        self.remove(group, member, EventKind.TIMED_OUT, reason, decision, now_ms)
        self.after_removal(group, f"{member.client.client_id} {reason}", decision, now_ms)
        return decision

    def expect_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """An id was given out: its member must come back with it."""

        def due(now_ms: int) -> GroupDecision:
            decision = _unreplayed()
            if self._is_current(group) and member_id in group.pending_members:
                group.pending_members.discard(member_id)
                self.maybe_complete_join(group, decision, now_ms)
            return decision

        group.pending_members.add(member_id)
        self._timers.schedule(_session_key(group, member_id), session_timeout_ms, due)

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_members.discard(member_id)
        self.end_session(group, member_id)

    # -- the end of memberships

    def remove(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        kind: EventKind,
        reason: str,
        decision: GroupDecision,
        now_ms: int,
    ) -> None:
        """Whatever the member waits for is answered: it must not hang on what goes on without it."""
        answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), decision)
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), decision)
        self._forget(group, member)
        note_member(group, member, kind, reason, now_ms)

    def after_removal(self, group: ClassicGroup, reason: str, decision: GroupDecision, now_ms: int) -> None:
        if group.state in {State.STABLE, State.COMPLETING}:
            self.prepare(group, reason, decision, now_ms)
        else:
            self.maybe_complete_join(group, decision, now_ms)

    def _forget(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.remove_member(member.member_id)
        self.end_session(group, member.member_id)

    def forget_group(self, group: ClassicGroup) -> None:
        """The group was deleted: none of its timers may go off."""
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))
        for member_id in [*group.members, *group.pending_members]:
            self.end_session(group, member_id)

    # -- a new coordinator

    def resume(self, group: ClassicGroup, decision: GroupDecision, now_ms: int) -> None:
        """The group comes from the log: its members have a session timeout to find this coordinator."""
        for member in group.members.values():
            self.renew_session(group, member)
        group.timeline.add(
            GroupEvent(now_ms, EventKind.LOADED, group.generation, "new coordinator", member_count=len(group.members))
        )
        if len(group.members) > self._settings.group_size_max:
            self.prepare(group, "the group has more members than group.max.size", decision, now_ms)

    def _is_current(self, group: ClassicGroup) -> bool:
        return self._groups.get(group.group_id) is group


def joined_response(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """What a member learns of its generation; the leader also learns who the others are."""
    is_leader = group.is_leader(member.member_id)
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=joined_members(group) if is_leader else [],
    )


def joined_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(group.protocol_name))
        for member in group.members.values()
    ]


def synced_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def answer_join(member: ClassicMember, response: JoinGroupResponse, decision: GroupDecision) -> None:
    completion, member.awaiting_join = member.awaiting_join, None
    if completion is not None:
        decision.effects.append(Respond(completion, response))


def answer_sync(member: ClassicMember, response: SyncGroupResponse, decision: GroupDecision) -> None:
    completion, member.awaiting_sync = member.awaiting_sync, None
    if completion is not None:
        decision.effects.append(Respond(completion, response))


def refuse_parked(member: ClassicMember, error: ErrorCode, decision: GroupDecision) -> None:
    answer_join(member, JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name=""), decision)
    answer_sync(member, SyncGroupResponse(error_code=error), decision)


def _session_key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return "session", group.group_id, member_id


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return "join", group.group_id


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return "sync", group.group_id


def _unreplayed() -> GroupDecision:
    """The group changes as it is decided; its record only writes down what it is."""
    return GroupDecision(is_replayed=False)


def note_member(group: ClassicGroup, member: ClassicMember, kind: EventKind, reason: str, now_ms: int) -> None:
    group.timeline.add(
        GroupEvent(
            now_ms,
            kind,
            group.generation,
            reason,
            member.member_id,
            member.client.client_id,
            member.client.host,
            member.instance_id,
            len(group.members),
        )
    )
