"""Which records compaction keeps and which it removes."""

import pytest
from compacting import LIMITS, batches_of, compact, job_for, keyed, pairs_of, put
from logs import NOW_MS, TP, append, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.records.batch import DELETE_HORIZON, CorruptBatchError
from sskafka.records.compression import Compression
from sskafka.storage.compaction.cleaning import MapTooSmallError, clean_log
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties

DAY_MS = 86_400_000
COMPACTED = LogConfig(cleanup_policy=("compact",), segment_bytes=400)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> Log:
    return reopen(disk, COMPACTED)


def roll(log: Log) -> None:
    """Closes the active segment."""
    assert log.maybe_roll(NOW_MS + 365 * DAY_MS)


def fill(log: Log, *keys: bytes, now_ms: int = NOW_MS) -> None:
    """A batch for each key; the value says where it was written."""
    for key in keys:
        put(log, (key, b"%d" % log.log_end_offset), now_ms=now_ms)


def test_the_last_record_of_each_key_stays_with_its_offset(log: Log) -> None:
    fill(log, b"a", b"b", b"a", b"c", b"b", b"a")
    roll(log)
    fill(log, b"a")
    stats = compact(log, NOW_MS)
    assert pairs_of(log) == [(3, b"c", b"3"), (4, b"b", b"4"), (5, b"a", b"5"), (6, b"a", b"6")]
    assert stats is not None
    assert (stats.end_offset, stats.records_read, stats.records_written) == (6, 6, 3)
    assert (log.log_start_offset, log.log_end_offset, log.first_dirty_offset) == (0, 7, 6)


def test_records_leave_the_middle_of_a_batch(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), now_ms=NOW_MS)
    roll(log)
    compact(log, NOW_MS)
    ((header, records),) = batches_of(log)
    assert [(record.offset, record.value) for record in records] == [(1, b"2"), (2, b"3")]
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 2)


@pytest.mark.parametrize("codec", list(Compression))
def test_compressed_batches_keep_their_compression(log: Log, codec: Compression) -> None:
    put(log, (b"a", b"1" * 50), (b"b", b"2" * 50), (b"a", b"3" * 50), now_ms=NOW_MS, compression=codec)
    roll(log)
    compact(log, NOW_MS)
    ((header, records),) = batches_of(log)
    assert header.compression == codec
    assert [record.value for record in records] == [b"2" * 50, b"3" * 50]


def test_a_batch_that_loses_nothing_keeps_its_bytes(log: Log) -> None:
    fill(log, b"a", b"b")
    before = [header for header, _ in batches_of(log)]
    roll(log)
    compact(log, NOW_MS)
    assert [header for header, _ in batches_of(log)] == before


def test_the_largest_timestamp_is_that_of_a_record_that_stayed(log: Log) -> None:
    batch = keyed((b"a", b"late"), (b"b", b"early"), timestamp=NOW_MS)
    log.append_as_leader(batch, 0, NOW_MS)
    log.append_as_leader(keyed((b"a", b"later"), timestamp=NOW_MS + 5), 0, NOW_MS)
    roll(log)
    compact(log, NOW_MS)
    found = log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW_MS + 5, 2)


def test_a_later_round_removes_what_newer_records_replace(log: Log) -> None:
    fill(log, b"a", b"b", b"c")
    roll(log)
    compact(log, NOW_MS)
    fill(log, b"b", b"a")
    roll(log)
    compact(log, NOW_MS)
    assert pairs_of(log) == [(2, b"c", b"2"), (3, b"b", b"3"), (4, b"a", b"4")]


def test_small_segments_become_one(log: Log) -> None:
    fill(log, *[b"%d" % (n % 3) for n in range(60)])
    roll(log)
    many = len(log.segments)
    compact(log, NOW_MS)
    fill(log, b"0")
    roll(log)
    compact(log, NOW_MS)
    assert many > 10
    assert len(log.segments) <= many // 3
    assert [key for _, key, _ in pairs_of(log)] == [b"1", b"2", b"0"]


# ---- what is not touched


def test_the_active_segment_stays_as_it_is(log: Log) -> None:
    fill(log, b"a", b"a")
    assert compact(log, NOW_MS) is None


def test_nothing_behind_the_last_stable_offset_is_touched(log: Log) -> None:
    fill(log, b"a", b"a")
    roll(log)
    fill(log, b"a", b"a")
    roll(log)
    compact(log, NOW_MS, last_stable_offset=3)
    assert [offset for offset, _, _ in pairs_of(log)] == [1, 2, 3]
    assert log.first_dirty_offset == 2


