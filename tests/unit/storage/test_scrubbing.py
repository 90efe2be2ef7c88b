"""The scrub detects every kind of damage in a segment, and readers get neither damaged bytes nor a silent gap."""

from pathlib import Path

import pytest
from logs import NOW_MS, append, marker, read_records, reopen

from sskafka.model.ids import TopicPartition
from sskafka.storage.damage import Damage, DamagedRanges
from sskafka.storage.disk import OsDisk
from sskafka.storage.epoch_repair import EpochRepair
from sskafka.storage.errors import CorruptBatchError
from sskafka.storage.file_slice import FileSlice, has_bad_batch
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.scrubbing import ScrubProgress, SegmentScrub, read_scrub_progress, write_scrub_progress
from sskafka.storage.segment import Segment
from sskafka.storage.transactions.index import TransactionIndex

BATCHES = 12
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=0)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = reopen(OsDisk(), CONFIG, str(tmp_path / "log-0"))
    for number in range(BATCHES):
        append(log, b"value %d" % number, epoch=number // 5)
    return log


def scrub(log: Log, segment: Segment, step_bytes: int = 1) -> list[Damage]:
    scrub = SegmentScrub(log, segment)
    while not scrub.is_done:
        scrub.step(step_bytes)
    return scrub.found


def all_damage(log: Log) -> list[Damage]:
    return [damage for segment in log.segments for damage in scrub(log, segment)]


def write(segment: Segment, position: int, data: bytes) -> None:
    with Path(segment.log_path).open("r+b") as file:
        file.seek(position)
        file.write(data)


@pytest.mark.parametrize("step_bytes", [1, 100, 1 << 20])
def test_an_intact_log_has_no_damage(log: Log, step_bytes: int) -> None:
    assert len(log.segments) > 2
    assert [scrub(log, segment, step_bytes) for segment in log.segments] == [[]] * len(log.segments)


def test_a_bit_flipped_in_any_byte_is_found_where_it_is(log: Log) -> None:
    """Closed segments and the active one, header and records: the damaged range is that of the batch."""
    for segment in list(log.segments):
        content = Path(segment.log_path).read_bytes()
        batches = [(position, header) for position, header in segment.headers()]
        for at in range(segment.size_bytes):
            write(segment, at, bytes([content[at] ^ 0x10]))
            (damage,) = scrub(log, segment)
            position, header = [(start, head) for start, head in batches if start <= at][-1]
            assert damage.position <= position <= at < damage.end_position, at
            assert damage.offset <= header.base_offset < damage.end_offset, at
            write(segment, at, content[at : at + 1])
    assert all_damage(log) == []


def test_a_lost_end_of_a_file_is_found(log: Log) -> None:
    segment = log.segments.first
    Path(segment.log_path).write_bytes(Path(segment.log_path).read_bytes()[:-10])
    (damage,) = scrub(log, segment)
    assert damage.end_position == segment.size_bytes


def test_zeros_in_the_middle_are_one_range(log: Log) -> None:
    segment = log.segments.first
    positions = [position for position, _ in segment.headers()]
    write(segment, positions[1], bytes(positions[3] - positions[1]))
    (damage,) = scrub(log, segment)
    assert (damage.position, damage.end_position) == (positions[1], positions[3])
    assert (damage.offset, damage.end_offset) == (1, 3)


def test_readers_get_what_is_around_a_damaged_range(log: Log) -> None:
    assert log.note_damage(Damage(0, 0, 0, 3, 5, "bad"))
    assert not log.note_damage(Damage(0, 0, 0, 3, 5, "bad"))
    assert [offset for offset, _ in read_records(log, 0)] == [0, 1, 2]
    for offset in (3, 4):
        with pytest.raises(CorruptBatchError, match="offsets 3 to 4 are damaged"):
            log.read(offset, 10_000, BATCHES)
    assert [offset for offset, _ in read_records(log, 5)][:2] == [5, 6]


def test_a_replaced_range_is_read_again(log: Log) -> None:
    damage = Damage(0, 0, 0, 3, 5, "bad")
    log.note_damage(damage)
    assert log.is_damaged_at(damage)
    log.forget_damage(damage)
    assert log.damaged is None
    assert len(read_records(log, 0)) == BATCHES


@pytest.mark.parametrize("change", [lambda log: log.truncate_to(2), lambda log: log.increment_log_start_offset(6)])
def test_damage_goes_with_its_records(log: Log, change: object) -> None:
    log.note_damage(Damage(0, 0, 0, 3, 5, "bad"))
    change(log)  # type: ignore[operator]
    assert log.damaged is None


def test_several_ranges_are_kept_apart() -> None:
    ranges = DamagedRanges()
    for offset in (20, 10):
        ranges.add(Damage(0, offset, offset + 1, offset, offset + 5, "bad"))
    assert ranges.readable_up_to(0, 100) == 10
    assert ranges.readable_up_to(15, 100) == 20
    assert ranges.readable_up_to(25, 100) == 100


def test_a_cold_read_is_checked_batch_by_batch(log: Log) -> None:
    segment = log.segments.first
    whole = bytearray(FileSlice(segment.file, 0, segment.size_bytes).read())
    assert not has_bad_batch(whole)
    assert not has_bad_batch(whole[:-5])  # the limit of the fetch cut the last batch
    whole[-1] ^= 1
    assert has_bad_batch(whole)


def test_a_cold_read_does_not_pass_on_a_batch_that_the_file_cuts_off(log: Log) -> None:
    """The bytes of the next segment would follow in the response, as if they belonged to the batch."""
    segment = log.segments.first
    limited = FileSlice(segment.file, 0, segment.size_bytes - 5)
    assert not limited.is_damaged(limited.read()), "the limit of the fetch cut the last batch"
    with Path(segment.log_path).open("r+b") as file:
        file.truncate(segment.size_bytes - 5)
    assert limited.is_damaged(limited.read())


@pytest.mark.parametrize("max_bytes", [1, 75, 77, 80, 100, 10_000])
def test_a_cold_read_does_not_pass_on_a_raised_base_offset(log: Log, max_bytes: int) -> None:
    """Wherever the response is cut off: the next batch or the next segment tells."""
    for segment in log.segments:
        for position, header in segment.headers():
            (good, *_) = log.read(header.base_offset, max_bytes, log.log_end_offset)
            part = good.part(0, max(max_bytes, header.size_bytes))
            assert not part.is_damaged(part.read())
            write(segment, position + 6, b"\x01")
            is_last_of_all = header.next_offset == log.log_end_offset
            assert part.is_damaged(part.read()) != is_last_of_all, header.base_offset
            write(segment, position + 6, b"\x00")


def test_a_cold_read_checks_base_offsets_which_the_checksum_does_not_cover(log: Log) -> None:
    segment = log.segments.first
    whole = bytearray(FileSlice(segment.file, 0, segment.size_bytes).read())
    first, second, *_ = [position for position, _ in segment.headers()]
    assert whole[second + 7] == 1
    for position, offset in ((first, 1), (second, 3), (second, 0)):
        changed = bytearray(whole)
        changed[position + 7] = offset
        assert has_bad_batch(changed), (position, offset)
        assert has_bad_batch(changed[: second + 8]) == (offset < 3), "the second batch is cut off"


def test_parts_of_a_slice_know_whether_they_start_a_batch(log: Log) -> None:
    whole = FileSlice(log.segments.first.file, 0, 200)
    assert whole.part(0, 100).starts_batch
    assert not whole.part(100, 100).starts_batch
    assert not whole.part(100, 100).part(0, 50).starts_batch


@pytest.mark.parametrize("progress", [ScrubProgress(7), ScrubProgress(7, TopicPartition("a topic", 3), 4711)])
def test_progress_survives_a_restart(tmp_path: Path, progress: ScrubProgress) -> None:
    write_scrub_progress(OsDisk(), str(tmp_path), progress)
    assert read_scrub_progress(OsDisk(), str(tmp_path)) == progress


@pytest.mark.parametrize("content", [b"", b"1\n", b"1\nx\n", b"2\n7\n", b"1\n7\ntopic\n", b"\xff\xfe"])
def test_unreadable_progress_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "scrub-progress").write_bytes(content)
    assert read_scrub_progress(OsDisk(), str(tmp_path)) is None


