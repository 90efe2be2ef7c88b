"""`leader-epoch-checkpoint`: which leader epoch wrote which part of the log.

    0                  version
    2                  number of entries
    0 0                epoch, start offset
    3 1200

Epochs and start offsets both grow. An epoch is in the file, synced, before its first batch is in the log, so after
a crash the file knows every epoch that the log can hold. It is cut together with the log, at both ends.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from sskafka.storage.checkpoints import read_lines, write_lines
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError

FILE_NAME = "leader-epoch-checkpoint"
NO_EPOCH = -1
NO_OFFSET = -1


class EpochEnd(NamedTuple):
    epoch: int
    end_offset: int


class LeaderEpochs:
    __slots__ = ("_disk", "_epochs", "_path", "_start_offsets", "latest_epoch")

    def __init__(self, disk: Disk, path: str, entries: list[tuple[int, int]]) -> None:
        self._disk = disk
        self._path = path
        self._set(entries)

    @classmethod
    def load(cls, disk: Disk, path: str) -> "LeaderEpochs":
        """A missing file is an empty one; CorruptFileError when it cannot be read."""
        if not disk.exists(path):
            return cls(disk, path, [])
        entries = [_parse(line, path) for line in read_lines(disk, path)]
        for (epoch, start), (next_epoch, next_start) in pairwise(entries):
            if next_epoch <= epoch or next_start < start:
                raise CorruptFileError(f"{path}: epoch {next_epoch} at {next_start} follows epoch {epoch} at {start}")
        return cls(disk, path, entries)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def __bool__(self) -> bool:
        return bool(self._epochs)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`; entries that contradict it give way."""
        if epoch == self.latest_epoch:
            return
        kept = [(e, start) for e, start in self.entries if e < epoch and start < start_offset]
        self._save([*kept, (epoch, start_offset)])

    def epoch_of(self, offset: int) -> int:
        """The epoch that wrote `offset`, -1 when that is before all that is known."""
        place = bisect_right(self._start_offsets, offset)
        return self._epochs[place - 1] if place else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest known epoch not above `epoch`, and where it ended; -1 and -1 when that cannot be said."""
        if not self._epochs or epoch == NO_EPOCH or epoch > self.latest_epoch:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        place = bisect_right(self._epochs, epoch)
        known = self._epochs[place - 1] if place else epoch
        return EpochEnd(known, self._start_offsets[place])

    def truncate_from_end(self, end_offset: int) -> None:
        kept = [(epoch, start) for epoch, start in self.entries if start < end_offset]
        if len(kept) != len(self._epochs):
            self._save(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """The epoch that covers the new start begins there from now on.

        Even where the file cannot be written: what it says of before the start is cut again when it is loaded."""
        place = bisect_right(self._start_offsets, start_offset)
        if place > 1 or (place == 1 and self._start_offsets[0] < start_offset):
            self._set([(self._epochs[place - 1], start_offset), *self.entries[place:]])
            self._save(self.entries)

    def clear(self) -> None:
        self.replace([])

    def replace(self, entries: list[tuple[int, int]]) -> None:
        if entries != self.entries:
            self._save(entries)

    def _save(self, entries: list[tuple[int, int]]) -> None:
        """The file first: what failed to be written is not believed either."""
        write_lines(self._disk, self._path, [f"{epoch} {start}" for epoch, start in entries])
        self._set(entries)

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._epochs = [epoch for epoch, _ in entries]
        self._start_offsets = [start for _, start in entries]
        self.latest_epoch = self._epochs[-1] if self._epochs else NO_EPOCH


def _parse(line: str, path: str) -> tuple[int, int]:
    try:
        epoch, start_offset = map(int, line.split())
    except ValueError as error:
        raise CorruptFileError(f"{path} has the line {line!r}: {error}") from error
    return epoch, start_offset