def test_young_records_stay_for_min_compaction_lag(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",), min_compaction_lag_ms=1000))
    fill(log, b"a", b"a")
    roll(log)
    fill(log, b"a", b"a", now_ms=NOW_MS + 500)
    roll(log)
    assert compact(log, NOW_MS + 999) is None
    compact(log, NOW_MS + 1000)
    assert [offset for offset, _, _ in pairs_of(log)] == [1, 2, 3]
    compact(log, NOW_MS + 1500)
    assert [offset for offset, _, _ in pairs_of(log)] == [3]


# ---- tombstones


def test_a_tombstone_removes_its_key_and_goes_when_its_time_is_over(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",), delete_retention_ms=1000))
    put(log, (b"a", b"1"), (b"b", b"1"), now_ms=NOW_MS)
    put(log, (b"a", None), (b"c", b"1"), now_ms=NOW_MS + 10)
    roll(log)
    compact(log, NOW_MS + 100)
    assert pairs_of(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    headers = [header for header, _ in batches_of(log)]
    assert [bool(header.attributes & DELETE_HORIZON) for header in headers] == [False, True]
    assert headers[1].base_timestamp == NOW_MS + 1100
    assert [record.timestamp for _, records in batches_of(log) for record in records] == [NOW_MS, *[NOW_MS + 10] * 2]

    fill(log, b"x")
    roll(log)
    compact(log, NOW_MS + 1099)
    assert (2, b"a", None) in pairs_of(log), "its time is not over, and it was not put off either"
    fill(log, b"x")
    roll(log)
    compact(log, NOW_MS + 1100)
    assert pairs_of(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (5, b"x", b"5")]


def test_a_value_after_a_tombstone_replaces_it(log: Log) -> None:
    put(log, (b"a", None), now_ms=NOW_MS)
    put(log, (b"a", b"again"), now_ms=NOW_MS)
    roll(log)
    compact(log, NOW_MS)
    assert pairs_of(log) == [(1, b"a", b"again")]


def test_records_without_a_key_go(disk: SimulatedDisk) -> None:
    """They were written before the topic was compacted."""
    log = reopen(disk, LogConfig())
    put(log, (None, b"nobody's"), (b"a", b"1"), now_ms=NOW_MS)
    log.configure(COMPACTED)
    roll(log)
    compact(log, NOW_MS)
    assert pairs_of(log) == [(1, b"a", b"1")]


# ---- producers and transactions


def test_the_last_batch_of_a_producer_stays_without_its_records(log: Log) -> None:
    put(log, (b"a", b"1"), now_ms=NOW_MS, producer_id=7, producer_epoch=2, base_sequence=0)
    put(log, (b"a", b"2"), (b"b", b"2"), now_ms=NOW_MS, producer_id=7, producer_epoch=2, base_sequence=1)
    fill(log, b"a", b"b", b"c")
    roll(log)
    compact(log, NOW_MS)
    bare = [header for header, records in batches_of(log) if not records]
    assert [(h.base_offset, h.last_offset, h.base_sequence, h.producer_epoch) for h in bare] == [(1, 2, 1, 2)]


def test_sequences_survive_compaction_and_the_loss_of_snapshots(disk: SimulatedDisk, log: Log) -> None:
    put(log, (b"a", b"1"), now_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=0)
    fill(log, b"a")
    roll(log)
    fill(log, b"b")
    compact(log, NOW_MS)
    log.flush()
    for path in [path for path in disk.nodes if path.endswith(".snapshot")]:
        disk.remove(path)
    again = reopen(disk, COMPACTED)
    repeated = again.append_as_leader(
        keyed((b"a", b"1"), timestamp=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=0), 0, NOW_MS
    )
    assert (repeated.duplicate, repeated.base_offset) == (True, 0)
    assert put(again, (b"a", b"2"), now_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=1) == 3


def transaction(log: Log, *keys: bytes, commit: bool, producer_id: int = 9, sequence: int = 0) -> None:
    pairs = [(key, b"%d" % log.log_end_offset) for key in keys]
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
    put(log, *pairs, now_ms=NOW_MS, **fields)
    log.append_as_leader(marker(producer_id, 0, commit=commit), 0, NOW_MS, from_client=False)


def markers(log: Log) -> list[int]:
    return [header.base_offset for header, records in batches_of(log) if header.is_control and records]


def test_records_of_aborted_transactions_go_and_replace_nothing(log: Log) -> None:
    fill(log, b"a")
    transaction(log, b"a", b"b", commit=False)
    transaction(log, b"c", commit=True, sequence=2)
    roll(log)
    compact(log, NOW_MS)
    assert pairs_of(log) == [(0, b"a", b"0"), (4, b"c", b"4")]
    assert markers(log) == [3, 5], "a reader may be between a batch that it has read and the marker"
    assert [aborted.first_offset for aborted in log.aborted_transactions(0, 6)] == [1]


def test_a_transaction_aborted_in_the_clean_part_says_nothing_of_the_next(log: Log) -> None:
    fill(log, b"a")
    transaction(log, b"a", commit=False)
    roll(log)
    compact(log, NOW_MS)
    transaction(log, b"a", commit=True, sequence=1)
    roll(log)
    compact(log, NOW_MS)
    assert pairs_of(log) == [(3, b"a", b"3")]


def test_markers_go_when_their_batches_are_gone_and_their_time_is_over(disk: SimulatedDisk) -> None:
    config = LogConfig(cleanup_policy=("compact",), delete_retention_ms=1000)
    log = reopen(disk, config)
    transaction(log, b"a", commit=False)
    transaction(log, b"b", commit=True, sequence=1)
    transaction(log, b"c", commit=True, sequence=2)
    fill(log, b"b")
    for round_ms, left in [(0, [1, 3, 5]), (10, [1, 3, 5]), (900, [1, 3, 5]), (1010, [5])]:
        roll(log)
        compact(log, NOW_MS + round_ms)
        assert markers(log) == left, round_ms
        fill(log, b"z", now_ms=NOW_MS)
    assert log.aborted_transactions(0, 100) == []
    assert [(offset, key) for offset, key, _ in pairs_of(log)][:2] == [(4, b"c"), (6, b"b")]


def test_the_last_marker_of_a_producer_stays_for_its_epoch(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",), delete_retention_ms=0))
    log.append_as_leader(marker(9, 5, commit=True), 0, NOW_MS, from_client=False)
    for _ in range(3):
        fill(log, b"a")
        roll(log)
        compact(log, NOW_MS)
    first, *_ = batches_of(log)
    assert (first[0].is_control, first[0].producer_id, first[0].producer_epoch) == (True, 9, 5)


# ---- limits and trouble


def test_a_full_key_map_ends_the_round_early_and_the_next_goes_on(log: Log) -> None:
    keys = [b"%d" % n for n in range(40)]
    fill(log, *keys, *keys)
    roll(log)
    small = LIMITS._replace(map_bytes=24 * 31)
    ends = []
    while (stats := compact(log, NOW_MS, small)) is not None:
        ends.append(stats.end_offset)
        assert stats.map_utilization <= 0.9
    assert len(ends) > 2
    assert ends == sorted(set(ends))
    assert [offset for offset, _, _ in pairs_of(log)] == list(range(40, 80))


def test_a_tombstone_beyond_a_full_key_map_stays_until_its_key_is_read(disk: SimulatedDisk) -> None:
    day_ms = 86_400_000
    log = reopen(disk, LogConfig(cleanup_policy=("compact",), delete_retention_ms=day_ms))
    put(log, (b"K", b"old value"), now_ms=NOW_MS)
    roll(log)
    fill(log, *(b"%d" % n for n in range(70)))
    put(log, (b"K", None), now_ms=NOW_MS)
    roll(log)
    small = LIMITS._replace(map_bytes=24 * 31)
    now_ms = NOW_MS
    while compact(log, now_ms, small) is not None:
        values = [value for _, key, value in pairs_of(log) if key == b"K"]
        assert values in ([b"old value", None], [None], []), "the deleted value is back"
        now_ms += day_ms + 1
    assert b"K" not in [key for _, key, _ in pairs_of(log)]


def test_a_key_map_too_small_for_one_batch_says_so(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    put(log, *[(b"%d" % n, b"") for n in range(100)], now_ms=NOW_MS)
    roll(log)
    with pytest.raises(MapTooSmallError):
        compact(log, NOW_MS, LIMITS._replace(map_bytes=24 * 20))


def test_a_corrupt_batch_is_not_made_valid(disk: SimulatedDisk, log: Log) -> None:
    fill(log, b"a", b"a")
    roll(log)
    path = next(path for path in disk.nodes if path.endswith("00000.log"))
    disk.nodes[path].data[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        compact(log, NOW_MS)
    assert len(pairs_of(log)) == 2


@pytest.mark.parametrize("place", [22, 60])
def test_damage_below_the_log_start_does_not_stop_the_cleaner(disk: SimulatedDisk, log: Log, place: int) -> None:
    """Nobody reads these batches, so nobody replaces them either."""
    fill(log, b"a", b"b", b"a", b"c", b"b")
    roll(log)
    log.increment_log_start_offset(2)
    first = log.segments.first
    assert first.base_offset == 0
    node = disk.nodes[first.log_path]
    for position, header in list(first.headers()):
        if header.last_offset < 2:
            node.data[position + place] ^= 0x04
    compact(log, NOW_MS)
    assert [(offset, key) for offset, key, _ in pairs_of(log)] == [(2, b"a"), (3, b"c"), (4, b"b")]
    assert log.first_dirty_offset == log.segments.active.base_offset


@pytest.mark.parametrize("place", [5, 7])
def test_batches_whose_offsets_are_damaged_are_not_cleaned(disk: SimulatedDisk, log: Log, place: int) -> None:
    fill(log, b"a", b"b", b"c")
    roll(log)
    position = [position for position, _ in log.segments.first.headers()][1]
    disk.nodes[log.segments.first.log_path].data[position + place] ^= 0x02
    with pytest.raises(CorruptBatchError, match="does not fit into its segment"):
        compact(log, NOW_MS)


def test_a_log_that_was_cut_meanwhile_takes_nothing(log: Log) -> None:
    fill(log, b"a", b"a", b"a")
    roll(log)
    before = log.truncations
    answers = list(clean_log(log.log_directory.disk, job_for(log, NOW_MS), lambda size: None))
    log.truncate_to(2)
    append(log, b"other", key=b"a")
    roll(log)
    assert not log.swap_in((0,), before)
    assert len(answers) == 2
    assert [offset for offset, _, _ in pairs_of(log)] == [0, 1, 2]


def test_segments_that_were_retired_meanwhile_are_not_brought_back(log: Log) -> None:
    fill(log, *[b"a"] * 30)
    roll(log)
    job = job_for(log, NOW_MS)
    list(clean_log(log.log_directory.disk, job, lambda size: None))
    log.increment_log_start_offset(20)
    assert not log.swap_in(tuple(source.base_offset for source in job.segments[:2]), log.truncations)


def test_readers_of_the_old_segment_are_not_disturbed(log: Log) -> None:
    fill(log, b"a", b"a", b"a")
    slices = log.read(0, 1 << 20, 3)
    before = [bytes(piece.read()) for piece in slices]
    roll(log)
    compact(log, NOW_MS)
    assert [bytes(piece.read()) for piece in slices] == before


def test_a_compacted_log_is_found_again_after_any_stop(disk: SimulatedDisk, log: Log) -> None:
    fill(log, *[b"%d" % (n % 5) for n in range(50)])
    roll(log)
    fill(log, b"end")
    compact(log, NOW_MS)
    expected = pairs_of(log)
    assert pairs_of(reopen(disk, COMPACTED)) == expected
    # The topic is no longer compacted, but its log is still full of gaps.
    plain = reopen(disk, LogConfig(), cleaned_before=log.first_dirty_offset)
    assert pairs_of(plain) == expected
    assert plain.first_dirty_offset == log.first_dirty_offset


@pytest.mark.parametrize(("cleaned_before", "first_dirty"), [(None, 3), (2, 3), (4, 4), (99, 3)])
def test_a_checkpoint_that_cannot_be_true_is_not_believed(
    disk: SimulatedDisk, cleaned_before: int | None, first_dirty: int
) -> None:
    log = reopen(disk, COMPACTED)
    fill(log, *[b"a"] * 6)
    log.close()
    again = reopen(disk, COMPACTED, log_start_offset=3, cleaned_before=cleaned_before)
    assert again.first_dirty_offset == first_dirty


def test_a_follower_of_a_compacted_log_keeps_its_gaps_through_a_crash() -> None:
    """The topic is no longer compacted, and this replica never compacted anything itself."""
    disk = SimulatedDisk()
    manager = LogManager.open(disk, ("/data",), node_id=1, format_as=lambda: MetaProperties("cluster", 1))
    follower = manager.open_log(TP, bytes(16), LogConfig(), NOW_MS)
    for offset in (0, 7, 30):
        follower.append_as_follower(keyed((b"k", b"v"), timestamp=NOW_MS, base_offset=offset, leader_epoch=0))
    assert follower.has_gaps
    manager.checkpoint_cleaned_offsets()
    manager.release()
    again = LogManager.open(disk, ("/data",), node_id=1).open_log(TP, bytes(16), LogConfig(), NOW_MS)
    assert [offset for offset, _, _ in pairs_of(again)] == [0, 7, 30]
