"""Plans for replicas and leaders: what every plan keeps, how well it balances, and that it moves little."""

import time
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.client.balance.layout import BrokerSite, Layout, Move, PlacedPartition, PlanError, planned_seconds
from sskafka.client.balance.leaders import plan_drain, plan_leaders, undrainable
from sskafka.client.balance.replicas import BYTES_TOLERANCE, Goal, plan_decommission, plan_onto, plan_rebalance
from sskafka.model.ids import TopicPartition


@st.composite
def layouts(draw: st.DrawFn, *, racks: int = 3, partitions_max: int = 14, is_healthy: bool = False) -> Layout:
    """Clusters of up to six brokers. Unless healthy, some brokers are down or cordoned and some replicas are behind."""
    count = draw(st.integers(2, 6))
    brokers = {
        number: BrokerSite(
            number,
            draw(st.sampled_from([f"rack-{rack}" for rack in range(racks)])) if racks > 1 else None,
            is_healthy or draw(st.integers(0, 9)) > 0,
            not is_healthy and draw(st.integers(0, 9)) == 0,
        )
        for number in range(1, count + 1)
    }
    topics = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, min(3, count))), min_size=1, max_size=4))
    partitions = [
        draw(placed(brokers, TopicPartition(f"topic-{number}", index), factor))
        for number, (size, factor) in enumerate(topics)
        for index in range(size)
    ]
    return Layout(brokers, partitions[:partitions_max])


@st.composite
def placed(draw: st.DrawFn, brokers: dict[int, BrokerSite], partition: TopicPartition, factor: int) -> PlacedPartition:
    replicas = tuple(draw(st.permutations(sorted(brokers)))[:factor])
    live = [replica for replica in replicas if brokers[replica].is_live]
    isr = tuple(replica for replica in live if draw(st.integers(0, 9)) > 0) or tuple(live[:1])
    leader = draw(st.sampled_from(isr)) if isr else -1
    return PlacedPartition(partition, replicas, isr, leader, draw(st.integers(0, 1000)))


def check(layout: Layout, moves: list[Move]) -> Layout:
    """Check what every plan keeps; return the layout after it."""
    before = {one.partition: one for one in layout.partitions}
    assert len({move.partition for move in moves}) == len(moves)
    for move in moves:
        one = before[move.partition]
        assert move.before == one.replicas != move.after
        assert len(set(move.after)) == len(move.after) == len(one.replicas), "the replication factor is kept"
        assert layout.racks(move.after) >= layout.racks(move.before), "no rack is lost"
        assert all(layout.is_open(replica) for replica in move.added), "only open brokers get replicas"
        assert one.has_leader or not move.added, "there is somebody to copy from"
    after = layout.after(moves)
    for one in after.partitions:
        assert len(one.isr) >= len([replica for replica in before[one.partition].isr if replica in one.replicas])
    return after


@given(layouts(), st.sampled_from(Goal))
def test_a_rebalance_keeps_replication_factor_racks_and_in_sync_replicas(layout: Layout, goal: Goal) -> None:
    after = check(layout, plan_rebalance(layout, goal))
    assert plan_rebalance(after, goal) == [], "a balanced cluster stays as it is"


@given(layouts(racks=1, is_healthy=True))
def test_replicas_are_balanced_with_the_fewest_copies(layout: Layout) -> None:
    moves = plan_rebalance(layout, Goal.REPLICAS)
    before, after = layout.replica_counts(), check(layout, moves).replica_counts()
    counts = [after[broker] for broker in layout.brokers]
    assert max(counts) - min(counts) <= 1
    total, brokers = sum(counts), len(counts)
    least, larger = divmod(total, brokers)
    ranked = sorted((before[broker] for broker in layout.brokers), reverse=True)
    fewest = sum(max(0, count - least - (place < larger)) for place, count in enumerate(ranked))
    assert sum(len(move.added) for move in moves) <= fewest


