"""Recovery of logs whose files are torn, corrupted, missing, or written by another program."""

import os
from pathlib import Path
from random import Random

import pytest
from logs import DIRECTORY, NOW_MS, append, batch, marker, read_bytes, read_records, reopen, values
from simulated_disk import SimulatedDisk

from sskafka.records.batch import iter_headers
from sskafka.storage.disk import OsDisk
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig

STEM = f"{DIRECTORY}/{0:020d}"


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def path(offset: int, suffix: str) -> str:
    return f"{DIRECTORY}/{offset:020d}{suffix}"


def copy_of(disk: SimulatedDisk) -> SimulatedDisk:
    twin = SimulatedDisk()
    twin.make_directory(DIRECTORY)
    for name, node in disk.nodes.items():
        twin.open(name, create=True).write_at(bytes(node.data), 0)
    return twin


def as_sent(log: Log, up_to: int) -> bytes:
    return read_bytes(log, 0, up_to=up_to)


# ---- torn and flipped


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_tail_torn_at_any_byte_is_cut(disk: SimulatedDisk, idempotent: bool) -> None:
    fields = {"producer_id": 9, "producer_epoch": 0} if idempotent else {}
    log = reopen(disk)
    append(log, b"first", b"second", **fields, **({"base_sequence": 0} if idempotent else {}))
    good_bytes = log.size_bytes
    append(log, b"the last batch", **fields, **({"base_sequence": 2} if idempotent else {}))
    good = as_sent(log, 2)
    for size in range(good_bytes, log.size_bytes):
        torn = copy_of(disk)
        torn.open(STEM + ".log").truncate(size)
        again = reopen(torn)
        assert again.log_end_offset == 2
        assert as_sent(again, 2) == good
        assert torn.open(STEM + ".log").size() == good_bytes
        assert again.producers.producers.keys() == ({9} if idempotent else set())
        assert append(again, b"goes on") == 2
        assert reopen(torn).log_end_offset == 3


