"""Sets of partitions as bit masks behave as ordinary sets, for any index that a client can name."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.groups.dealing import Dealer
from sskafka.groups.partition_set import BLOCK, MutablePartitionSet, PartitionSet

TOPICS = [bytes([number]) * 16 for number in range(3)]
Partition = tuple[bytes, int]

near = st.integers(0, 40) | st.integers(BLOCK - 20, BLOCK + 20)
indexes = near | st.integers(-(1 << 31), (1 << 31) - 1)
partitions = st.frozensets(st.tuples(st.sampled_from(TOPICS), indexes), max_size=60)


def ranges(draw_from: Iterable[int]) -> frozenset[Partition]:
    return frozenset((TOPICS[0], index) for index in draw_from)


@settings(deadline=None)
@given(partitions, partitions)
def test_operations_give_what_those_of_frozensets_give(one: frozenset[Partition], two: frozenset[Partition]) -> None:
    left, right = PartitionSet.of(one), PartitionSet.of(two)
    assert list(left) == sorted(one)
    assert len(left) == len(one)
    assert bool(left) == bool(one)
    assert left | right == one | two
    assert left & right == one & two
    assert left - right == one - two
    assert (left == right) == (one == two)
    assert (left <= right) == (one <= two)
    assert left & right <= left
    assert left.isdisjoint(right) == one.isdisjoint(two)
    assert all((item in left) == (item in one) for item in one | two)


@settings(deadline=None)
@given(partitions, st.integers(0, 70))
def test_parts_of_a_set(some: frozenset[Partition], count: int) -> None:
    whole = PartitionSet.of(some)
    assert whole.first(count) == frozenset(sorted(some)[:count])
    assert whole.in_topics({TOPICS[1]}) == {item for item in some if item[0] == TOPICS[1]}
    assert PartitionSet.of_topics(whole.by_topic()) == whole


@settings(deadline=None)
@given(st.lists(indexes, max_size=50), st.integers(0, 3 * BLOCK), st.integers(0, 3 * BLOCK))
def test_indexes_in_any_order_and_ranges(some: list[int], start: int, stop: int) -> None:
    assert PartitionSet.of_topics([(TOPICS[0], some)]) == ranges(some)
    made = MutablePartitionSet()
    made.add_range(TOPICS[0], start, stop)
    assert made.frozen() == ranges(range(start, stop))


@settings(deadline=None)
@given(partitions, st.lists(st.tuples(st.booleans(), partitions), max_size=5))
def test_a_set_that_changes(first: frozenset[Partition], changes: list[tuple[bool, frozenset[Partition]]]) -> None:
    expected = set(first)
    made = MutablePartitionSet(dict(PartitionSet.of(first).masks()))
    for is_added, some in changes:
        if is_added:
            made.update(PartitionSet.of(some))
            expected |= some
        else:
            made.remove(PartitionSet.of(some))
            expected -= some
        assert made.frozen() == expected
        assert bool(made) == bool(expected), "no empty block is left"
        assert made.common(PartitionSet.of(some)) == expected & some


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), partitions)
def test_partitions_are_dealt_one_by_one_to_the_member_with_the_fewest(
    loads: list[int], some: frozenset[Partition]
) -> None:
    expected: list[set[Partition]] = [set() for _ in loads]
    counts = list(loads)
    for item in sorted(some):
        rank = counts.index(min(counts))
        expected[rank].add(item)
        counts[rank] += 1
    assert Dealer(loads).dealt(PartitionSet.of(some)) == expected
