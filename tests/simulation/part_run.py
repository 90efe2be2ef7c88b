"""Two replicas of a compacted log, compacted at different times; one is damaged, and the damaged part is replaced.

Whatever the replacement waits for, a random event may come first: records, transactions, compaction of either replica,
time, DeleteRecords, a new leader epoch, a crash with loss of what was not synced. Invariants, after every attempt:

    a replaced log has no damage, and a reader finds the last value of every key, no more and no less
    a log that is not replaced holds what it held, and damaged offsets are not served
    the log end, the producers and the leader epochs stay as they are
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from compacting import committed_pairs, compact, keyed
from logs import NOW_MS, TP, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.records.batch import read_header
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.part_replacement import PartReplacement
from sskafka.replication.partition import Partition
from sskafka.replication.replica_reader import NotReplaceableError
from sskafka.storage.damage import Damage
from sskafka.storage.errors import CorruptBatchError, CorruptFileError, OffsetOutOfRangeError, StorageError
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.scrubbing import SegmentScrub
from sskafka.storage.segment_swap import remove_cleaned
from sskafka.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

KEYS = [b"%d" % number for number in range(12)]
PRODUCERS = (20, 21)
SOURCE = 2
T = TypeVar("T")


class Killed(BaseException):
    """As kill -9: nothing that runs gets to tidy up."""


class StartRefusedError(Exception):
    """The damage is in a header that a start after a crash needs: it names the file and the repair, and ends."""


class World:
    """The two logs and the truth about their keys. Everything written is on both and committed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = NOW_MS
        self.config = LogConfig(
            segment_bytes=random.choice([200, 400, 1500]),
            index_interval_bytes=100,
            cleanup_policy=("compact",),
            delete_retention_ms=random.choice([500, 5_000]),
        )
        self.disk, self.other_disk = SimulatedDisk(), SimulatedDisk()
        self.log = reopen(self.disk, self.config)
        self.other = reopen(self.other_disk, self.config)
        self.leader_epoch = 0
        self.checkpointed = 0
        self.truth: dict[bytes, tuple[int, bytes | None]] = {}
        """Offset and value of the last committed record of every key."""
        self.open: dict[int, dict[int, tuple[bytes, bytes | None]]] = {}
        """Producer -> offset -> record, in transactions that are open."""
        self.producer_epochs = dict.fromkeys(PRODUCERS, 0)
        self.log_start = 0
        self.written = 0

    # ---- what happens to the partition

    def write(self) -> None:
        random = self.random
        pairs = [(random.choice(KEYS), self._value()) for _ in range(random.choice([1, 1, 2, 4]))]
        producer_id = random.choice([None] * 8 + [*PRODUCERS])
        base_offset = self.log.log_end_offset
        records = {base_offset + place: pair for place, pair in enumerate(pairs)}
        if producer_id is None:
            self._append(keyed(*pairs, timestamp=self.now_ms))
            self._commit(records)
            return
        fields = {"producer_id": producer_id, "producer_epoch": self.producer_epochs[producer_id]}
        fields["base_sequence"] = len(self.open.setdefault(producer_id, {}))
        self._append(keyed(*pairs, timestamp=self.now_ms, transactional=True, **fields))
        self.open[producer_id] |= records

    def _commit(self, records: dict[int, tuple[bytes, bytes | None]]) -> None:
        for offset, (key, value) in records.items():
            self.truth[key] = max(self.truth.get(key, (-1, None)), (offset, value), key=lambda found: found[0])

    def _value(self) -> bytes | None:
        self.written += 1
        return None if self.random.random() < 0.3 else b"%d" % self.written * self.random.choice([1, 5])

    def end_transaction(self) -> None:
        if self.open:
            producer_id = self.random.choice(list(self.open))
            commit = self.random.random() < 0.5
            records = self.open.pop(producer_id)
            self._append(marker(producer_id, self.producer_epochs[producer_id], commit=commit), from_client=False)
            self.producer_epochs[producer_id] += 1
            if commit:
                self._commit(records)

    def _append(self, batch: bytearray, *, from_client: bool = True) -> None:
        self.log.append_as_leader(batch, self.leader_epoch, self.now_ms, from_client=from_client)
        self.other.append_as_follower(bytes(batch), self.now_ms)
        for log in (self.log, self.other):
            log.advance_high_watermark(log.log_end_offset)
            log.flush()
            self._sync_snapshots()

    def _sync_snapshots(self) -> None:
        """A start without producer snapshots reads all batches, the damaged ones too, before the scrub finds them."""
        for path, node in self.disk.nodes.items():
            if path.endswith(".snapshot"):
                node.sync()
        self.disk.sync_directory(self.log.directory)

    def pass_time(self) -> None:
        self.now_ms += self.random.choice([1, 50, 600, 6_000])

    def compact(self, log: Log) -> None:
        if log.is_being_rewritten or log.damaged is not None:
            return
        try:
            compact(log, self.now_ms)
            if log is self.log:
                self.checkpointed = log.first_dirty_offset
        except CorruptBatchError:  # a damaged length below the log start hides where the log begins
            assert log is self.log
            assert self._found_damage(), "a damaged batch that nobody has noticed"
            remove_cleaned(self.disk, log.directory)

    def roll(self, log: Log) -> None:
        log.roll(self.now_ms)

    def change_leader_epoch(self) -> None:
        self.leader_epoch += 1

    def delete_records(self) -> None:
        """Move the start of both logs; what is deleted are older records of keys, so that the truth stays the same."""
        if self.random.random() < 0.8:
            return
        start = min((offset for offset, _ in self.truth.values()), default=0)
        if start > self.log_start and not self.open:
            self.log_start = start
            for log in (self.other, self.log):
                log.increment_log_start_offset(start)

    def damage(self) -> None:
        """Flip a bit in the records of one or two batches, and let the scrub find them."""
        segment = self.random.choice(list(self.log.segments))
        start = self.log.log_start_offset
        batches = [(position, header) for position, header in segment.headers() if header.next_offset > start]
        for position, header in self.random.sample(batches, min(len(batches), self.random.choice([1, 1, 2]))):
            node = self.disk.nodes[segment.log_path]
            at = position + self.random.choice([9, 22, 60, header.size_bytes - 1])
            node.data[at] ^= 0x04
            node.sync()
        self.scrub()

    def scrub(self) -> None:
        for damage in self._found_damage():
            if damage.end_offset > self.log.log_start_offset:
                self.log.note_damage(damage)

    def _found_damage(self) -> list[Damage]:
        found = []
        for segment in list(self.log.segments):
            scrub = SegmentScrub(self.log, segment)
            while not scrub.is_done:
                scrub.step(1 << 20)
            found += scrub.found
        return found

    def crash(self) -> None:
        before = self.log
        self.disk.fault = None
        self.disk.crash(self.random)
        try:
            self.log = self.reopened(before.recovery_point)
        except CorruptFileError as error:
            assert before.damaged is not None
            raise StartRefusedError from error
        self._catch_up(before)
        self.log.advance_high_watermark(self.log.log_end_offset)
        assert not [path for path in self.disk.nodes if path.endswith((".cleaned", ".swap"))]
        self.scrub()

    def _catch_up(self, before: Log) -> None:
        """A start after a crash truncates the segment with the recovery point at its damage; fetch the rest again."""
        log, other = self.log, self.other
        if log.log_end_offset < before.log_end_offset:
            assert any(one.offset <= log.log_end_offset for one in before.damaged or ()), "a crash lost synced records"
            slices = other.read(log.log_end_offset, 1 << 30, other.log_end_offset)
            batches = b"".join(bytes(piece.read()) for piece in slices)
            if log.log_end_offset == log.log_start_offset:  # which may be within a batch
                log.truncate_fully_and_start_at(read_header(batches).base_offset)
            log.append_as_follower(batches, self.now_ms)
            log.increment_log_start_offset(self.log_start)
            log.flush()

    def reopened(self, recovery_point: int) -> Log:
        return reopen(
            self.disk,
            self.config,
            cleaned_before=self.checkpointed,
            recovery_point=recovery_point,
            log_start_offset=self.log_start,
            now_ms=self.now_ms,
        )

    # ---- what a reader sees

    def readable(self) -> list[bytes | None]:
        """What the damaged log serves at each of its offsets; None where it serves an error."""
        return [self._read(offset) for offset in range(self.log.log_start_offset, self.log.log_end_offset)]

    def _read(self, offset: int) -> bytes | None:
        try:
            return b"".join(bytes(piece.read()) for piece in self.log.read(offset, 1, self.log.log_end_offset))
        except CorruptBatchError:
            return None

    def check_truth(self, log: Log) -> None:
        """Compare what a reader finds with the truth. Records of open transactions do not count yet."""
        undecided = {offset for records in self.open.values() for offset in records}
        state = {key: value for offset, key, value in committed_pairs(log) if offset not in undecided}
        alive = {key: value for key, value in state.items() if value is not None}
        expected = {key: value for key, (_, value) in self.truth.items() if value is not None}
        assert alive == expected, f"a reader sees {alive}, not {expected}"


