"""Shards that are loaded at the same time share the turns of the event loop."""

from collections import deque
from random import Random

import pytest
from coordinator_lab import CoordinatorLab, MemoryLog
from group_lab import GroupLab

from sskafka.coordination.context import CoordinatorState
from sskafka.coordination.loading import RECORDS_PER_STEP, LoadingTurns, UnreadableRecords, replay_batch
from sskafka.groups.log_records import OffsetRecord
from sskafka.groups.offsets import CommittedOffset
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import HEADER_BYTES, read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage.errors import TemporaryStorageError
from sskafka.storage.file_slice import FileSlice


class Turns:
    """A loop whose turns the test counts."""

    def __init__(self) -> None:
        self.next_turn: list[object] = []

    def soon(self, work: object) -> None:
        self.next_turn.append(work)

    def in_thread(self, work: object, done: object) -> None:
        raise AssertionError("nothing is read")

    def turn(self) -> None:
        due, self.next_turn = self.next_turn, []
        for work in due:
            work()  # type: ignore[operator]


def test_one_loader_a_turn_and_each_gets_its_turn() -> None:
    loop, done = Turns(), list[str]()
    turns = LoadingTurns(loop)  # type: ignore[arg-type]

    def load(name: str, left: int) -> None:
        done.append(name)
        if left > 1:
            turns.soon(lambda: load(name, left - 1))

    for name in "abc":
        turns.soon(lambda name=name: load(name, 2))  # type: ignore[misc]
    for count in range(1, 7):
        loop.turn()
        assert len(done) == count, "no more than one in a turn"
    assert "".join(done) == "abcabc"
    assert not loop.next_turn


def test_a_loader_that_fails_does_not_hold_up_the_next() -> None:
    loop, done = Turns(), list[str]()
    turns = LoadingTurns(loop)  # type: ignore[arg-type]
    turns.soon(lambda: done.append("first"))
    loop.turn()
    turns.soon(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    turns.soon(lambda: done.append("second"))
    try:
        loop.turn()
    except ZeroDivisionError:
        loop.turn()
    assert done == ["first", "second"]


def test_many_coordinators_take_one_turn_of_the_loop_each() -> None:
    lab = CoordinatorLab()
    contexts = [lab.context, *(lab.begin() for _ in range(9))]
    lab.time.step()
    assert sum(context.state is CoordinatorState.ACTIVE for context in contexts) == 1
    lab.turn(50)
    assert all(context.state is CoordinatorState.ACTIVE for context in contexts)


# -- records that cannot be read


def test_a_record_that_cannot_be_replayed_is_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    lab = CoordinatorLab()
    lab.load()
    lab.add("before", 1)
    lab.turn()
    lab.log.append(build_batch([NewRecord(b"poison", b"1"), NewRecord(b"among", b"2")]), 0)
    lab.add("after", 3)
    lab.turn()
    lab.begin()
    lab.load()
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.context.shard.sums == {"before": 1, "among": 2, "after": 3}
    assert lab.environment.loads.unreadable_records == 1
    assert "offset 1 in partition 7 of an internal topic cannot be read and is skipped: ValueError" in caplog.text


def test_a_batch_with_a_wrong_checksum_is_skipped_and_counted() -> None:
    lab = CoordinatorLab()
    lab.load()
    lab.add("before", 1)
    lab.turn()
    damaged_at = len(lab.log.file.data) + HEADER_BYTES
    lab.log.append(build_batch([NewRecord(b"a", b"1"), NewRecord(b"b", b"2")]), 0)
    lab.add("after", 3)
    lab.turn()
    lab.log.file.data[damaged_at] ^= 1
    lab.begin()
    lab.load()
    assert lab.context.shard.sums == {"before": 1, "after": 3}
    assert lab.environment.loads.unreadable_records == 2


def test_a_header_that_hides_the_next_batch_ends_the_load_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    lab = CoordinatorLab()
    lab.load()
    lab.add("before", 1)
    lab.turn()
    length_at = len(lab.log.file.data) + 8
    lab.add("after", 2)
    lab.turn()
    lab.log.file.data[length_at] = 0x7F
    lab.begin()
    lab.turn(20)
    assert lab.context.state is CoordinatorState.STOPPED
    assert "read up to offset 1, cannot be loaded: the batch has" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("seed", range(20))
def test_no_bytes_keep_a_group_coordinator_from_loading(seed: int) -> None:
    """Keys begin with a type that exists, values with a version; the rest is random."""
    random = Random(seed)
    shard = GroupLab().shard
    kinds, unreadable = [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 99], UnreadableRecords(0)
    records = []
    for _ in range(200):
        key = random.choice(kinds).to_bytes(2, "big") + random.randbytes(random.randrange(20))
        value = random.randrange(5).to_bytes(2, "big") + random.randbytes(random.randrange(60))
        records.append(NewRecord(key, random.choice([None, value])))
    batch = build_batch(records)
    deque(replay_batch(shard, batch, read_header(batch), 0, unreadable))
    shard.start(0)
    assert unreadable.count > 0


def test_a_batch_with_thousands_of_records_is_replayed_in_steps() -> None:
    """10,000 offsets of one commit took 50 ms in one turn."""
    shard = GroupLab().shard
    records = [
        NewRecord(*shard.encode(OffsetRecord("g", TopicPartition("t", number), CommittedOffset(number))))
        for number in range(10 * RECORDS_PER_STEP)
    ]
    batch = build_batch(records)
    steps = replay_batch(shard, batch, read_header(batch), 0, UnreadableRecords(0))
    next(steps)
    assert len(shard.offsets.committed("g")) == RECORDS_PER_STEP
    assert len(list(steps)) == 9
    assert len(shard.offsets.committed("g")) == 10 * RECORDS_PER_STEP


def test_a_log_that_cannot_be_read_for_lack_of_descriptors_is_loaded_later(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = CoordinatorLab()
    lab.load()
    lab.add("a", 1)
    lab.turn()
    read, reads_left = MemoryLog.read, [2]

    def lacking(log: MemoryLog, offset: int, max_bytes: int) -> list[FileSlice]:
        if reads_left[0]:
            reads_left[0] -= 1
            raise TemporaryStorageError("cannot read for now")
        return read(log, offset, max_bytes)

    monkeypatch.setattr(MemoryLog, "read", lacking)
    lab.begin()
    lab.turn(1_500)
    assert lab.read("a").code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.turn(1_500)
    assert lab.read("a").response == 1


def test_nothing_is_loaded_later_when_leadership_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(log: MemoryLog, offset: int, max_bytes: int) -> list[FileSlice]:
        raise TemporaryStorageError("cannot read for now")

    monkeypatch.setattr(MemoryLog, "read", lacking)
    lab = CoordinatorLab()
    lab.turn(20)
    lab.context.stop()
    monkeypatch.undo()
    lab.turn(5_000)
    assert lab.context.state is CoordinatorState.STOPPED
