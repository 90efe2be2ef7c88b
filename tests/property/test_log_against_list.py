"""A log behaves like a list of batches: through appends, cuts at both ends, restarts and power cuts."""

from contextlib import suppress
from random import Random
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from logs import DIRECTORY, NOW_MS, append, batch, read_bytes, read_records, records, reopen
from simulated_disk import SimulatedDisk

from sskafka.records.batch import iter_headers
from sskafka.storage import batch_count
from sskafka.storage.errors import CorruptBatchError, OffsetOutOfRangeError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.record_count import Uncounted

PRODUCER_ID = 7


class LogAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.small_slices = patch.object(batch_count, "SLICE_HEADERS", 2)
        self.small_slices.start()
        self.disk = SimulatedDisk()
        self.now_ms = NOW_MS
        self.epoch = 0
        self.sequence = 0

    def teardown(self) -> None:
        self.small_slices.stop()

    @initialize(segment_bytes=st.sampled_from([200, 700, 5000]), interval=st.sampled_from([0, 100, 4096]))
    def open(self, segment_bytes: int, interval: int) -> None:
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = reopen(self.disk, self.config)
        self.model: dict[int, bytes] = {}  # offset -> value
        self.ends: list[int] = []  # where each batch ends
        self.start = 0
        self.end = 0
        self.written = 0
        self.uncounted: Uncounted | None = None

    # ---- what happens to a log

    @rule(count=st.integers(1, 5), size=st.integers(0, 90), idempotent=st.booleans())
    def append(self, count: int, size: int, idempotent: bool) -> None:
        values = [b"%d:" % (self.written + n) + b"x" * size for n in range(count)]
        self.written += count
        self.now_ms += 10
        fields = {}
        if idempotent:
            fields = {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": self.sequence}
        info = self.log.append_as_leader(batch(*values, timestamp=self.now_ms, **fields), self.epoch, self.now_ms)
        assert (info.base_offset, info.last_offset) == (self.end, self.end + count - 1)
        if idempotent:
            self.sequence += count
            self.last_idempotent = (info, batch(*values, timestamp=self.now_ms, **fields))
        self._remember(values)

    @rule(count=st.integers(1, 3))
    def follow(self, count: int) -> None:
        values = [b"followed %d" % (self.written + n) for n in range(count)]
        self.written += count
        self.log.append_as_follower(batch(*values, base_offset=self.end, leader_epoch=self.epoch))
        self._remember(values)

    def _remember(self, values: list[bytes]) -> None:
        self.model |= {self.end + n: value for n, value in enumerate(values)}
        self.end += len(values)
        self.ends.append(self.end)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, 0)
        kept = [end for end in self.ends if end <= target]
        expected = target if target >= self.end else max([*kept, self._first_base()])
        end = self.log.truncate_to(target)
        assert end in {expected, target}
        self._forget_from(end)
        assert self.log.log_end_offset == end

    def _first_base(self) -> int:
        return self.log.segments.first.base_offset

    def _forget_from(self, end: int) -> None:
        self.model = {offset: value for offset, value in self.model.items() if offset < end}
        self.ends = [known for known in self.ends if known <= end]
        self.end = end
        self.start = min(self.start, end)
        # A producer whose batches were cut off may begin anew, as one that failed over would.
        entry = self.log.producers.producers.get(PRODUCER_ID)
        self.sequence = 0 if entry is None else entry.last_sequence + 1

    @rule(forward=st.integers(0, 10))
    def delete_records(self, forward: int) -> None:
        target = min(self.start + forward, self.end)
        self.log.increment_log_start_offset(target)
        self.start = max(self.start, target)
        self.model = {offset: value for offset, value in self.model.items() if offset >= self.start}

    @rule(offset=st.integers(0, 50))
    def start_elsewhere(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(self.end + offset)
        self._forget_from(0)
        self.model, self.ends = {}, []
        self.start = self.end = self.end_of_log()

    def end_of_log(self) -> int:
        return self.log.log_end_offset

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.log = reopen(
            self.disk, self.config, log_start_offset=self.start, recovery_point=self.end, was_clean_stop=True
        )
        assert self.log.log_end_offset == self.end

    @rule()
    def kill_and_start(self) -> None:
        """Without a power cut nothing is lost."""
        self.log = reopen(self.disk, self.config, log_start_offset=self.start, recovery_point=self.log.recovery_point)
        assert self.log.log_end_offset == self.end

    @rule(seed=st.integers(0, 2**32))
    def cut_power(self, seed: int) -> None:
        """What was flushed survives; of the rest a prefix."""
        durable = self.log.recovery_point
        self.disk.crash(Random(seed))
        self.log = reopen(self.disk, self.config, log_start_offset=self.start, recovery_point=durable)
        assert durable <= self.log.log_end_offset <= max(self.end, self.start)
        self._forget_from(self.log.log_end_offset)

    @precondition(lambda self: self.sequence > 0 and self.log.producers.producers.get(PRODUCER_ID) is not None)
    @rule()
    def repeat_newest(self) -> None:
        """A batch that is in the log is answered with the offsets it has."""
        info, repeated = self.last_idempotent
        entry = self.log.producers.producers[PRODUCER_ID]
        if entry.batches and entry.last_offset == info.last_offset:
            again = self.log.append_as_leader(repeated, self.epoch, self.now_ms)
            assert again.duplicate
            assert (again.base_offset, again.last_offset) == (info.base_offset, info.last_offset)

    @rule()
    def count_slice(self) -> None:
        """A thread counts while the log changes: the slice may have been handed out earlier."""
        uncounted, self.uncounted = self.uncounted, self.log.uncounted_batches()
        with suppress(CorruptBatchError):  # the batches were cut off
            if uncounted is not None:
                uncounted.read_slice()

    @rule()
    def count_all(self) -> None:
        assert self.log.record_count() == len(self.model)

    # ---- what must hold

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        assert self.log.log_start_offset == self.start
        assert self.log.log_end_offset == self.end
        assert dict(read_records(self.log)) == self.model
        assert self.log.known_record_count() in {None, len(self.model)}

    @rule(place=st.floats(0, 1), up_to=st.floats(0, 1), max_bytes=st.integers(0, 600), min_one=st.booleans())
    def read_somewhere(self, place: float, up_to: float, max_bytes: int, min_one: bool) -> None:
        offset = self.start + round(place * (self.end - self.start))
        limit = offset + round(up_to * (self.end - offset))
        data = read_bytes(self.log, offset, max_bytes, limit, min_one)
        whole = _whole_batches(data)
        found = [at for at, _ in records(whole)]
        assert all(at < limit for at in found)
        assert found == list(range(found[0], found[0] + len(found))) if found else True
        readable = [end for end in self.ends if end > offset]
        if readable and readable[0] <= limit and (min_one or len(data) == len(whole) > 0):
            assert found[0] <= offset <= found[-1], "the first batch is the one with the offset"
        assert len(data) <= max_bytes or (min_one and len(list(iter_headers(data))) == 1)

    @rule(outside=st.integers(1, 5))
    def read_outside(self, outside: int) -> None:
        for offset in (self.start - outside, self.end + outside):
            try:
                self.log.read(offset, 100, self.end)
            except OffsetOutOfRangeError:
                continue
            raise AssertionError(f"offset {offset} could be read")

    @rule(back_ms=st.integers(-5, 200))
    def look_up_time(self, back_ms: int) -> None:
        target = self.now_ms - back_ms
        stamps = [
            (record_offset, timestamp)
            for record_offset, timestamp in self._timestamps()
            if timestamp >= target and record_offset >= self.start
        ]
        found = self.log.offset_for_timestamp(target)
        assert (found and (found.offset, found.timestamp)) == (stamps[0] if stamps else None)

    def _timestamps(self) -> list[tuple[int, int]]:
        view = memoryview(read_bytes(self.log, self.start))
        return [
            (header.base_offset + n, header.base_timestamp)
            for _, header in iter_headers(view)
            for n in range(header.record_count)
        ]


def _whole_batches(data: bytes) -> bytes:
    """What a client keeps: everything but a batch that was cut off at the end."""
    position = 0
    while len(data) - position >= 12:
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        position += size
    return data[:position]


LogAgainstList.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase


def test_many_segments_survive_a_restart() -> None:
    disk = SimulatedDisk()
    config = LogConfig(segment_bytes=300)
    log = reopen(disk, config)
    for number in range(200):
        append(log, b"%d" % number)
    log.close()
    assert len(log.segments) > 20
    again = reopen(disk, config, was_clean_stop=True)
    assert read_records(again) == [(number, b"%d" % number) for number in range(200)]
    assert [path for path in disk.nodes if path.startswith(DIRECTORY) and path.endswith(".log")]