def test_a_flipped_bit_is_never_served(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    for n in range(4):
        append(log, b"record %d" % n, epoch=n // 2)
    sent = as_sent(log, 4)
    starts = [position for position, _ in iter_headers(sent)]
    for place in range(len(sent)):
        for bit in range(8):
            flipped = copy_of(disk)
            node = flipped.nodes[STEM + ".log"]
            node.data[place] ^= 1 << bit
            again = reopen(flipped)
            kept = as_sent(again, again.log_end_offset)
            assert len(kept) <= max(start for start in starts if start <= place), f"byte {place} bit {bit}"
            assert sent.startswith(kept)


def test_a_flipped_bit_is_never_appended(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    good = bytes(batch(b"record"))
    for place in range(16, len(good)):  # the leader overwrites base offset and epoch; the length is among these
        flipped = bytearray(good)
        flipped[place] ^= 4
        with pytest.raises(Exception, match=r".+"):
            log.append_as_leader(flipped, 0, NOW_MS)
    assert log.log_end_offset == 0
    assert log.size_bytes == 0


def test_zeros_at_the_end_are_cut(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    size = log.size_bytes
    disk.open(STEM + ".log").write_at(bytes(4096), size)
    assert reopen(disk).log_end_offset == 1
    assert disk.open(STEM + ".log").size() == size


def test_what_lies_behind_a_hole_is_removed(disk: SimulatedDisk) -> None:
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(5):
        append(log, b"%d" % n)
    disk.nodes[path(1, ".log")].data[-1] ^= 1
    again = reopen(disk, config)
    assert read_records(again) == [(0, b"0")]
    assert not disk.exists(path(2, ".log"))
    assert append(again, b"new") == 1


def test_a_lost_tail_of_an_earlier_segment_is_a_hole(disk: SimulatedDisk) -> None:
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(3):
        append(log, b"%d" % n)
    disk.open(path(1, ".log")).truncate(0)
    again = reopen(disk, config)
    assert again.log_end_offset == 1


def test_only_what_lies_behind_the_recovery_point_is_verified(disk: SimulatedDisk) -> None:
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(5):
        append(log, b"%d" % n)
    log.flush()
    log.close()
    reads: set[str] = set()
    disk.fault = lambda operation, name: reads.add(name) if operation == "read" else None
    reopen(disk, config, recovery_point=3)
    assert {os.path.basename(name) for name in reads if name.endswith(".log")} == {f"{n:020d}.log" for n in (3, 4)}


# ---- indexes


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_an_index_torn_anywhere_is_made_anew_after_a_crash(disk: SimulatedDisk, suffix: str) -> None:
    config = LogConfig(index_interval_bytes=100)
    log = reopen(disk, config)
    for n in range(20):
        append(log, b"%d" % n, timestamp=NOW_MS + n)
    append(log, b"t", producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(marker(3, 0, commit=False), 0, NOW_MS, from_client=False)
    log.close()
    whole = bytes(disk.nodes[STEM + suffix].data)
    assert whole
    for size in range(len(whole)):
        torn = copy_of(disk)
        torn.open(STEM + suffix).truncate(size)
        again = reopen(torn, config)
        again.close()
        assert bytes(torn.nodes[STEM + suffix].data) == whole


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_made_anew_after_a_clean_stop(disk: SimulatedDisk, suffix: str) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=100)
    log = reopen(disk, config)
    for n in range(80):
        append(log, b"%d" % n, timestamp=NOW_MS + n)
    log.close()
    assert len(log.segments) > 2
    whole = {name: bytes(node.data) for name, node in disk.nodes.items() if name.endswith(suffix)}
    for name in whole:
        disk.remove(name)
    again = reopen(disk, config, was_clean_stop=True)
    found = again.offset_for_timestamp(NOW_MS + 33)
    assert found is not None
    assert found.offset == 33
    again.close()
    assert {name: bytes(node.data) for name, node in disk.nodes.items() if name.endswith(suffix)} == whole


def test_indexes_without_a_segment_are_removed(disk: SimulatedDisk) -> None:
    reopen(disk).close()
    disk.open(path(77, ".index"), create=True)
    reopen(disk)
    assert not disk.exists(path(77, ".index"))


def test_a_clean_start_reads_only_the_end(disk: SimulatedDisk) -> None:
    config = LogConfig(segment_bytes=1000)
    log = reopen(disk, config)
    for n in range(200):
        append(log, b"%d" % n)
    log.close()
    reads: list[str] = []
    disk.fault = lambda operation, name: reads.append(name) if operation == "read" and name.endswith(".log") else None
    again = reopen(disk, config, was_clean_stop=True)
    assert again.log_end_offset == 200
    assert len(set(reads)) == 1
    assert len(reads) <= 2


# ---- epochs and producers


def test_epochs_are_made_anew_when_the_file_is_lost_or_torn(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    for epoch in (0, 0, 2, 5, 5):
        append(log, b"v", epoch=epoch)
    log.close()
    name = f"{DIRECTORY}/leader-epoch-checkpoint"
    whole = bytes(disk.nodes[name].data)
    assert whole == b"0\n3\n0 0\n2 2\n5 3\n"
    for size in range(len(whole)):
        torn = copy_of(disk)
        torn.open(name).truncate(size)
        again = reopen(torn)
        assert again.epochs.entries == [(0, 0), (2, 2), (5, 3)], f"cut at {size}"
    disk.remove(name)
    assert reopen(disk, was_clean_stop=True).epochs.entries == [(0, 0), (2, 2), (5, 3)]


@pytest.mark.parametrize("segment_bytes", [200, 10_000])
def test_epochs_that_contradict_all_batches_are_made_anew(disk: SimulatedDisk, segment_bytes: int) -> None:
    """A flipped bit in the file, which has no checksum, must not truncate the log."""
    config = LogConfig(segment_bytes=segment_bytes)
    log = reopen(disk, config)
    for number in range(6):
        append(log, b"%d" % number)
    log.flush()
    disk.nodes[f"{DIRECTORY}/leader-epoch-checkpoint"].data[:] = b"0\n1\n1 0\n"
    again = reopen(disk, config, recovery_point=6)
    assert values(read_records(again)) == [b"%d" % number for number in range(6)]
    assert again.epochs.entries == [(0, 0)]


@pytest.mark.parametrize("damaged", [b"7 3", b"5 9", b"4 3", b"5 33"])
@pytest.mark.parametrize("segment_bytes", [80, 10_000])
def test_epochs_that_contradict_the_last_batches_are_made_anew_after_a_clean_stop(
    disk: SimulatedDisk, segment_bytes: int, damaged: bytes
) -> None:
    config = LogConfig(segment_bytes=segment_bytes)
    log = reopen(disk, config)
    for epoch in (0, 0, 2, 5, 5, 5):
        append(log, b"v", epoch=epoch)
    log.close()
    disk.nodes[f"{DIRECTORY}/leader-epoch-checkpoint"].data[:] = b"0\n3\n0 0\n2 2\n" + damaged + b"\n"
    again = reopen(disk, config, was_clean_stop=True)
    assert again.log_end_offset == 6
    if segment_bytes > 80:
        assert again.epochs.entries == [(0, 0), (2, 2), (5, 3)]
    else:
        assert again.epochs.epoch_of(5) != 5, "a single batch decides nothing: its epoch may be the damaged one"


def test_a_single_batch_whose_epoch_is_damaged_does_not_change_the_epochs(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    for number in range(3):
        append(log, b"%d" % number, epoch=1)
    position = [position for position, _ in log.segments.active.headers()][-1]
    log.close()
    disk.nodes[path(0, ".log")].data[position + 12] ^= 0x10  # the leader epoch of the last batch
    assert reopen(disk, was_clean_stop=True).epochs.entries == [(1, 0)]


def test_batches_of_an_epoch_that_another_one_replaced_are_truncated(disk: SimulatedDisk) -> None:
    """After a crash a truncated end of a file may be there again. Its batches agree with each other."""
    log = reopen(disk)
    for number in range(6):
        append(log, b"%d" % number)
    log.flush()
    disk.nodes[f"{DIRECTORY}/leader-epoch-checkpoint"].data[:] = b"0\n2\n0 0\n3 4\n"
    assert reopen(disk, recovery_point=6).log_end_offset == 4


def test_a_snapshot_torn_at_any_byte_is_made_anew(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b", producer_id=4, producer_epoch=1, base_sequence=0)
    append(log, b"c", producer_id=4, producer_epoch=1, base_sequence=2)
    log.close()
    whole = bytes(disk.nodes[path(3, ".snapshot")].data)
    for size in range(len(whole)):
        torn = copy_of(disk)
        torn.open(path(3, ".snapshot")).truncate(size)
        again = reopen(torn, was_clean_stop=True)
        assert again.producers.producers[4].last_sequence == 2
        assert append(again, b"d", producer_id=4, producer_epoch=1, base_sequence=3) == 3


def test_a_snapshot_with_a_flipped_bit_is_not_believed(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b", producer_id=4, producer_epoch=1, base_sequence=0)
    log.close()
    size = len(disk.nodes[path(2, ".snapshot")].data)
    for place in range(size):
        flipped = copy_of(disk)
        flipped.nodes[path(2, ".snapshot")].data[place] ^= 16
        entry = reopen(flipped, was_clean_stop=True).producers.producers[4]
        assert (entry.producer_epoch, entry.last_sequence, entry.last_offset) == (1, 1, 1)


def test_snapshots_of_deleted_segments_go_with_them(disk: SimulatedDisk) -> None:
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(5):
        append(log, b"%d" % n)
    log.increment_log_start_offset(3)
    log.close()
    reopen(disk, config, log_start_offset=3, was_clean_stop=True)
    snapshots = sorted(int(name[-29:-9]) for name in disk.nodes if name.endswith(".snapshot"))
    assert snapshots == [3, 4, 5]


# ---- logs of others


def test_a_log_without_any_other_file_is_served(disk: SimulatedDisk) -> None:
    """First offset 1, no indexes, no checkpoints, the same producer and sequence in every batch."""
    disk.make_directory(DIRECTORY)
    foreign = b"".join(
        batch(b"%d" % n, base_offset=n, producer_id=0, producer_epoch=0, base_sequence=0, leader_epoch=1)
        for n in (1, 2, 3)
    )
    disk.open(STEM + ".log", create=True).write_at(foreign, 0)
    log = reopen(disk)
    assert (log.log_start_offset, log.log_end_offset) == (0, 4)
    assert as_sent(log, 4) == foreign
    assert append(log, b"ours", epoch=1) == 4
    log = reopen(disk, recovery_point=4)
    assert as_sent(log, 4) == foreign
    assert log.log_end_offset == 5


def test_records_are_not_looked_at(disk: SimulatedDisk) -> None:
    from sskafka.records.batch import write_crc

    disk.make_directory(DIRECTORY)
    foreign = batch(b"value", leader_epoch=0)
    foreign[-1] = 1  # a header count of -1
    write_crc(foreign, 0, len(foreign))
    disk.open(STEM + ".log", create=True).write_at(foreign, 0)
    assert as_sent(reopen(disk), 1) == bytes(foreign)


def test_a_log_that_lost_more_than_was_deleted_begins_at_its_start_offset(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", b"b")
    again = reopen(disk, log_start_offset=10)
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)
    assert append(again, b"c") == 10


def test_leftovers_of_a_compaction_that_did_not_finish_are_removed(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    disk.open(path(0, ".log.cleaned"), create=True).write_at(b"half", 0)
    assert reopen(disk).log_end_offset == 1
    assert not disk.exists(path(0, ".log.cleaned"))


def compacted(disk: SimulatedDisk) -> None:
    """Four segments of one record each, and what a compaction of the first three wrote: the record at 1 alone."""
    log = reopen(disk, LogConfig(segment_bytes=100))
    for n in range(4):
        append(log, b"%d" % n)
    log.close()
    kept = batch(b"1", base_offset=1, leader_epoch=0)
    disk.open(path(0, ".log.swap"), create=True).write_at(kept + batch(b"2", base_offset=2, leader_epoch=0), 0)
    disk.open(path(0, ".index.swap"), create=True)
    disk.open(path(0, ".timeindex.swap"), create=True)


@pytest.mark.parametrize("deleted", [[], [0], [0, 1], [0, 1, 2]])
def test_a_compaction_that_had_finished_takes_its_place(disk: SimulatedDisk, deleted: list[int]) -> None:
    compacted(disk)
    for offset in deleted:
        disk.rename(path(offset, ".log"), path(offset, ".log.deleted"))
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    assert read_records(log) == [(1, b"1"), (2, b"2"), (3, b"3")]
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert not any(name.endswith((".swap", ".deleted")) for name in disk.nodes)


def test_a_compaction_that_had_not_finished_is_forgotten(disk: SimulatedDisk) -> None:
    compacted(disk)
    disk.open(path(0, ".log.cleaned"), create=True)
    log = reopen(disk, LogConfig(cleanup_policy=("compact",)))
    assert read_records(log) == [(n, b"%d" % n) for n in range(4)]


def test_a_batch_that_jumps_ahead_of_those_behind_it_is_the_bad_one(disk: SimulatedDisk) -> None:
    """In a log of others gaps are allowed, but not an offset that the next batch contradicts."""
    disk.make_directory(DIRECTORY)
    good, jumping, behind = (batch(b"%d" % n, base_offset=n, leader_epoch=0) for n in (0, 1, 2))
    jumping[7] = 200
    disk.open(STEM + ".log", create=True).write_at(good + jumping + behind, 0)
    log = reopen(disk)
    assert as_sent(log, log.log_end_offset) == bytes(good)


@pytest.mark.parametrize("seed", range(10))
def test_what_was_recovered_is_on_disk(disk: SimulatedDisk, seed: int) -> None:
    """A kill leaves it in the system's memory; the recovery point that a start reports must hold without power."""
    config = LogConfig(segment_bytes=100)
    log = reopen(disk, config)
    for n in range(4):
        append(log, b"%d" % n)
    log = reopen(disk, config)
    assert log.recovery_point == 4
    disk.crash(Random(seed))
    assert reopen(disk, config, recovery_point=4).log_end_offset == 4


# ---- not even files


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("kind", ["directory", "link"])
@pytest.mark.parametrize("clean_stop", [True, False])
def test_what_is_no_file_is_set_aside_and_the_file_rebuilt(
    tmp_path: Path, suffix: str, kind: str, clean_stop: bool
) -> None:
    directory, disk = tmp_path / "t-0", OsDisk()
    log = reopen(disk, directory=str(directory))
    append(log, b"aborted", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.append_as_leader(marker(7, 0, commit=False), 0, NOW_MS, from_client=False)
    log.advance_high_watermark(2)
    log.close()
    stem = f"{2 if suffix == '.snapshot' else 0:020d}"
    wrong = directory / (stem + suffix)
    wrong.unlink(missing_ok=True)
    if kind == "directory":
        wrong.mkdir()
        (wrong / "something").touch()
        (directory / (wrong.name + ".unexpected")).mkdir()
    else:
        wrong.symlink_to(tmp_path / "nowhere")
    again = reopen(disk, directory=str(directory), was_clean_stop=clean_stop, recovery_point=2)
    assert again.log_end_offset == 2
    assert [aborted.producer_id for aborted in again.segments.first.transaction_index] == [7]
    assert 7 in again.producers.producers
    again.close()
    assert any(path.name.startswith(wrong.name + ".unexpected") for path in directory.iterdir())
    assert not wrong.is_dir()