def test_a_round_goes_on_behind_its_progress() -> None:
    progress = ScrubProgress(7, TopicPartition("b", 1), 100)
    assert [progress.is_behind(TopicPartition(*where), offset) for where, offset in
            [(("a", 9), 500), (("b", 1), 100), (("b", 1), 200), (("b", 2), 0), (("c", 0), 0)]] == [
        False, False, True, True, True]  # fmt: skip


# ---- indexes


def index_problems(log: Log, segment: Segment, *, repair: bool = False) -> list[str]:
    scrubbed = SegmentScrub(log, segment)
    while not scrubbed.is_done:
        scrubbed.step(1 << 20)
    assert scrubbed.found == []
    if repair and scrubbed.wrong_indexes:
        scrubbed.repair_indexes()
    return scrubbed.wrong_indexes


def test_every_changed_byte_of_an_index_is_found_and_the_index_rebuilt(log: Log) -> None:
    for number in range(BATCHES):
        append(log, b"later", timestamp=NOW_MS + number + 1, epoch=3)
    for segment in list(log.segments)[:-1]:
        for index, name in ((segment.offset_index, "offset index"), (segment.time_index, "time index")):
            good = Path(index.path).read_bytes()
            assert good, "there is something to change"
            for at in range(len(good)):
                changed = bytearray(good)
                changed[at] ^= 0x41
                Path(index.path).write_bytes(changed)
                assert index_problems(log, segment, repair=True) == [name]
                assert Path(index.path).read_bytes() == good
                assert index_problems(log, segment) == []


