"""What the machine knows of the log: offsets and epochs. It reads no record and writes none.

 start_offset                       end_offset
     v                                  v
     | epoch 3 | epoch 5   | epoch 6    |
^^^^^
replaced by a snapshot, whose id is (end offset, epoch of the last record in it)
"""

from typing import NamedTuple, Protocol, TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.values import value


class OffsetAndEpoch(NamedTuple):
    """A place in the log: the offset behind a record and the epoch of that record."""

    offset: int
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Raft's "at least as up to date": the later epoch wins, then the longer log."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


SnapshotId: TypeAlias = OffsetAndEpoch

LOG_BEGINNING = OffsetAndEpoch(0, 0)


@value
class Batch:
    """A record batch as a leader sent it: `data` is the driver's business, the rest says where it belongs."""

    base_offset: int
    end_offset: int
    epoch: int
    data: Buffer


class RaftLog(Protocol):
    """Questions only. The answers show every truncation and append of earlier `Ready`s, flushed or not."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, else of the snapshot in front of an empty log, else 0."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """The largest known epoch that is not above `epoch`, and the offset at which it ends.

        A log that starts at 0 knows epoch 0, which ends at 0; one that starts at a snapshot knows the snapshot's
        epoch. None when everything it knows is newer.
        """
        ...

    def latest_snapshot_id(self) -> SnapshotId | None:
        """Its end is never below `start_offset`: a log loses its beginning only to a snapshot that is on the disk."""
        ...

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Bytes of that snapshot, None when it is not (or no longer) there."""
        ...


def log_contains(log: RaftLog, place: OffsetAndEpoch) -> bool:
    """Whether the log goes through `place`.

    One that does not go through the end of its own latest snapshot was left so by a crash between snapshot and log;
    its driver restarts it there before anybody uses it.
    """
    known = log.end_offset_for_epoch(place.epoch)
    return known is not None and known.epoch == place.epoch and place.offset <= known.offset


class LogView:
    """The log as one event sees it. A change that this event asks for is not in the answers yet: asking then fails."""

    __slots__ = ("_log", "_outdated")

    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._outdated = False

    def refresh(self) -> None:
        """At the start of each event: the driver has carried out what the events before it asked for."""
        self._outdated = False

    def outdate(self) -> None:
        self._outdated = True

    @property
    def log(self) -> RaftLog:
        assert not self._outdated, "the log was asked after a change that the driver has not made yet"
        return self._log

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log.end_offset, self.log.last_epoch)

    def contains(self, place: OffsetAndEpoch) -> bool:
        """Whether a log that ends at `place` is a prefix of this one."""
        return log_contains(self.log, place)

    def truncation_target(self, diverging: OffsetAndEpoch) -> int | None:
        """How far back a follower goes, whose leader ends epoch `diverging.epoch` at `diverging.offset`.

        Where the follower lacks that epoch it drops all newer ones, and the next fetch finds the next step (KIP-279).
        """
        known = self.log.end_offset_for_epoch(diverging.epoch)
        if known is None:
            return None
        return min(known.offset, diverging.offset) if known.epoch == diverging.epoch else known.offset
