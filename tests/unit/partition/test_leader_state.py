import pytest

from sskafka.partition.leader_state import REJECTED_PAUSE_MS, Leadership, LeaderState

LAG_MAX_MS = 10_000
REGISTERED = {1: 11, 2: 12, 3: 13}


def leader(
    isr: tuple[int, ...] = (1, 2, 3), epoch_start: int = 0, replicas: tuple[int, ...] = (1, 2, 3)
) -> LeaderState:
    return LeaderState(Leadership(1, 4, 7, replicas, isr), 1, epoch_start, LAG_MAX_MS, now_ms=0)


def fetch(state: LeaderState, replica: int, offset: int, end: int = 100, now_ms: float = 0, epoch: int = -1) -> None:
    state.followers[replica].fetched(offset, 0, epoch, end, now_ms)


def high_watermark(state: LeaderState, own: int = 100, end: int = 100, now_ms: float = 0) -> int:
    return state.high_watermark_candidate(own, end, REGISTERED.get, now_ms)


def expansion(state: LeaderState, replica: int, high_watermark: int = 50, now_ms: float = 0) -> tuple[int, ...] | None:
    change = state.plan_expand(replica, high_watermark, REGISTERED.get, 11, now_ms)
    return change.isr if change else None


# -- high watermark


def test_the_high_watermark_is_the_smallest_position_in_the_isr() -> None:
    state = leader()
    fetch(state, 2, 80)
    fetch(state, 3, 60)
    assert high_watermark(state) == 60


def test_the_high_watermark_waits_for_members_with_unknown_position() -> None:
    state = leader()
    fetch(state, 2, 80)
    assert high_watermark(state) == -1


def test_the_leaders_position_counts_too() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 2, 80)
    assert high_watermark(state, own=70) == 70


def test_leaving_members_count_until_the_change_is_committed() -> None:
    state = leader()
    fetch(state, 2, 100)
    fetch(state, 3, 10)
    shrink = state.plan_shrink(100, 11, now_ms=LAG_MAX_MS + 1)
    assert shrink is not None
    assert shrink.isr == (1, 2)
    state.isr.propose(shrink)
    assert high_watermark(state, now_ms=LAG_MAX_MS + 1) == 10
    state.isr.commit(shrink.isr, 8)
    assert high_watermark(state, now_ms=LAG_MAX_MS + 1) == 100


def test_joining_members_count_before_the_change_is_committed() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 2, 100)
    fetch(state, 3, 50)
    change = state.plan_expand(3, 50, REGISTERED.get, 11, now_ms=0)
    assert change is not None
    state.isr.propose(change)
    assert high_watermark(state, now_ms=2 * LAG_MAX_MS) == 50


def test_a_nearly_caught_up_replica_holds_the_high_watermark_back() -> None:
    """Else it would chase a busy leader for ever."""
    state = leader(isr=(1,), replicas=(1, 2))
    fetch(state, 2, 90, end=90, now_ms=1000)
    assert high_watermark(state, now_ms=2000) == 90
    assert high_watermark(state, now_ms=1001 + LAG_MAX_MS) == 100, "but not for ever"


def test_a_fenced_replica_does_not_hold_the_high_watermark_back() -> None:
    state = leader(isr=(1,), replicas=(1, 2))
    fetch(state, 2, 90, end=90, now_ms=1000)
    assert state.high_watermark_candidate(100, 100, lambda broker: None, 2000) == 100


@pytest.mark.parametrize(("isr", "min_insync", "enough"), [((1, 2), 2, True), ((1,), 2, False), ((1, 2, 3), 5, True)])
def test_min_insync_counts_the_committed_isr(isr: tuple[int, ...], min_insync: int, enough: bool) -> None:
    assert leader(isr=isr).has_enough_in_sync(min_insync) is enough


def test_a_pending_member_does_not_count_for_min_insync() -> None:
    state = leader(isr=(1,))
    fetch(state, 2, 50)
    change = state.plan_expand(2, 50, REGISTERED.get, 11, now_ms=0)
    assert change is not None
    state.isr.propose(change)
    assert not state.has_enough_in_sync(2)


# -- expanding


def test_a_follower_joins_at_the_high_watermark() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 3, 49)
    assert expansion(state, 3) is None
    fetch(state, 3, 50)
    assert expansion(state, 3) == (1, 2, 3)


def test_a_follower_joins_only_after_the_epoch_start_offset() -> None:
    """A new leader's high watermark is behind at first: below it there may be committed records."""
    state = leader(isr=(1, 2), epoch_start=70)
    fetch(state, 3, 69)
    assert expansion(state, 3) is None
    fetch(state, 3, 70)
    assert expansion(state, 3) == (1, 2, 3)


def test_a_restarted_or_fenced_broker_does_not_join() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 3, 100, epoch=12)
    assert expansion(state, 3) is None, "13 is registered"
    fetch(state, 3, 100, epoch=13)
    assert state.plan_expand(3, 50, lambda broker: None, 11, 0) is None
    assert expansion(state, 3) == (1, 2, 3)


def test_the_change_contains_the_epochs() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 2, 100, epoch=12)
    fetch(state, 3, 100, epoch=13)
    change = state.plan_expand(3, 50, REGISTERED.get, 11, 0)
    assert change is not None
    assert (change.leader_epoch, change.partition_epoch, change.broker_epochs) == (4, 7, (11, 12, 13))


def test_a_rejected_change_is_not_repeated_at_every_fetch() -> None:
    state = leader(isr=(1, 2))
    fetch(state, 3, 100)
    change = state.plan_expand(3, 50, REGISTERED.get, 11, now_ms=0)
    assert change is not None
    state.isr.propose(change)
    state.not_applied(change, now_ms=0)
    assert expansion(state, 3, now_ms=REJECTED_PAUSE_MS - 1) is None
    assert expansion(state, 3, now_ms=REJECTED_PAUSE_MS) == (1, 2, 3)


# -- shrinking


def test_no_replica_leaves_before_the_lag_time() -> None:
    assert leader().plan_shrink(100, 11, now_ms=LAG_MAX_MS) is None


def test_replicas_that_never_fetched_leave() -> None:
    change = leader().plan_shrink(100, 11, now_ms=LAG_MAX_MS + 1)
    assert change is not None
    assert change.isr == (1,)


def test_a_follower_with_nothing_to_fetch_does_not_lag() -> None:
    state = leader(isr=(1, 2), replicas=(1, 2))
    fetch(state, 2, 100)
    assert state.plan_shrink(100, 11, now_ms=99 * LAG_MAX_MS) is None


def test_a_member_that_is_no_longer_a_replica_leaves() -> None:
    state = leader()
    state.change_replicas((1, 2))
    fetch(state, 2, 100)
    change = state.plan_shrink(100, 11, now_ms=0)
    assert change is not None
    assert change.isr == (1, 2)


def test_replicas_that_stay_keep_their_progress() -> None:
    state = leader()
    fetch(state, 2, 80)
    state.change_replicas((1, 2, 4))
    assert state.followers[2].log_end_offset == 80
    assert set(state.followers) == {2, 4}
