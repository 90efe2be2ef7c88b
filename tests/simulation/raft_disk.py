"""A disk that keeps synced and unsynced changes apart: a crash loses the latter, all of them or those at the end."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import LOG_BEGINNING, OffsetAndEpoch, RaftBatch, SnapshotId, log_contains


@dataclass(slots=True)
class LogContent:
    """A log from the end of a snapshot (or offset 0) on."""

    start: SnapshotId = LOG_BEGINNING
    batches: list[RaftBatch] = field(default_factory=list)

    def copy(self) -> "LogContent":
        return LogContent(self.start, list(self.batches))

    @property
    def end(self) -> OffsetAndEpoch:
        last = self.batches[-1] if self.batches else None
        return OffsetAndEpoch(last.end_offset, last.epoch) if last else self.start

    def index_of(self, offset: int) -> int:
        return bisect_left(self.batches, offset, key=lambda batch: batch.base_offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        after = bisect_right(self.batches, epoch, key=lambda batch: batch.epoch)
        if after:
            return OffsetAndEpoch(self.batches[after - 1].end_offset, self.batches[after - 1].epoch)
        return self.start if self.start.epoch <= epoch else None

    def holds(self, batch: RaftBatch) -> bool:
        """Whether the batch is in the log or in the snapshot that it starts at."""
        if batch.end_offset <= self.start.offset:
            return True
        index = self.index_of(batch.base_offset)
        return index < len(self.batches) and self.batches[index] == batch

    def between(self, start_offset: int, end_offset: int) -> list[RaftBatch]:
        return self.batches[self.index_of(start_offset) : self.index_of(end_offset)]

    def append(self, batches: tuple[RaftBatch, ...]) -> None:
        assert batches[0].base_offset == self.end.offset, f"a gap in the log: {batches[0]} after {self.end}"
        self.batches.extend(batches)

    def truncate(self, offset: int) -> None:
        del self.batches[self.index_of(offset) :]

    def trim(self, snapshot_id: SnapshotId) -> None:
        if snapshot_id.offset > self.start.offset:
            del self.batches[: self.index_of(snapshot_id.offset)]
            self.start = snapshot_id

    def restart(self, snapshot_id: SnapshotId) -> None:
        self.batches.clear()
        self.start = snapshot_id


Change = tuple[str, object]


class SimulatedDisk:
    """What one node has stored. `live` is what it reads, `durable` what is left for sure after a crash."""

    def __init__(self) -> None:
        self.live = LogContent()
        self.durable = LogContent()
        self.quorum_state = ElectionState()
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.unfinished: dict[SnapshotId, bytearray] = {}
        self._unsynced: list[Change] = []
        self._synced_count = 0
        self.synced_offset = 0
        """What the file of that name says: the node once had everything before it on the disk."""
        self.lost: list[LogContent] = []
        """The durable log as it was before each damage, until the node has regained what it lost."""

    # --- what the machine asks ------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        return self.live.start.offset

    @property
    def end_offset(self) -> int:
        return self.live.end.offset

    @property
    def last_epoch(self) -> int:
        return self.live.end.epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        return self.live.end_offset_for_epoch(epoch)

    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        snapshot = self.snapshots.get(snapshot_id)
        return None if snapshot is None else len(snapshot)

    # --- changes of the log -----------------------------------------------------------------------

    def change(self, name: str, argument: object) -> None:
        """`name` is a method of LogContent."""
        if name == "truncate":
            self._let_go_from(int(str(argument)))
        getattr(self.live, name)(argument)
        self._unsynced.append((name, argument))

    def mark(self) -> int:
        """A point that a flush beginning now will cover."""
        return self._synced_count + len(self._unsynced)

    def sync_up_to(self, mark: int) -> None:
        count = mark - self._synced_count
        if count > 0:
            self._apply(self._unsynced[:count])
            del self._unsynced[:count]
            self._synced_count = mark
            if not self.lost:
                self.synced_offset = self.durable.end.offset

    def _let_go_from(self, offset: int) -> None:
        self.synced_offset = min(self.synced_offset, offset)
        for lost in self.lost:
            lost.truncate(offset)

    def _apply(self, changes: list[Change]) -> None:
        for name, argument in changes:
            getattr(self.durable, name)(argument)

    def read(self, start_offset: int, max_bytes: int) -> tuple[RaftBatch, ...]:
        first = self.live.index_of(start_offset)
        taken, size = [], 0
        for batch in self.live.batches[first:]:
            size += len(batch.data)
            if taken and size > max_bytes:
                break
            taken.append(batch)
        return tuple(taken)

    # --- snapshots ----------------------------------------------------------------------------------

    def write_chunk(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        if position == 0:
            self.unfinished[snapshot_id] = bytearray()
        unfinished = self.unfinished[snapshot_id]
        assert len(unfinished) == position, f"chunk at {position} of a file of {len(unfinished)} bytes"
        unfinished += data

    def finish_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Synced and renamed, the log still as it was: a crash may come in between."""
        self.keep_snapshot(snapshot_id, bytes(self.unfinished.pop(snapshot_id)))

    def keep_snapshot(self, snapshot_id: SnapshotId, content: bytes) -> None:
        self.snapshots = {snapshot_id: content}

    # --- the crash ------------------------------------------------------------------------------------

    def crash(self, random_below: Callable[[int], int]) -> None:
        """Some first part of the unsynced changes got to the disk, perhaps half of one; then the log is recovered."""
        kept = random_below(len(self._unsynced) + 1)
        self._apply(self._unsynced[:kept])
        if kept < len(self._unsynced):
            self._tear(self._unsynced[kept], random_below)
        self._unsynced.clear()
        self._synced_count = 0
        self.unfinished.clear()
        self._restart_behind_snapshot()
        self.live = self.durable.copy()

    def damage(self, random_below: Callable[[int], int]) -> None:
        """A bit of the log flips while the node is down: recovery cuts the log there."""
        if not self.durable.batches:
            return
        before = self.durable.copy()
        self.durable.truncate(self.durable.batches[random_below(len(self.durable.batches))].base_offset)
        self._restart_behind_snapshot()
        self.live = self.durable.copy()
        if self.durable.end.offset < self.synced_offset:
            before.truncate(self.synced_offset)
            self.lost.append(before)

    def regain(self) -> None:
        self.lost.clear()
        self.synced_offset = self.durable.end.offset

    def once_held(self, batch: RaftBatch) -> bool:
        """Whether the node has the batch on its disk, or had it and knows that something is missing."""
        return self.durable.holds(batch) or any(lost.holds(batch) for lost in self.lost)

    def _tear(self, change: Change, random_below: Callable[[int], int]) -> None:
        name, argument = change
        if name == "append":
            assert isinstance(argument, tuple)
            kept = argument[: random_below(len(argument))]
            if kept:
                self.durable.append(kept)

    def _restart_behind_snapshot(self) -> None:
        snapshot_id = self.latest_snapshot_id()
        self.live = self.durable
        if snapshot_id is not None and not log_contains(self, snapshot_id):
            self.durable.restart(snapshot_id)


def batch_at(base_offset: int, epoch: int, record_count: int, data: bytes) -> RaftBatch:
    return RaftBatch(base_offset, base_offset + record_count, epoch, data)
