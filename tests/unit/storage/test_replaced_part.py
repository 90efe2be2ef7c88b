"""Which part of a compacted log is replaced, and which batches of another replica are refused."""

from copy import deepcopy

import pytest
from compacting import compact, pairs_of, put
from logs import DIRECTORY, NOW_MS, marker, read_bytes, reopen
from simulated_disk import SimulatedDisk

from sskafka.records.batch import BatchHeader, iter_headers, read_header
from sskafka.storage.damage import Damage
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.part_writer import PartWriter
from sskafka.storage.replaced_part import (
    FirstMarker,
    PartCheck,
    SegmentFacts,
    SpanningTransactionError,
    UnsureError,
    may_span,
    possible_ends,
    read_facts,
)
from sskafka.storage.transactions.index import AbortedTxn

CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=300)
CHANGES = {"write", "truncate", "sync", "rename", "remove", "sync_directory"}


class Killed(BaseException):
    """As kill -9: nothing that runs gets to tidy up."""


# ---- where the part may end


def segments(*facts: tuple[int, bool]) -> list[SegmentFacts]:
    return [SegmentFacts(*one) for one in facts]


@pytest.mark.parametrize(
    ("facts", "damaged_end", "committed_end", "expected"),
    [
        (segments((0, False), (10, True), (20, True)), 5, 30, [10, 20]),
        (segments((0, True), (10, False), (20, True)), 5, 30, [20]),  # records were removed from 10 on
        (segments((0, True), (10, True), (20, False)), 5, 30, []),
        (segments((0, True), (10, True), (20, True)), 15, 30, [20]),  # the damage reaches into the second segment
        (segments((0, True), (10, True), (20, True)), 5, 15, [10]),  # the rest is not committed
        (segments((0, True), (10, True)), 15, 30, []),  # in the active segment
        (segments((0, True)), 5, 30, []),
    ],
)
def test_the_part_ends_where_nothing_was_removed(
    facts: list[SegmentFacts], damaged_end: int, committed_end: int, expected: list[int]
) -> None:
    assert possible_ends(facts, damaged_end, committed_end) == expected


def test_a_transaction_spans_the_end_only_if_readers_learn_its_end() -> None:
    aborted = AbortedTxn(7, first_offset=5, last_offset=21, last_stable_offset=22)
    facts = [
        SegmentFacts(0),
        SegmentFacts(10, True, {8: FirstMarker(12, False)}),
        SegmentFacts(20, True, {7: FirstMarker(21, True), 9: FirstMarker(23, True)}, [aborted]),
    ]
    assert may_span(facts, {}, 10, 8, 6), "committed"
    assert may_span(facts, {}, 10, 7, 5), "aborted, and in the index"
    assert not may_span(facts, {}, 10, 7, 4), "the index has a later first offset"
    assert not may_span(facts, {}, 10, 9, 5), "aborted, but not in the index"
    assert may_span(facts, {6: 5}, 10, 6, 5), "still open"
    assert not may_span(facts, {6: 8}, 10, 6, 5)
    assert not may_span(facts, {}, 10, 6, 5), "unknown"


def test_facts_tell_removed_records() -> None:
    log = reopen(SimulatedDisk(), CONFIG)
    for number in range(12):
        put(log, (b"%d" % (number % 3), b"%d" % number), (b"other", b"%d" % number), now_ms=NOW_MS)
    log.append_as_leader(marker(7, 0, commit=False), 0, NOW_MS, from_client=False)
    assert all(fact.is_complete for fact in facts_of(log))
    assert facts_of(log)[-1].markers == {7: FirstMarker(24, True)}
    compact(log, NOW_MS)
    assert [fact.is_complete for fact in facts_of(log)] == [False] * (len(log.segments) - 1) + [True]


def facts_of(log: Log) -> list[SegmentFacts]:
    ends = [*(segment.base_offset for segment in list(log.segments)[1:]), log.log_end_offset]
    return [
        read_facts(segment.file, segment.size_bytes, segment.base_offset, end)
        for segment, end in zip(log.segments, ends, strict=True)
    ]


# ---- what is refused


def batches(count: int = 4) -> list[tuple[BatchHeader, bytes]]:
    """Batches of two records each."""
    log = reopen(SimulatedDisk(), CONFIG)
    for number in range(count):
        put(log, (b"a", b"%d" % number), (b"b", b"%d" % number), now_ms=NOW_MS)
    data = read_bytes(log, 0)
    return [(header, data[position : position + header.size_bytes]) for position, header in iter_headers(data)]


def check(ends: list[int], start: int = 0) -> PartCheck:
    return PartCheck(0, start, ends, lambda offset: 0, lambda *transaction: False)