@pytest.mark.parametrize("lost_bytes", [1, 12, 24])
@pytest.mark.parametrize("index", ["offset index", "time index"])
def test_an_index_that_has_lost_its_end_is_found_and_rebuilt(log: Log, index: str, lost_bytes: int) -> None:
    segment = log.segments.first
    path = Path((segment.offset_index if index == "offset index" else segment.time_index).path)
    content = path.read_bytes()
    path.write_bytes(content[:-lost_bytes])
    assert len(read_records(log)) == BATCHES, "readers walk over the batches instead"
    assert index_problems(log, segment, repair=True) == [index]
    assert path.read_bytes() == content
    assert index_problems(log, segment) == []


def test_a_segment_that_has_lost_everything_is_reported_to_readers_as_damaged(log: Log) -> None:
    segment = log.segments.first
    Path(segment.log_path).write_bytes(b"")
    with pytest.raises(CorruptBatchError):
        log.read(1, 10, log.log_end_offset)


def test_an_entry_of_the_transaction_index_without_a_marker_is_found(tmp_path: Path) -> None:
    log = reopen(OsDisk(), CONFIG, str(tmp_path / "log-0"))
    for number in range(4):
        append(log, b"aborted", producer_id=7, producer_epoch=0, base_sequence=number, transactional=True)
        log.append_as_leader(marker(7, 0, commit=False), 0, NOW_MS, from_client=False)
    segment = log.segments.first
    assert index_problems(log, segment) == []
    path = Path(segment.transaction_index.path)
    good = path.read_bytes()
    for changed in (good[:5] + b"\x55" + good[6:], good[:-1]):
        path.write_bytes(changed)
        segment.transaction_index = TransactionIndex(OsDisk(), str(path))
        assert index_problems(log, segment) == ["transaction index"]


# ---- leader epochs


@pytest.mark.parametrize(
    "entries",
    [
        [(0, 0), (7, 5), (9, 10)],
        [(3, 0), (4, 5), (5, 10)],
        [(0, 0), (1, 8), (2, 10)],
        [(0, 0), (1, 3), (2, 10)],
        [(0, 0), (2, 10)],
        [(0, 0), (1, 5), (2, 7)],
    ],
)
def test_wrong_epochs_are_rebuilt_and_no_good_batch_is_called_damaged(log: Log, entries: list[tuple[int, int]]) -> None:
    whole = LogConfig(segment_bytes=1 << 20)
    log = reopen(log.log_directory.disk, whole, log.directory + "-whole")
    for number in range(BATCHES):
        append(log, b"value %d" % number, epoch=number // 5)
    log.epochs.replace(entries)
    scrubbed = SegmentScrub(log, log.segments.first)
    while not scrubbed.is_done:
        scrubbed.step(1)
    assert scrubbed.are_epochs_wrong
    repair = EpochRepair(log)
    append(log, b"newer", epoch=12)
    repair.read()
    assert repair.apply(log)
    assert log.epochs.entries == [(0, 0), (1, 5), (2, 10), (12, BATCHES)]
    assert all_damage(log) == []
    log.close()
    assert reopen(OsDisk(), whole, log.directory, was_clean_stop=True).epochs.entries[:3] == [(0, 0), (1, 5), (2, 10)]


def test_a_batch_with_a_damaged_epoch_changes_no_epochs(log: Log) -> None:
    segment = log.segments.first
    position = [position for position, _ in segment.headers()][1]
    write(segment, position + 12, b"\x10")
    scrubbed = SegmentScrub(log, segment)
    while not scrubbed.is_done:
        scrubbed.step(1)
    assert not scrubbed.are_epochs_wrong
    assert [(damage.offset, damage.end_offset) for damage in scrubbed.found] == [(1, 2)]
    with pytest.raises(CorruptBatchError, match="follows"):
        EpochRepair(log).read()


def test_epochs_are_not_rebuilt_from_a_log_that_was_truncated_meanwhile(log: Log) -> None:
    repair = EpochRepair(log)
    repair.read()
    log.truncate_to(7)
    assert not repair.apply(log)
    assert log.epochs.entries == [(0, 0), (1, 5)]


def test_rebuilt_epochs_begin_at_the_log_start(log: Log) -> None:
    repair = EpochRepair(log)
    repair.read()
    log.increment_log_start_offset(6)
    assert repair.apply(log)
    assert log.epochs.entries == [(1, 6), (2, 10)]
