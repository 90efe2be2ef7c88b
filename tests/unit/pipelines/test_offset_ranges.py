import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.offsets import (
    OffsetRange,
    cut_ranges,
    from_json,
    group_ranges,
    ids_in,
    limited,
    lost_ranges,
    of_other_topics,
    parse_assignment,
    parse_offsets,
    ranges_between,
    split_ranges,
    to_json,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(min_value=0, max_value=20))
offset_maps = st.dictionaries(partitions, st.integers(min_value=0, max_value=1 << 40), max_size=12)
range_lists = st.dictionaries(
    partitions, st.tuples(st.integers(0, 1000), st.integers(1, 5000)), min_size=1, max_size=12
).map(lambda of: [OffsetRange(partition, start, start + count) for partition, (start, count) in of.items()])


@given(offset_maps)
def test_json_and_back(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


def test_json_is_in_order_because_spark_compares_its_text() -> None:
    assert json.dumps(to_json({B0: 1, A1: 2, A0: 3})) == '{"a": {"0": 3, "1": 2}, "b": {"0": 1}}'


@pytest.mark.parametrize(
    "text", ["", "latest", "[1]", '{"a": 3}', '{"a": {"x": 3}}', '{"a": {"0": "3"}}', '{"a": {"0": true}}']
)
def test_offsets_that_cannot_be_read_name_their_option(text: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        parse_offsets("startingOffsets", text)


@pytest.mark.parametrize("text", ["", "a", '{"a": 3}', '{"a": ["x"]}'])
def test_assignments_that_cannot_be_read(text: str) -> None:
    with pytest.raises(OptionError, match="assign"):
        parse_assignment("assign", text)


def test_assignments() -> None:
    assert parse_assignment("assign", '{"b": [0], "a": [1, 0]}') == [A0, A1, B0]


@given(offset_maps, st.integers(min_value=1, max_value=10_000))
def test_a_limit_lets_every_partition_move_and_none_beyond_its_end(end: dict[TopicPartition, int], limit: int) -> None:
    start = dict.fromkeys(end, 0)
    chosen = limited(start, end, limit)
    assert all(chosen[one] <= end[one] for one in end)
    assert all(chosen[one] > 0 for one in end if end[one] > 0)
    assert sum(chosen.values()) <= limit + len(end)


def test_a_limit_above_what_waits_changes_nothing() -> None:
    assert limited({A0: 5}, {A0: 10, A1: 3}, 8) == {A0: 10, A1: 3}


def test_a_limit_hides_no_partition_that_is_shorter_than_it_was() -> None:
    assert limited({A0: 0, A1: 50}, {A0: 100, A1: 7}, 10) == {A0: 10, A1: 7}


def test_ranges_leave_out_what_is_empty() -> None:
    assert ranges_between({A0: 5, A1: 7, B0: 0}, {A0: 5, A1: 9, B0: 3}) == [
        OffsetRange(A1, 7, 9),
        OffsetRange(B0, 0, 3),
    ]


@given(range_lists, st.integers(min_value=1, max_value=40))
def test_split_ranges_cover_the_same_offsets(ranges: list[OffsetRange], parts: int) -> None:
    pieces = split_ranges(ranges, parts)
    for whole in ranges:
        of_it = sorted(piece for piece in pieces if piece.partition == whole.partition)
        assert [piece.start for piece in of_it[1:]] == [piece.end for piece in of_it[:-1]]
        assert (of_it[0].start, of_it[-1].end) == (whole.start, whole.end)


def test_split_ranges_are_of_similar_size() -> None:
    pieces = split_ranges([OffsetRange(A0, 0, 900), OffsetRange(A1, 0, 100)], 10)
    assert len(pieces) == 10
    assert {piece.size for piece in pieces} == {100}


@given(range_lists, st.integers(min_value=0, max_value=10_000))
def test_grouped_ranges_are_the_same_ranges(ranges: list[OffsetRange], records: int) -> None:
    groups = group_ranges(ranges, records)
    assert sorted(part for group in groups for part in group) == sorted(ranges)
    assert all(sum(part.size for part in group) <= records for group in groups if len(group) > 1)


def test_many_small_ranges_make_few_tasks() -> None:
    ranges = [OffsetRange(TopicPartition("a", number), 0, 1_000) for number in range(200)]
    assert len(group_ranges(ranges, 100_000)) == 2


@given(range_lists, st.integers(min_value=50, max_value=500))
def test_cut_ranges_cover_the_same_offsets_in_small_pieces(ranges: list[OffsetRange], records: int) -> None:
    pieces = cut_ranges(ranges, records)
    assert all(0 < piece.size <= records for piece in pieces)
    assert sum(piece.size for piece in pieces) == sum(whole.size for whole in ranges)
    assert len(pieces) == sum(-(-whole.size // records) for whole in ranges)
    assert sorted(split_ranges(pieces, 1)) == sorted(pieces)


@pytest.mark.parametrize(
    ("start", "end", "log", "is_lost"),
    [
        (5, 10, (0, 10), False),
        (5, 10, (5, 20), False),
        (5, 10, (7, 20), True),
        (5, 10, (10, 20), True),  # all of it aged out
        (5, 10, (12, 20), True),
        (10, 10, (12, 20), False),  # there was nothing to read
        (11, 10, (0, 10), True),  # the topic was made again
        (5, 10, (0, 8), True),  # the log is shorter than it was, or the user asked for more than there is
        (5, 10, (0, 3), True),
        (10, 10, (0, 3), False),
        (None, 10, (4, 10), False),  # a new partition begins where it begins
    ],
)
def test_what_is_not_there_is_lost(start: int | None, end: int, log: tuple[int, int], is_lost: bool) -> None:
    begun = {} if start is None else {A0: start}
    earliest, latest = log
    assert bool(lost_ranges(begun, {A0: end}, {A0: earliest}, {A0: latest})) is is_lost


def test_offsets_name_the_ids_of_their_topics() -> None:
    stored = json.loads(json.dumps(to_json({A0: 3, B0: 1}, {"a": "id-a", "b": "id-b", "c": "id-c"})))
    assert ids_in(stored) == {"a": "id-a", "b": "id-b"}
    assert from_json(stored) == {A0: 3, B0: 1}
    assert ids_in(to_json({A0: 3})) == {}
    assert parse_offsets("startingOffsets", json.dumps(stored)) == {A0: 3, B0: 1}


def test_topics_with_another_id_are_found_and_others_are_not() -> None:
    offsets = {A0: 3, A1: 2, B0: 1}
    assert of_other_topics(offsets, {"a": "old", "b": "id-b"}, {"a": "new", "b": "id-b"}) == {A0: 3, A1: 2}
    assert of_other_topics(offsets, {}, {"a": "new"}) == {}  # a checkpoint of an earlier version
    assert of_other_topics(offsets, {"a": "old"}, {}) == {}  # brokers without ids, or a topic that is gone