class OtherReplica:
    """A link to the broker with the other log."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ask(self, request: Any, response_class: type, answered: Callable[[Any], None]) -> None:
        assert isinstance(request, FetchRequest)
        wanted = request.topics[0].partitions[0]
        log, data = self._world.other, PartitionData(partition_index=0)
        if wanted.current_leader_epoch != self._world.leader_epoch:
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH
        else:
            try:
                size = self._world.random.choice([1, 300, 5_000])
                slices = log.read(wanted.fetch_offset, size, log.offsets.high_watermark)
                data.records = b"".join(bytes(piece.read()) for piece in slices)
            except OffsetOutOfRangeError:
                data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        answered(FetchResponse(responses=[FetchableTopicResponse(topic_id=ZERO_UUID, partitions=[data])]))

    def close(self) -> None: ...


class Interrupted(Executor):
    """Runs work at once, after whatever may happen first."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        try:
            self._before()
            future.set_result(work(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class PartRun:
    """One seed: some life, damage, attempts to replace the part until one succeeds."""

    part_replacement: type[PartReplacement] = PartReplacement

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(self.random)
        self.is_stormy = self.random.random() < 0.8
        self.compactions = self.random.choice([(1, 1), (6, 0), (0, 6), (4, 4)])
        """How often this log and the other one are compacted."""
        self.replaced = self.refused = self.crashed = 0
        self.reasons: set[str] = set()

    def run(self) -> "PartRun":
        for _ in range(self.random.randint(10, 150)):
            self._live()
        self.world.check_truth(self.world.log)
        for _ in range(self.random.randint(1, 2)):
            self.world.damage()
            self._mend()
            for _ in range(self.random.randint(0, 20)):
                self._live()
            self.world.check_truth(self.world.log)
        self._outlive_tombstones()
        return self

    def _outlive_tombstones(self) -> None:
        """Compact until tombstones are gone: what they have deleted must be gone, too."""
        world = self.world
        while world.open:
            world.end_transaction()
        for _ in range(3):
            world.now_ms += 2 * world.config.delete_retention_ms
            world.write()
            while world.open:
                world.end_transaction()
            world.roll(world.log)
            world.compact(world.log)
            world.check_truth(world.log)

    def _live(self) -> None:
        world = self.world
        happens: list[Callable[[], None]] = [world.write] * 6 + [world.end_transaction] * 3 + [world.pass_time] * 3
        happens += [world.delete_records]
        for log, often in zip((world.log, world.other), self.compactions, strict=True):
            happens += [partial(world.compact, log)] * often + [partial(world.roll, log)] * 2
        self.random.choice(happens)()

    def _mend(self) -> None:
        for attempt in range(60):
            if self.world.log.damaged is None:
                return
            if attempt > 20:  # nothing gets in the way any more
                self.is_stormy = False
                while self.world.open:
                    self.world.end_transaction()
            asyncio.run(self._attempt())
        raise AssertionError(f"the log is never mended: {self.reasons}")

    async def _attempt(self) -> None:
        world = self.world
        log, end_offset, readable = world.log, world.log.log_end_offset, world.readable()
        self.touched = False
        clock = SimpleNamespace(now_ms=lambda: world.now_ms, monotonic_ms=lambda: float(world.now_ms))
        links = ClusterLinks(lambda broker_id: OtherReplica(world), *[None] * 3)  # type: ignore[arg-type]
        parts = self.part_replacement(
            links, Interrupted(self._happens), cast(Any, clock), lambda: 10**12, self._checkpoint
        )
        if self.is_stormy and self.random.random() < 0.3:
            self._kill_at(self.random.randint(0, 60))
        try:
            await parts.replace(self._partition(), SOURCE)
        except NotReplaceableError as error:
            self.refused += 1
            self.reasons.add(str(error))
            if not self.touched:
                assert world.readable() == readable, "an attempt that failed changed the log"
            assert not [path for path in world.disk.nodes if path.endswith((".cleaned", ".swap"))]
        except Killed:
            self.crashed += 1
            world.crash()
        else:
            world.disk.fault = None
            self.replaced += 1
            assert log.damaged is None
            self._check_replaced(log)
        finally:
            world.disk.fault = None
        assert world.log.log_end_offset >= end_offset
        assert not world.log.is_being_rewritten
        if world.log.damaged is None:
            world.check_truth(world.log)

    def _check_replaced(self, log: Log) -> None:
        world = self.world
        world.scrub()
        assert log.damaged is None, "the replaced part is damaged"
        world.check_truth(log)
        entries = {one.producer_id: one.next_sequence for one in log.producers.producers.values()}
        expected = {one.producer_id: one.next_sequence for one in world.other.producers.producers.values()}
        assert entries == expected, "producers"
        again = world.reopened(log.recovery_point)
        assert again.log_end_offset == log.log_end_offset
        world.check_truth(again)
        world.log = again
        again.advance_high_watermark(again.log_end_offset)

    def _checkpoint(self) -> None:
        self.world.checkpointed = self.world.log.first_dirty_offset

    def _kill_at(self, step: int) -> None:
        left = step

        def ask(operation: str, path: str) -> None:
            nonlocal left
            if operation in {"write", "truncate", "sync", "rename", "remove", "sync_directory"}:
                left -= 1
                if left < 0:
                    raise Killed

        self.world.disk.fault = ask

    def _happens(self) -> None:
        if not self.is_stormy or self.random.random() < 0.5:
            return
        world = self.world
        fault, world.disk.fault = world.disk.fault, None
        self.touched = True
        happens: list[Callable[[], None]] = [world.write, world.end_transaction, world.pass_time]
        happens += [lambda: world.compact(world.other)] * 4 + [lambda: world.compact(world.log)]
        if self.random.random() < 0.1:
            happens = [world.delete_records, world.change_leader_epoch]
        self.random.choice(happens)()
        world.disk.fault = fault

    def _partition(self) -> Partition:
        """What the replacement asks a partition for."""
        world = self.world

        class OfWorld:
            topic_partition, topic_id = TP, ZERO_UUID

            @property
            def log(self) -> Log:
                return world.log

            @property
            def leadership(self) -> Any:
                return SimpleNamespace(leader_epoch=world.leader_epoch)

            @property
            def high_watermark(self) -> int:
                return world.log.offsets.high_watermark

        return cast(Partition, OfWorld())


def run_seed(seed: int, run_class: type[PartRun] = PartRun) -> PartRun:
    run = run_class(seed)
    try:
        return run.run()
    except StartRefusedError:
        return run
    except (AssertionError, StorageError, CorruptBatchError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error
