"""Appends and reads of a log."""

from random import Random

import pytest
from logs import NOW_MS, append, batch, marker, read_bytes, read_records, records, reopen
from simulated_disk import SimulatedDisk

from sskafka.records.batch import iter_headers, read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.storage.errors import (
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    StorageError,
    UnexpectedAppendOffsetError,
)
from sskafka.storage.log_config import LogConfig


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def base_offsets(data: bytes) -> list[int]:
    return [header.base_offset for _, header in iter_headers(data)]


# ---- append


def test_offsets_and_epoch_are_written_into_the_batch(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b")
    produced = batch(b"c")
    info = log.append_as_leader(produced, 5, NOW_MS)
    assert (info.base_offset, info.last_offset, info.append_time_ms, info.duplicate) == (2, 2, -1, False)
    header = read_header(read_bytes(log, 2))
    assert (header.base_offset, header.leader_epoch) == (2, 5)
    assert read_bytes(log, 2) == bytes(produced)


def test_several_batches_are_written_as_one(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    info = log.append_as_leader(batch(b"a", b"b") + batch(b"c"), 0, NOW_MS)
    assert (info.base_offset, info.last_offset) == (0, 2)
    assert read_records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_one_bad_batch_refuses_them_all(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    bad = batch(b"c")
    bad[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        log.append_as_leader(batch(b"a") + bad, 0, NOW_MS)
    assert log.log_end_offset == 0
    assert log.size_bytes == 0


@pytest.mark.parametrize("cut", [1, 30, 62])
def test_a_cut_batch_is_refused(disk: SimulatedDisk, cut: int) -> None:
    with pytest.raises(CorruptBatchError):
        reopen(disk).append_as_leader(batch(b"value")[:-cut], 0, NOW_MS)


def test_nothing_is_refused(disk: SimulatedDisk) -> None:
    with pytest.raises(InvalidRecordError):
        reopen(disk).append_as_leader(bytearray(), 0, NOW_MS)


def test_a_batch_over_the_limit_is_refused(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(max_message_bytes=100))
    append(log, b"x" * 20)
    with pytest.raises(RecordTooLargeError):
        append(log, b"x" * 40)
    assert log.log_end_offset == 1


def test_a_batch_of_exactly_the_limit_is_taken(disk: SimulatedDisk) -> None:
    produced = batch(b"x" * 40)
    log = reopen(disk, LogConfig(max_message_bytes=len(produced)))
    assert log.append_as_leader(produced, 0, NOW_MS).base_offset == 0


def test_counts_that_disagree_are_refused(disk: SimulatedDisk) -> None:
    from sskafka.records.batch import write_crc, write_header

    produced = batch(b"a", b"b")
    write_header(produced, read_header(produced)._replace(last_offset_delta=5))
    write_crc(produced, 0, len(produced))
    with pytest.raises(InvalidRecordError, match="last offset delta of 5"):
        reopen(disk).append_as_leader(produced, 0, NOW_MS)


def test_what_a_follower_fetched_fills_as_many_segments_as_it_takes(disk: SimulatedDisk) -> None:
    one = len(batch(b"x"))
    log = reopen(disk, LogConfig(segment_bytes=3 * one))
    log.append_as_follower(batch(b"x"))
    fetched = b"".join(bytes(batch(b"x", base_offset=offset)) for offset in range(1, 9))
    log.append_as_follower(fetched)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert all(segment.size_bytes == 3 * one for segment in log.segments)
    assert (log.log_end_offset, [offset for offset, _ in records(read_bytes(log, 0))]) == (9, list(range(9)))


def test_a_segment_begun_before_a_clean_stop_has_a_durable_name(disk: SimulatedDisk) -> None:
    append(reopen(disk), b"a")
    log = reopen(disk)  # after a kill: everything is synced, but there is a segment to begin
    log.maybe_roll(NOW_MS + 10**12)
    log.close()
    log = reopen(disk, was_clean_stop=True, recovery_point=1)
    append(log, b"b")
    log.flush()
    disk.crash(Random(1))
    assert reopen(disk, recovery_point=2).log_end_offset == 2


def test_clients_may_not_write_control_records(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    with pytest.raises(InvalidRecordError, match="control"):
        log.append_as_leader(marker(1, 0, commit=True), 0, NOW_MS)
    log.append_as_leader(marker(1, 0, commit=True), 0, NOW_MS, from_client=False)
    assert log.log_end_offset == 1
    assert log.record_count() == 0


def test_timestamps_are_bounded_on_both_sides(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500))
    append(log, b"now", timestamp=NOW_MS + 500)
    append(log, b"now", timestamp=NOW_MS - 1000)
    for timestamp in (NOW_MS + 501, NOW_MS - 1001):
        with pytest.raises(InvalidTimestampError) as refused:
            append(log, b"late or early", timestamp=timestamp)
        assert str(refused.value) == "One or more records have been rejected due to invalid timestamp"
        within = f"[{NOW_MS - 1000}, {NOW_MS + 500}]"
        text = (
            f"Timestamp {timestamp} of message with offset 0 is out of range. The timestamp should be within {within}"
        )
        assert refused.value.record_errors == [(0, text)]
    append(log, b"no timestamp", timestamp=-1)


@pytest.mark.parametrize("codec", list(Compression))
def test_every_record_that_is_to_blame_is_named(disk: SimulatedDisk, codec: Compression) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",), message_timestamp_after_max_ms=500))
    keys, timestamps = (b"a", None, b"c", None, None, None), (0, 0, 501, 0, 0, 0)
    records = [
        NewRecord(key=key, value=b"v", timestamp=NOW_MS + later) for key, later in zip(keys, timestamps, strict=True)
    ]
    with pytest.raises(InvalidRecordError) as refused:
        log.append_as_leader(build_batch(records, compression=codec), 0, NOW_MS)
    assert [error.batch_index for error in refused.value.record_errors] == [1, 2, 3, 4, 5]
    text = "Compacted topic cannot accept message without key in topic partition "
    assert refused.value.record_errors[0].message == f"{text}{log.topic_partition}"
    assert "due to 5 record errors in total" in str(refused.value)
    assert str(refused.value).count("RecordError(batchIndex=") == 3


def test_a_produced_batch_begins_at_offset_0(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(batch(b"v", base_offset=55), 0, NOW_MS)


def test_append_time_replaces_the_producers_timestamp(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(message_timestamp_type="LogAppendTime"))
    info = log.append_as_leader(batch(b"a", b"b", timestamp=5), 0, NOW_MS)
    assert info.append_time_ms == NOW_MS
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert (found.offset, found.timestamp) == (0, NOW_MS)
    assert reopen(disk).log_end_offset == 2  # the CRC was made anew


@pytest.mark.parametrize("codec", list(Compression))
def test_a_compacted_topic_takes_no_records_without_a_key(disk: SimulatedDisk, codec: Compression) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    append(log, b"a", b"b", compression=codec)
    with pytest.raises(InvalidRecordError, match="key"):
        append(log, b"c", key=None, compression=codec)
    assert log.log_end_offset == 2


# ---- follow


def test_a_follower_keeps_offsets_and_epochs(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    log.append_as_follower(batch(b"a", b"b", leader_epoch=1) + batch(b"c", base_offset=2, leader_epoch=3))
    assert read_records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.epochs.entries == [(1, 0), (3, 2)]


def test_a_follower_takes_gaps_that_compaction_left(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    log.append_as_follower(batch(b"a", leader_epoch=0) + batch(b"c", base_offset=7, leader_epoch=0))
    assert read_records(log, 3) == [(7, b"c")]
    assert base_offsets(read_bytes(log, 3)) == [7]
    assert reopen(disk, LogConfig(cleanup_policy=("compact",))).log_end_offset == 8


def test_a_follower_refuses_what_it_has_already(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    log.append_as_follower(batch(b"a", b"b"))
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(batch(b"b", base_offset=1))
    assert log.log_end_offset == 2


def test_a_follower_refuses_corrupt_batches(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    bad = batch(b"b", base_offset=1)
    bad[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        log.append_as_follower(batch(b"a") + bad)
    assert log.log_end_offset == 0


# ---- roll


def segment_offsets(log: object) -> list[int]:
    return [segment.base_offset for segment in log.segments]  # type: ignore[attr-defined]


def test_a_full_segment_is_followed_by_a_new_one(disk: SimulatedDisk) -> None:
    size = len(batch(b"value"))
    log = reopen(disk, LogConfig(segment_bytes=2 * size))
    for _ in range(5):
        append(log, b"value")
    assert segment_offsets(log) == [0, 2, 4]


def test_an_old_segment_is_followed_by_a_new_one_by_record_time(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_ms=1000))
    append(log, b"a", timestamp=NOW_MS - 5000)
    append(log, b"b", timestamp=NOW_MS - 4000)
    append(log, b"c", timestamp=NOW_MS - 3999)
    assert segment_offsets(log) == [0, 2]


def test_records_without_time_roll_by_the_clock(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_ms=1000))
    append(log, b"a", timestamp=-1)
    append(log, b"b", timestamp=-1, now_ms=NOW_MS + 1000)
    append(log, b"c", timestamp=-1, now_ms=NOW_MS + 1001)
    assert segment_offsets(log) == [0, 2]


def test_a_quiet_segment_is_rolled_when_its_time_is_over(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_ms=1000))
    assert not log.maybe_roll(NOW_MS + 5000), "an empty segment need not be rolled"
    append(log, b"a")
    assert not log.maybe_roll(NOW_MS + 1000)
    assert log.maybe_roll(NOW_MS + 1001)
    assert segment_offsets(log) == [0, 1]


def test_a_full_index_begins_a_new_segment(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for n in range(20):
        append(log, b"%d" % n, timestamp=NOW_MS + n)
    assert len(log.segments) > 3
    assert all(segment.offset_index.count <= 6 and segment.time_index.count <= 4 for segment in log.segments)
    assert len(read_records(log)) == 20


def test_offsets_too_far_from_the_base_begin_a_new_segment(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    far = 2**31 + 5
    log.append_as_follower(batch(b"a"))
    log.append_as_follower(batch(b"b", base_offset=far))
    assert segment_offsets(log) == [0, far]
    assert read_records(log, 1) == [(far, b"b")]


# ---- read


def test_reading_begins_with_the_batch_that_has_the_offset(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    assert base_offsets(read_bytes(log, 2)) == [0, 3]
    assert base_offsets(read_bytes(log, 3)) == [3]
    assert read_bytes(log, 4) == b""


def test_reading_ends_before_the_limit(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b")
    append(log, b"c")
    assert base_offsets(read_bytes(log, 0, up_to=2)) == [0]
    assert read_bytes(log, 0, up_to=1) == b"", "the only batch reaches beyond the limit"
    assert read_bytes(log, 2, up_to=2) == b""
    assert base_offsets(read_bytes(log, 0, up_to=99)) == [0, 2]


def test_the_first_batch_is_whole_whatever_the_size(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"x" * 500)
    append(log, b"y" * 500)
    first = len(read_bytes(log, 0, up_to=1))
    assert len(read_bytes(log, 0, max_bytes=1)) == first
    assert len(read_bytes(log, 0, max_bytes=0)) == first
    assert len(read_bytes(log, 0, max_bytes=1, min_one=False)) == 1
    assert read_bytes(log, 0, max_bytes=0, min_one=False) == b""
    assert len(read_bytes(log, 0, max_bytes=first + 10)) == first + 10, "a later batch may be cut"


def test_reading_goes_on_in_the_next_segment(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=160))
    for n in range(10):
        append(log, b"value %d" % n)
    assert len(log.segments) == 5
    assert [value for _, value in read_records(log, 3, up_to=8)] == [b"value %d" % n for n in range(3, 8)]


@pytest.mark.parametrize("offset", [-1, 4, 100])
def test_offsets_outside_of_the_log_are_refused(disk: SimulatedDisk, offset: int) -> None:
    log = reopen(disk)
    append(log, b"a", b"b", b"c")
    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, 100, 3)


def test_old_offsets_are_found_through_the_index(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(index_interval_bytes=300))
    for n in range(3000):
        append(log, b"%d" % n)
    assert log.segments.active.offset_index.count > 500
    for offset in (0, 1, 7, 1000, 1499, 2000, 2998, 2999):
        assert records(read_bytes(log, offset, max_bytes=0)) == [(offset, b"%d" % offset)]
    log.close()
    again = reopen(disk, was_clean_stop=True)
    assert records(read_bytes(again, 1234, max_bytes=0)) == [(1234, b"1234")]


def test_a_walk_reads_no_more_than_the_gap_in_the_index(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(index_interval_bytes=1000))
    for n in range(5000):
        append(log, b"%d" % n)
    reads: list[str] = []
    disk.fault = lambda operation, path: reads.append(path) if operation == "read" and path.endswith(".log") else None
    log.read(700, 1 << 20, log.log_end_offset)
    assert 1 <= len(reads) <= 2
    reads.clear()
    log.read(4990, 1 << 20, 4995)
    assert not reads, "the newest batches are found without the disk"


def test_a_slice_outlives_its_segment(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=100))
    append(log, b"old")
    append(log, b"new")
    slices = log.read(0, 1 << 20, 1)
    log.increment_log_start_offset(1)
    assert segment_offsets(log) == [1]
    assert records(bytes(slices[0].read())) == [(0, b"old")]


# ---- time


def test_the_first_record_of_a_time_is_found_inside_its_batch(disk: SimulatedDisk) -> None:
    from sskafka.records.builder import NewRecord, build_batch

    log = reopen(disk, LogConfig(segment_bytes=400, index_interval_bytes=100))
    for base in range(0, 100, 4):
        stamped = [NewRecord(None, b"v", (), NOW_MS + base + n) for n in range(4)]
        log.append_as_leader(build_batch(stamped), 7, NOW_MS)
    for n in range(100):
        found = log.offset_for_timestamp(NOW_MS + n)
        assert found == (NOW_MS + n, n, 7)
    assert log.offset_for_timestamp(NOW_MS - 50) == (NOW_MS, 0, 7)
    assert log.offset_for_timestamp(NOW_MS + 100) is None
    assert log.max_timestamp_offset() == (NOW_MS + 99, 99, 7)


def test_records_before_the_start_are_not_found_by_time(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b", timestamp=NOW_MS)
    append(log, b"c", timestamp=NOW_MS - 10)
    log.increment_log_start_offset(1)
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert found.offset == 1
    log.increment_log_start_offset(2)
    assert log.offset_for_timestamp(NOW_MS) is None


def test_an_empty_log_has_no_times(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None


def test_a_batch_that_cannot_be_decoded_is_found_at_its_start(disk: SimulatedDisk) -> None:
    from sskafka.records.batch import write_crc

    garbled = batch(b"aaaa", b"bbbb", leader_epoch=0)
    garbled[61] = 0x7F
    write_crc(garbled, 0, len(garbled))
    log = reopen(disk)
    log.append_as_follower(garbled)
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert found.offset == 0


# ---- cut


def test_truncation_inside_a_batch_removes_the_batch(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    assert log.truncate_to(2) == 1
    assert read_records(log) == [(0, b"a")]
    assert append(log, b"e") == 1


def test_truncation_reaches_over_segments_and_epochs(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=100))
    for n in range(6):
        append(log, b"%d" % n, epoch=n)
    assert log.truncate_to(2) == 2
    assert segment_offsets(log) == [0, 1, 2]
    assert log.epochs.entries == [(0, 0), (1, 1)]
    assert append(log, b"new", epoch=9) == 2
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert reopen(disk, LogConfig(segment_bytes=100)).log_end_offset == 3


def test_truncation_beyond_the_end_changes_nothing(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    assert log.truncate_to(5) == 1


def test_a_log_can_begin_anew_elsewhere(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert append(log, b"b") == 100
    assert not log.producers.producers
    again = reopen(disk)
    assert (again.log_start_offset, again.log_end_offset) == (100, 101)


def test_deleted_records_are_out_of_range(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=200))
    for n in range(10):
        append(log, b"%d" % n)
    log.increment_log_start_offset(5)
    assert segment_offsets(log)[0] <= 5 < segment_offsets(log)[1]
    with pytest.raises(OffsetOutOfRangeError):
        log.read(4, 100, 10)
    with pytest.raises(OffsetOutOfRangeError):
        log.increment_log_start_offset(11)
    assert log.record_count() == 5
    again = reopen(disk, LogConfig(segment_bytes=200), log_start_offset=5)
    assert (again.log_start_offset, again.record_count()) == (5, 5)
    assert again.epochs.entries == [(0, 5)]


def test_deleted_segments_are_reported_for_removal(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=100))
    doomed: list[str] = []
    log.on_files_deleted = doomed.extend
    append(log, b"a")
    append(log, b"b")
    log.increment_log_start_offset(1)
    assert [path for path in doomed if path.endswith(".log.deleted")]
    assert all(disk.exists(path) for path in doomed)
    reopen(disk)
    assert not any(disk.exists(path) for path in doomed), "a restart removes what was left"


@pytest.mark.parametrize("from_start", [True, False])
def test_a_crash_amid_a_deletion_leaves_no_hole(disk: SimulatedDisk, from_start: bool) -> None:
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(6):
        append(log, b"%d" % n)
    log.flush()
    renames = 0

    def crash_at_the_third(operation: str, path: str) -> None:
        nonlocal renames
        renames += operation == "rename" and path.endswith(".log")
        if renames == 3:
            raise OSError(5, "crash", path)

    disk.fault = crash_at_the_third
    with pytest.raises(StorageError):
        log.increment_log_start_offset(5) if from_start else log.truncate_to(0)
    disk.fault = None
    kept = [value for _, value in read_records(reopen(disk, config))]
    assert kept == ([b"2", b"3", b"4", b"5"] if from_start else [b"0", b"1", b"2", b"3"])


# ---- settings


def test_settings_come_under_kafkas_names() -> None:
    config = LogConfig.from_settings(
        {"segment.bytes": "1024", "cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"}
    )
    assert (config.segment_bytes, config.is_compacted, config.uses_append_time) == (1024, True, True)
    assert LogConfig.from_settings({"cleanup.policy": ("delete",), "flush.ms": None}) == LogConfig()


def test_changed_settings_hold_from_the_next_append(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"x" * 100)
    log.configure(LogConfig(max_message_bytes=100))
    with pytest.raises(RecordTooLargeError):
        append(log, b"x" * 100)


def test_partitions_take_different_parts_of_the_jitter() -> None:
    from sskafka.model.ids import TopicPartition
    from sskafka.storage.log_directory import LogDirHealth
    from sskafka.storage.recovery.opening import open_log

    disk = SimulatedDisk()
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=5000)
    rolled = set()
    for partition in range(20):
        log = open_log(LogDirHealth(disk, "/d"), f"/d/t-{partition}", TopicPartition("t", partition), config, now_ms=0)
        append(log, b"a")
        rolled.add(next(ms for ms in range(5000, 10_002, 100) if log.maybe_roll(NOW_MS + ms)))
    assert len(rolled) > 10
    assert min(rolled) >= 5000


# ---- compression of the topic's own


@pytest.mark.parametrize("codec", list(Compression))
def test_a_topic_may_have_a_compression_of_its_own(disk: SimulatedDisk, codec: Compression) -> None:
    name = "uncompressed" if codec is Compression.NONE else codec.name.lower()
    log = reopen(disk, LogConfig(compression_type=name))
    sent = [b"x" * 300, b"y" * 300]
    for n, produced in enumerate(Compression):
        fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 2 * n}
        log.append_as_leader(batch(*sent, compression=produced, **fields), 4, NOW_MS)
        repeated = log.append_as_leader(batch(*sent, compression=produced, **fields), 4, NOW_MS)
        assert (repeated.base_offset, repeated.duplicate) == (2 * n, True)
    headers = [header for _, header in iter_headers(read_bytes(log, 0))]
    assert {(header.compression, header.leader_epoch) for header in headers} == {(codec, 4)}
    assert [value for _, value in read_records(log)] == sent * 5
    assert reopen(disk).log_end_offset == 10


def test_what_grows_over_the_limit_is_refused(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(compression_type="uncompressed", max_message_bytes=300))
    with pytest.raises(RecordTooLargeError):
        append(log, b"x" * 1000, compression=Compression.GZIP)
    assert log.log_end_offset == 0


def test_an_unknown_compression_is_refused(disk: SimulatedDisk) -> None:
    from sskafka.records.batch import write_crc, write_header

    produced = batch(b"a")
    write_header(produced, read_header(produced)._replace(attributes=7))
    write_crc(produced, 0, len(produced))
    with pytest.raises(InvalidRecordError, match="compression type 7"):
        reopen(disk).append_as_leader(produced, 0, NOW_MS)


# ---- resources


def test_few_files_of_a_log_are_open(tmp_path: object) -> None:
    import os

    from sskafka.storage.disk import OsDisk

    log = reopen(OsDisk(), LogConfig(segment_bytes=100), f"{tmp_path}/orders-0")
    before = len(os.listdir("/proc/self/fd"))
    for n in range(40):
        append(log, b"%d" % n)
    assert len(log.segments) == 40
    assert [value for offset in range(40) for _, value in records(read_bytes(log, offset, max_bytes=0))] == [
        b"%d" % n for n in range(40)
    ]
    assert len(read_records(log)) == log.record_count() == 40
    assert log.offset_for_timestamp(NOW_MS + 1) is None
    assert len(os.listdir("/proc/self/fd")) - before <= 6


def test_a_log_that_was_deleted_says_so_to_late_readers(disk: SimulatedDisk) -> None:
    from logs import DIRECTORY

    log = reopen(disk)
    append(log, b"a")
    log.abandon()
    disk.remove_tree(DIRECTORY)
    with pytest.raises(StorageError, match="deleted"):
        log.read(0, 100, 1)
    assert log.log_directory.failure is None, "the directory is fine"


def test_an_idle_log_is_closed_without_the_disk(disk: SimulatedDisk) -> None:
    append(reopen(disk), b"a")
    log = reopen(disk)
    log.close()
    log.close()
    log = reopen(disk, was_clean_stop=True)
    disk.syncs.clear()
    log.close()
    assert disk.syncs == []


def test_a_topic_chooses_how_hard_its_batches_are_compressed() -> None:
    value = b"".join(b"user-%d clicked item %d\n" % (n * 7919 % 1000, n * 104729 % 5000) for n in range(500))
    sizes = []
    for level in ("-50", "3"):
        settings = {"compression.type": "zstd", "compression.zstd.level": level}
        log = reopen(SimulatedDisk(), LogConfig.from_settings(settings))
        append(log, value)
        sizes.append(log.size_bytes)
        assert read_records(log) == [(0, value)]
    assert sizes[1] < sizes[0]