@given(layouts(racks=1, is_healthy=True))
def test_bytes_are_balanced_unless_the_pieces_are_too_large(layout: Layout) -> None:
    after = check(layout, plan_rebalance(layout, Goal.BYTES))
    sizes = after.replica_bytes()
    mean = sum(sizes.values()) / len(layout.brokers)
    spread = max(sizes[broker] for broker in layout.brokers) - min(sizes[broker] for broker in layout.brokers)
    largest = max(one.size_bytes for one in layout.partitions)
    assert spread <= max(BYTES_TOLERANCE * mean, 2 * largest)
    before = layout.replica_bytes()
    assert sum(size**2 for size in sizes.values()) <= sum(size**2 for size in before.values())


def crowded(partitions: int, topics: int, size_bytes: int) -> Layout:
    """Six brokers, of which three have all replicas, as after three brokers were added."""
    sites = {number: BrokerSite(number) for number in range(1, 7)}
    orders = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    return Layout(
        sites,
        [
            PlacedPartition(
                TopicPartition(f"topic-{index % topics}", index // topics), orders[index % 3], (1, 2, 3), 1, size_bytes
            )
            for index in range(partitions)
        ],
    )


@pytest.mark.parametrize("topics", [1, 40])
@pytest.mark.parametrize("goal", [Goal.REPLICAS, Goal.BYTES])
def test_thousands_of_partitions_are_planned_in_a_few_seconds(goal: Goal, topics: int) -> None:
    layout = crowded(4_000, topics, 1_000_000)
    began_s = time.thread_time()
    moves = plan_rebalance(layout, goal)
    assert time.thread_time() - began_s < 10, "38 s were needed when every move looked at all partitions"
    counts = check(layout, moves).replica_counts()
    assert max(counts.values()) - min(counts.values()) <= 200, "a tenth of the mean of 2,000"
    assert sum(len(move.added) for move in moves) <= 6_000, "half of the replicas move, each once"


def test_bytes_of_many_small_partitions_are_balanced() -> None:
    layout = crowded(600, 1, 1_000_000)
    assert max(one.size_bytes for one in layout.partitions) < 0.01 * sum(layout.replica_bytes().values()) / 6
    sizes = check(layout, plan_rebalance(layout, Goal.BYTES)).replica_bytes()
    assert max(sizes.values()) - min(sizes.values()) <= BYTES_TOLERANCE * sum(sizes.values()) / 6


def test_small_partitions_stay_if_one_large_partition_makes_the_difference() -> None:
    sites = {number: BrokerSite(number) for number in (1, 2)}
    large = PlacedPartition(TopicPartition("large", 0), (1,), (1,), 1, 1_000_000_000)
    small = [PlacedPartition(TopicPartition("small", index), (1,), (1,), 1, 1_000) for index in range(50)]
    moves = plan_rebalance(Layout(sites, [large, *small]), Goal.BYTES)
    assert [move for move in moves if move.added] == []


@given(layouts(is_healthy=True, partitions_max=7))
@settings(max_examples=60)
def test_leaders_are_balanced_as_well_as_they_can_be(layout: Layout) -> None:
    moves = plan_leaders(layout)
    after = check(layout, moves)
    assert all(not move.added for move in moves), "nothing is copied"
    choices = [
        {one.replicas[0], *(replica for replica in one.replicas if replica in one.isr)} for one in layout.partitions
    ]
    best = min(max(Counter(leaders).values()) for leaders in product(*choices))
    assert max(after.preferred_counts().values()) == best


@given(layouts(), st.data())
def test_a_drained_broker_leads_only_what_nobody_else_can(layout: Layout, data: st.DataObject) -> None:
    drained = data.draw(st.sampled_from(sorted(layout.brokers)))
    after = check(layout, plan_drain(layout, drained))
    assert {one.partition: sorted(one.replicas) for one in after.partitions} == {
        one.partition: sorted(one.replicas) for one in layout.partitions
    }, "nothing is copied"
    others = layout.without(drained)
    for one in after.partitions:
        can_lead = [replica for replica in one.replicas if replica in one.isr and others.is_open(replica)]
        if drained in one.replicas and can_lead:
            assert one.replicas[0] in can_lead
            assert one.replicas[-1] == drained, "it is the last choice of every later election"
    left = {one.partition for one in after.partitions if one.leader == drained and one.replicas[0] == drained}
    assert left <= set(undrainable(layout, drained))


@given(layouts(), st.data())
def test_a_decommission_moves_what_the_broker_has_and_nothing_else(layout: Layout, data: st.DataObject) -> None:
    leaving = data.draw(st.sampled_from(sorted(layout.brokers)))
    try:
        moves = plan_decommission(layout, [leaving])
    except PlanError:
        check_impossible(layout, leaving)
        return
    after = layout.after(moves)
    assert {move.partition for move in moves} == {one.partition for one in layout.partitions if leaving in one.replicas}
    for move in moves:
        assert len(move.added) == 1, "the other replicas stay"
        assert len(set(move.after)) == len(move.before)
        assert layout.is_open(move.added[0])
        assert move.added[0] != leaving
        best = max(
            layout.racks([*(one for one in move.before if one != leaving), other])
            for other in layout.open_ids
            if other != leaving and other not in move.before
        )
        assert layout.racks(move.after) == best, "no other choice has more racks"
    assert after.replica_counts()[leaving] == 0


def check_impossible(layout: Layout, leaving: int) -> None:
    others = layout.without(leaving)
    assert any(
        leaving in one.replicas and (not one.has_leader or not set(others.open_ids) - set(one.replicas))
        for one in layout.partitions
    )


@given(layouts(), st.data())
def test_a_replica_is_dropped_only_if_no_other_broker_can_take_it(layout: Layout, data: st.DataObject) -> None:
    leaving = data.draw(st.sampled_from(sorted(layout.brokers)))
    try:
        moves = plan_decommission(layout, [leaving], allow_fewer=True)
    except PlanError:
        assert any(
            leaving in one.replicas and (not one.has_leader or len(one.replicas) == 1) for one in layout.partitions
        )
        return
    assert layout.after(moves).replica_counts()[leaving] == 0
    for move in moves:
        can_take = set(layout.without(leaving).open_ids) - set(move.before)
        assert len(move.after) == len(move.before) - (0 if can_take else 1) > 0


@given(st.integers(3, 6), st.integers(1, 40), st.integers(1, 100))
def test_what_a_broker_leaves_is_spread_evenly(brokers: int, partitions: int, size: int) -> None:
    """With one replica each, so that every broker can take every partition."""
    sites = {number: BrokerSite(number) for number in range(1, brokers + 1)}
    layout = Layout(
        sites,
        [
            PlacedPartition(
                TopicPartition("t", index), (index % brokers + 1,), (index % brokers + 1,), index % brokers + 1, size
            )
            for index in range(partitions)
        ],
    )
    after = layout.after(plan_decommission(layout, [brokers]))
    counts = [after.replica_counts()[number] for number in range(1, brokers)]
    assert max(counts) - min(counts) <= 1
    leaders = [after.preferred_counts()[number] for number in range(1, brokers)]
    assert max(leaders) - min(leaders) <= 1


@given(layouts(is_healthy=True), st.data())
def test_a_plan_onto_some_brokers_uses_only_these(layout: Layout, data: st.DataObject) -> None:
    factor = max(len(one.replicas) for one in layout.partitions)
    chosen = data.draw(
        st.lists(st.sampled_from(sorted(layout.brokers)), unique=True, min_size=min(factor, len(layout.brokers)))
    )
    if len(chosen) < factor:
        return
    moves = plan_onto(layout, chosen, Goal.REPLICAS)
    used = {replica for one in layout.after(moves).partitions for replica in one.replicas}
    assert used <= set(chosen)


def test_too_few_brokers_are_named() -> None:
    sites = {number: BrokerSite(number) for number in (1, 2)}
    layout = Layout(sites, [PlacedPartition(TopicPartition("t", 0), (1, 2), (1, 2), 1)])
    with pytest.raises(PlanError, match="t-0 has 2 replicas, and only 1 brokers can have them"):
        plan_decommission(layout, [2])


def test_the_slowest_broker_decides_how_long_a_plan_takes() -> None:
    moves = [
        Move(TopicPartition("t", 0), (1, 2), (1, 3), 1, 600),
        Move(TopicPartition("t", 1), (1, 2), (1, 4), 1, 300),
        Move(TopicPartition("t", 2), (2, 1), (2, 3), 2, 500),
    ]
    assert planned_seconds(moves, 100) == pytest.approx(11)  # broker 3 receives 1,100 bytes
    assert sum(move.copied_bytes for move in moves) == 1400
