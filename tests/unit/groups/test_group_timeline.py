"""The timeline of a group: its events and their reasons."""

from consumer_lab import ConsumerLab, LabConsumer
from group_lab import SESSION_MS, GroupLab

from sskafka.groups.group import EVENTS_KEPT, EventKind, GroupEvent, Timeline
from sskafka.wire.messages.leave_group import MemberIdentity


def kinds(lab: GroupLab) -> list[str]:
    return [event.kind.value for event in lab.group.timeline]


def test_it_tells_who_came_and_went_and_how_long_the_rebalance_took() -> None:
    lab = GroupLab(initial_rebalance_delay_ms=3_000)
    joined = lab.join_fully(client_id="reader", reason="starting")
    lab.pass_time(3_000)
    lab.pass_time(500)
    lab.assign([joined.response.member_id])
    lab.leave(MemberIdentity(joined.response.member_id, reason="closing"))
    assert kinds(lab) == [
        "joined",
        "rebalance-started",
        "rebalance-completed",
        "left",
        "rebalance-started",
        "emptied",
    ]
    came, _, completed, left, *_ = lab.group.timeline
    assert (came.client_id, came.client_host, came.reason) == ("reader", "/127.0.0.1", "starting")
    assert (completed.duration_ms, completed.generation, completed.member_count) == (3_500, 1, 1)
    assert (left.reason, left.member_id) == ("closing", joined.response.member_id)


def test_it_tells_who_was_the_first_member_of_a_consumer_group() -> None:
    lab = ConsumerLab()
    LabConsumer(lab, "m").join()
    assert [event.kind.value for event in lab.consumers.timeline] == [
        "joined",
        "rebalance-started",
        "rebalance-completed",
    ]


def test_it_tells_who_was_not_heard_of() -> None:
    lab = GroupLab()
    leader, silent = lab.stable_group(2)
    lab.pass_time(SESSION_MS - 1)
    lab.heartbeat(leader, 1)
    lab.pass_time(2)
    timed_out = [event for event in lab.group.timeline if event.kind is EventKind.TIMED_OUT]
    assert [event.member_id for event in timed_out] == [silent]
    assert "session timeout" in timed_out[0].reason


def test_it_tells_who_was_fenced() -> None:
    lab = GroupLab()
    lab.join(instance_id="i")
    lab.join(instance_id="i")
    assert "fenced" in kinds(lab)


def test_a_new_coordinator_begins_a_new_story() -> None:
    lab = GroupLab()
    lab.stable_group(2)
    lab.fail_over()
    (loaded,) = lab.group.timeline
    assert (loaded.kind, loaded.member_count) == (EventKind.LOADED, 2)


def test_a_rebalance_that_begins_anew_is_timed_from_its_first_start() -> None:
    timeline = Timeline()
    timeline.rebalance_started(1_000, 1, "one", 1)
    timeline.rebalance_started(1_500, 1, "two", 1)
    timeline.rebalance_completed(3_000, 2, 1)
    assert [event.duration_ms for event in timeline] == [None, None, 2_000]


def test_it_is_bounded() -> None:
    timeline = Timeline()
    for at_ms in range(EVENTS_KEPT + 50):
        timeline.add(GroupEvent(at_ms, EventKind.JOINED, 0))
    assert len(timeline) == EVENTS_KEPT
    assert next(iter(timeline)).at_ms == 50
