"""Which log is cleaned next, and when it is due."""

import pytest
from compacting import put
from logs import NOW_MS, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.compaction.cleanable import dirtiest, find_cleanable
from sskafka.storage.compaction.cleaning_job import RELATIVE_OFFSET_MAX, SourceSegment, group_segments
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig


def log_of(segments: int, clean: int, **settings: object) -> Log:
    """Segments of one batch each and an active one; the first of them have been cleaned."""
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=100, **settings)  # type: ignore[arg-type]
    log = reopen(SimulatedDisk(), config)
    for n in range(segments + 1):
        put(log, (b"k", b"%08d" % n), now_ms=NOW_MS + 1000 * n)
    log.first_dirty_offset = clean
    return log


@pytest.mark.parametrize(("clean", "ratio"), [(0, 1.0), (2, 0.5), (4, 0.0)])
def test_the_dirty_ratio_is_dirty_bytes_to_all_that_could_be_cleaned(clean: int, ratio: float) -> None:
    assert find_cleanable(log_of(4, clean), 99, NOW_MS).dirty_ratio == ratio


@pytest.mark.parametrize(("limit", "is_due"), [(0.49, True), (0.5, False), (0.9, False)])
def test_a_log_is_due_above_its_ratio(limit: float, is_due: bool) -> None:
    log = log_of(4, 2, min_cleanable_dirty_ratio=limit)
    assert find_cleanable(log, 99, NOW_MS).is_due is is_due


def test_the_dirtiest_log_comes_first() -> None:
    logs = [log_of(4, clean, min_cleanable_dirty_ratio=0.1) for clean in (3, 1, 2)]
    found = [find_cleanable(log, 99, NOW_MS) for log in logs]
    chosen = dirtiest(found)
    assert chosen is not None
    assert chosen.log is logs[1]
    assert dirtiest([find_cleanable(log_of(4, 4), 99, NOW_MS)]) is None


@pytest.mark.parametrize(("now_ms", "is_due"), [(4000, False), (7001, True)])
def test_max_compaction_lag_overrules_the_ratio(now_ms: int, is_due: bool) -> None:
    log = log_of(4, 2, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=5000)
    assert find_cleanable(log, 99, NOW_MS + now_ms).is_due is is_due


def test_a_segment_that_has_lost_its_batches_waits_for_nothing() -> None:
    log = log_of(4, 2, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=5000)
    for segment in log.segments:
        segment.file.truncate(0)
    assert not find_cleanable(log, 99, NOW_MS + 7001).is_due


def test_a_segment_closes_in_time_for_max_compaction_lag() -> None:
    log = log_of(0, 0, max_compaction_lag_ms=5000)
    assert not log.maybe_roll(NOW_MS + 5000)
    assert log.maybe_roll(NOW_MS + 5001)


def test_the_part_that_may_be_cleaned_ends_with_a_whole_segment() -> None:
    found = find_cleanable(log_of(4, 0), 3, NOW_MS)
    assert (found.end_offset, len(found.segments)) == (3, 3)
    assert find_cleanable(log_of(4, 0), 0, NOW_MS).segments == ()


def test_the_log_start_may_have_passed_the_first_dirty_offset() -> None:
    log = log_of(6, 1)
    log.increment_log_start_offset(3)
    found = find_cleanable(log, 99, NOW_MS)
    assert (found.first_dirty_offset, found.clean_bytes) == (3, 0)


def source(base: int, end: int, size: int = 10, index: int = 1) -> SourceSegment:
    return SourceSegment(base, end, size, index, index)


@pytest.mark.parametrize(
    ("segments", "groups"),
    [
        ([source(0, 10), source(10, 20), source(20, 30)], [[0, 10], [20]]),
        ([source(0, 10, 25), source(10, 20), source(20, 30)], [[0], [10, 20]]),
        ([source(0, 10, 1, 5), source(10, 20, 1, 5), source(20, 30, 1, 1)], [[0], [10, 20]]),
        ([source(0, 10, 1), source(10, RELATIVE_OFFSET_MAX + 2, 1)], [[0], [10]]),
        ([source(0, 10, 1), source(10, RELATIVE_OFFSET_MAX + 1, 1)], [[0, 10]]),
    ],
)
def test_segments_are_grouped_by_what_fits(segments: list[SourceSegment], groups: list[list[int]]) -> None:
    found = group_segments(segments, size_max=20, index_size_max=9)
    assert [[segment.base_offset for segment in group] for group in found] == groups