def test_batches_are_taken_up_to_the_end() -> None:
    part = check([6])
    taken = [part.take(*one) is not None for one in batches()[:3]]
    assert taken == [True] * 3
    assert part.end_offset == 6
    assert part.filler() is None


def test_a_gap_before_the_end_is_filled() -> None:
    part = check([6])
    first, *_, last = batches()
    assert part.take(*first) is not None
    assert part.take(*last) is None, "it lies behind the part"
    filler = read_header(part.filler() or b"")
    assert (filler.base_offset, filler.next_offset, filler.record_count) == (5, 6, 0)


@pytest.mark.parametrize("wrong", ["order", "damage", "epoch", "across the end", "before the start"])
def test_batches_that_do_not_fit_are_refused(wrong: str) -> None:
    found = batches()
    part = check([5 if wrong == "across the end" else 6], start=3 if wrong == "before the start" else 0)
    if wrong == "order":
        found[1] = found[0]
    elif wrong == "damage":
        found[1] = (found[1][0], found[1][1][:-1] + b"?")
    elif wrong == "epoch":
        found[1] = (found[1][0]._replace(leader_epoch=3), found[1][1])
    with pytest.raises(UnsureError):
        [part.take(*one) for one in found]


def test_a_transaction_that_is_open_at_every_end_is_refused() -> None:
    log = reopen(SimulatedDisk(), CONFIG)
    put(log, (b"a", b"1"), now_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    data = read_bytes(log, 0)
    with pytest.raises(SpanningTransactionError):
        check([1]).take(read_header(data), data)


# ---- swapping several segments in


def filled() -> SimulatedDisk:
    disk = SimulatedDisk()
    log = reopen(disk, CONFIG)
    for number in range(20):
        put(log, (b"%d" % (number % 4), b"%d" % number), now_ms=NOW_MS)
    log.close()
    return disk


def replace_part(log: Log) -> None:
    """Replace all closed segments by the same records in other, smaller segments."""
    before = list(log.segments)
    end = log.segments.active.base_offset
    data = read_bytes(log, 0)
    writer = PartWriter(log.log_directory.disk, log.directory, LogConfig(segment_bytes=160), 0, check([end]), NOW_MS)
    writer.write(data)
    writer.finish()
    assert len(writer.base_offsets) > len(before)
    assert log.replace_part(before, end, writer.base_offsets)


def test_kill_at_every_step_leaves_the_old_segments_or_the_new_ones() -> None:
    original = filled()
    opened = reopen(deepcopy(original), CONFIG, recovery_point=20)
    records, old = pairs_of(opened), [segment.base_offset for segment in opened.segments]
    replace_part(opened)
    new = [segment.base_offset for segment in opened.segments]
    assert pairs_of(opened) == records
    assert old != new
    met = []
    for step in range(10_000):
        disk = deepcopy(original)
        log, left = reopen(disk, CONFIG, recovery_point=20), step

        def ask(operation: str, path: str) -> None:
            nonlocal left
            left -= operation in CHANGES
            if left < 0:
                raise Killed

        disk.fault = ask
        try:
            replace_part(log)
        except Killed:
            disk.fault = None
        else:
            break
        again = reopen(disk, CONFIG, recovery_point=20)
        assert pairs_of(again) == records, step
        met.append([segment.base_offset for segment in again.segments])
        assert met[-1] in (old, new), f"killed at step {step}: a mix of old and new segments"
        assert not [path for path in disk.nodes if path.endswith((".cleaned", ".swap", ".deleted"))]
    assert old in met
    assert new in met
    assert DIRECTORY in disk.directories


def test_segments_that_changed_in_the_meantime_are_not_replaced() -> None:
    log = reopen(filled(), CONFIG, recovery_point=20)
    before = list(log.segments)
    log.increment_log_start_offset(before[1].base_offset)
    assert not log.replace_part(before, before[-1].base_offset, [0])


def test_damage_in_the_part_is_gone_and_other_damage_is_not() -> None:
    log = reopen(filled(), CONFIG, recovery_point=20)
    end = log.segments.active.base_offset
    inside, behind = Damage(0, 0, 10, 0, 1, "bad"), Damage(end, 0, 10, end, end + 1, "bad")
    data_damage = (inside, behind)
    before = list(log.segments)
    data = read_bytes(log, 0)
    for damage in data_damage:
        log.note_damage(damage)
    writer = PartWriter(log.log_directory.disk, log.directory, CONFIG, 0, check([end]), NOW_MS)
    writer.write(data)
    writer.finish()
    assert log.replace_part(before, end, writer.base_offsets)
    assert list(log.damaged or ()) == [behind]
