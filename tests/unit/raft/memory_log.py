"""A log in memory with the minimum that the state machine needs."""

from sskafka.raft.log_view import LOG_BEGINNING, OffsetAndEpoch, RaftBatch, SnapshotId


class MemoryLog:
    def __init__(self, *batches: RaftBatch, start: SnapshotId = LOG_BEGINNING) -> None:
        self.start = start
        self.batches = list(batches)
        self.snapshots: dict[SnapshotId, bytes] = {} if start == LOG_BEGINNING else {start: b"snapshot"}

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start.offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.start.epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        known = [batch for batch in self.batches if batch.epoch <= epoch]
        if known:
            return OffsetAndEpoch(known[-1].end_offset, known[-1].epoch)
        return self.start if self.start.epoch <= epoch else None

    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return len(self.snapshots[snapshot_id]) if snapshot_id in self.snapshots else None

    def truncate(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]

    def trim(self, snapshot_id: SnapshotId, content: bytes) -> None:
        self.snapshots = {snapshot_id: content}
        self.batches = [batch for batch in self.batches if batch.base_offset >= snapshot_id.offset]
        self.start = snapshot_id

    def restart(self, snapshot_id: SnapshotId, content: bytes) -> None:
        self.batches = []
        self.trim(snapshot_id, content)


def batch(base_offset: int, epoch: int, data: bytes = b"x", count: int = 1) -> RaftBatch:
    return RaftBatch(base_offset, base_offset + count, epoch, data)
