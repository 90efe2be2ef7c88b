"""The state machine's view of the log: offsets and epochs only. It neither reads nor writes records.

 start_offset                       end_offset
     v                                  v
     | epoch 3 | epoch 5   | epoch 6    |
^^^^^
replaced by a snapshot with the id (end offset, epoch of its last record)
"""

from typing import NamedTuple, Protocol, TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.values import value


class OffsetAndEpoch(NamedTuple):
    """A position in the log: the offset after a record, and the epoch of that record."""

    offset: int
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Raft's "at least as up to date": the later last epoch wins, then the longer log."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


SnapshotId: TypeAlias = OffsetAndEpoch

LOG_BEGINNING = OffsetAndEpoch(0, 0)


@value
class RaftBatch:
    """A record batch from the leader. Only the driver interprets `data`; the other fields are its position."""

    base_offset: int
    end_offset: int
    epoch: int
    data: Buffer


class RaftLog(Protocol):
    """Read-only queries. The results include the truncations and appends of all earlier `Ready`s, flushed or not."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of an empty log, the epoch of its snapshot; otherwise 0."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """Return the largest known epoch that is not above `epoch`, and its end offset.

        A log that starts at 0 knows epoch 0, which ends at 0; a log that starts at a snapshot knows the epoch of the
        snapshot. Return None if all known epochs are later.
        """
        ...

    def latest_snapshot_id(self) -> SnapshotId | None:
        """Return the id of the latest snapshot on disk.

        Its end offset is never below `start_offset`: records are deleted only after a snapshot replaces them."""
        ...

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Return the size of the snapshot in bytes, or None if it does not exist (any more)."""
        ...


def log_contains(log: RaftLog, position: OffsetAndEpoch) -> bool:
    """Return whether the log contains `position`.

    A log that does not contain the end of its latest snapshot results from a crash between writing the snapshot and
    truncating the log; its driver restarts the log at the snapshot before it is used.
    """
    known = log.end_offset_for_epoch(position.epoch)
    return known is not None and known.epoch == position.epoch and position.offset <= known.offset


class LogView:
    """The log during one event. Queries fail after the event requested a change, which the driver has not made yet."""

    __slots__ = ("_is_stale", "_log")

    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._is_stale = False

    def refresh(self) -> None:
        """Allow queries again: at the start of an event the driver has applied all earlier changes."""
        self._is_stale = False

    def invalidate(self) -> None:
        self._is_stale = True

    @property
    def log(self) -> RaftLog:
        assert not self._is_stale, "the log was queried after a change that the driver has not made yet"
        return self._log

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log.end_offset, self.log.last_epoch)

    def contains(self, position: OffsetAndEpoch) -> bool:
        """Return whether a log that ends at `position` is a prefix of this one."""
        return log_contains(self.log, position)

    def truncation_target(self, diverging: OffsetAndEpoch) -> int | None:
        """Return the offset to which a follower truncates if the leader's epoch `diverging.epoch` ends at `.offset`.

        A follower without that epoch truncates all later epochs; its next fetch finds the next step (KIP-279).
        """
        known = self.log.end_offset_for_epoch(diverging.epoch)
        if known is None:
            return None
        return min(known.offset, diverging.offset) if known.epoch == diverging.epoch else known.offset
