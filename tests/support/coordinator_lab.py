"""A shard without a broker: its log in memory, in virtual time, with a high watermark that tests move."""

from collections.abc import Callable
from typing import Any

from group_lab import Asked
from virtual_time import VirtualTime

from sskafka.coordination.context import CoordinatorContext, CoordinatorEnvironment, ShardParameters
from sskafka.coordination.loading import LoadCounters, LoadingTurns
from sskafka.model.computation import Computation
from sskafka.model.coordination import Completion, CoordinatorResult, StateRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.records.batch import assign_offset, read_header
from sskafka.replication.errors import NotLeaderOrFollowerError
from sskafka.runtime.delayed_operation import OffsetWaiters
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.storage.file_slice import FileSlice


class MemoryFile:
    """Batches one behind the other; `is_cold` makes readers take the way through a thread."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_cold = False

    def read_at(self, size: int, position: int) -> bytes:
        return bytes(self.data[position : position + size])

    def read_once(self, size: int, position: int) -> bytes:
        return self.read_at(size, position)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        return None if self.is_cold else self.read_at(size, position)


class MemoryLog:
    """`is_replicated`: the high watermark follows every append by itself."""

    def __init__(self) -> None:
        self.is_leader = True
        self.is_writable = True
        self.is_replicated = True
        self.leader_epoch = 4
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.batch_bytes_max = 1 << 20
        self.append_error: Exception | None = None
        self.append_count = 0
        self.file = MemoryFile()
        self._positions: dict[int, int] = {}
        self.committed_waiters = OffsetWaiters()

    def append(self, batch: bytearray, now_ms: int) -> int:
        if not self.is_leader:
            raise NotLeaderOrFollowerError("somebody else leads")
        if self.append_error is not None:
            raise self.append_error
        assign_offset(batch, 0, self.log_end_offset, self.leader_epoch)
        self._positions[self.log_end_offset] = len(self.file.data)
        self.file.data += batch
        self.append_count += 1
        self.log_end_offset = read_header(batch).next_offset
        if self.is_replicated:
            self.replicate()
        return self.log_end_offset

    def replicate(self) -> None:
        self.high_watermark = self.log_end_offset
        self.committed_waiters.release(self.high_watermark)

    def resign(self) -> None:
        self.is_leader = False
        self.committed_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def read(self, offset: int, max_bytes: int) -> list[FileSlice]:
        if offset >= self.log_end_offset:
            return []
        position = self._positions[offset]
        size = min(max(max_bytes, 200), len(self.file.data) - position)
        return [FileSlice(self.file, position, size)]  # type: ignore[arg-type]


class LoopWork:
    """Turns of the virtual loop; threads finish in a later turn."""

    def __init__(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._call_later = call_later

    def soon(self, work: Callable[[], None]) -> None:
        self._call_later(0, work)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        def run() -> None:
            work()
            done(None)

        self._call_later(0.001, run)


class Sums:
    """A state machine for tests: keys with numbers to add to."""

    def __init__(self, parameters: ShardParameters) -> None:
        self.parameters = parameters
        self.sums: dict[str, int] = {}
        self.pending: dict[int, list[StateRecord]] = {}
        self.parked: list[Completion] = []
        self.is_started = False

    def add(
        self, key: str, number: int, producer: ProducerIdAndEpoch | None = None
    ) -> CoordinatorResult[StateRecord, int]:
        total = self.sums.get(key, 0) + number
        return CoordinatorResult([StateRecord(key.encode(), b"%d" % total)], total, producer=producer)

    def encode(self, record: StateRecord) -> StateRecord:
        return record

    def decode(self, record: StateRecord) -> StateRecord:
        return record

    def decode_in_steps(self, record: StateRecord) -> Computation[StateRecord]:
        yield
        return record

    def replay(self, record: StateRecord, producer: ProducerIdAndEpoch | None) -> None:
        if record.key == b"poison":
            raise ValueError("cannot be replayed")
        if producer is not None:
            self.pending.setdefault(producer.producer_id, []).append(record)
        else:
            self.sums[record.key.decode()] = int(record.value or b"0")

    def replay_end_of_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        for record in self.pending.pop(producer.producer_id, []):
            if is_committed:
                self.replay(record, None)

    def start(self, now_ms: int) -> CoordinatorResult[StateRecord, None]:
        self.is_started = True
        return CoordinatorResult()

    def stop(self) -> list[Completion]:
        return self.parked


class CoordinatorLab:
    def __init__(self, commit_timeout_ms: int = 5_000, **environment: Any) -> None:
        """`environment`: further fields of the CoordinatorEnvironment."""
        self.time = VirtualTime()
        self.log = MemoryLog()
        self.performed: list[object] = []
        wheel = TimerWheel(self.time, self.time.call_later)
        work = LoopWork(self.time.call_later)
        self.environment = CoordinatorEnvironment(
            self.time, wheel, work, commit_timeout_ms, LoadingTurns(work), LoadCounters(), **environment
        )
        self.context = self.begin()

    def begin(self) -> CoordinatorContext[Sums]:
        """A shard as another broker would begin it, from the log alone."""
        self.context = CoordinatorContext(7, self.log, Sums, self.environment, self.performed.append)
        return self.context

    def load(self) -> CoordinatorContext[Sums]:
        self.turn(20)
        assert self.context.shard.is_started
        return self.context

    def turn(self, duration_ms: float = 1) -> None:
        self.time.run_for(duration_ms)

    def add(self, key: str, number: int, producer: ProducerIdAndEpoch | None = None) -> Asked:
        asked = Asked()
        self.context.write(lambda shard, _: shard.add(key, number, producer), asked)
        return asked

    def read(self, key: str) -> Asked:
        asked = Asked()
        self.context.read(lambda shard, _: shard.sums.get(key, 0), asked)
        return asked
