"""`leader-epoch-checkpoint`: the start offset of each leader epoch in the log.

    0                  version
    2                  number of entries
    0 0                epoch, start offset
    3 1200

Epochs and start offsets both grow. An epoch is written to the file and synced before any batch of that epoch is
acknowledged, so recovery may truncate batches of epochs that are not in the file. Entries at the end are truncated
together with the log. Entries before the log start offset are dropped when the file is next written or loaded.

`unsaved` hands a change to a thread that writes it. Several changes may be pending: an older one never replaces a newer
one.
"""

import threading
from bisect import bisect_right
from itertools import pairwise

from sskafka.model.ids import EpochEnd
from sskafka.storage.checkpoints import read_lines, write_lines
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.sync_gate import RewrittenFile

FILE_NAME = "leader-epoch-checkpoint"
NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    __slots__ = (
        "_disk",
        "_epochs",
        "_path",
        "_saved_version",
        "_start_offsets",
        "_version",
        "_writing",
        "latest_epoch",
    )

    def __init__(self, disk: Disk, path: str, entries: list[tuple[int, int]]) -> None:
        self._disk = disk
        self._path = path
        self._version = -1
        self._writing = threading.Lock()
        self._set(entries)
        self._saved_version = self._version

    @classmethod
    def load(cls, disk: Disk, path: str) -> "LeaderEpochs":
        """Load the file. A missing file counts as empty; raise CorruptFileError if the file cannot be parsed."""
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

    def assign(self, epoch: int, start_offset: int, *, save: bool = True) -> None:
        """Record that `epoch` begins at `start_offset`. Conflicting entries are removed.

        Without `save`, here and in the other methods, the change is made in memory only: the caller must sync `unsaved`
        soon."""
        if epoch == self.latest_epoch:
            return
        kept = [(e, start) for e, start in self.entries if e < epoch and start < start_offset]
        self._change([*kept, (epoch, start_offset)], save)

    def epoch_of(self, offset: int) -> int:
        """Return the epoch that wrote `offset`, or -1 if the offset is before the first known epoch."""
        index = bisect_right(self._start_offsets, offset)
        return self._epochs[index - 1] if index else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return the largest known epoch up to `epoch` and its end offset, or -1 and -1 if there is none."""
        if not self._epochs or epoch == NO_EPOCH or epoch > self.latest_epoch:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        index = bisect_right(self._epochs, epoch)
        known = self._epochs[index - 1] if index else epoch
        return EpochEnd(known, self._start_offsets[index])

    def truncate_from_end(self, end_offset: int, *, save: bool = True) -> None:
        kept = [(epoch, start) for epoch, start in self.entries if start < end_offset]
        if len(kept) != len(self._epochs):
            self._change(kept, save)

    def truncate_from_start(self, start_offset: int, *, save: bool = True) -> None:
        """Drop older entries. The epoch of the new start begins at `start_offset` from now on."""
        index = bisect_right(self._start_offsets, start_offset)
        if index > 1 or (index == 1 and self._start_offsets[0] < start_offset):
            self._change([(self._epochs[index - 1], start_offset), *self.entries[index:]], save)

    def clear(self) -> None:
        self.replace([])

    def replace(self, entries: list[tuple[int, int]], *, save: bool = True) -> None:
        if entries != self.entries:
            self._change(entries, save)

    # ---- the file

    @property
    def is_saved(self) -> bool:
        return self._saved_version >= self._version

    def save(self) -> None:
        self.unsaved().sync()

    def unsaved(self) -> "UnsavedEpochs":
        return UnsavedEpochs(self, self.entries, self._version)

    def write(self, entries: list[tuple[int, int]], version: int) -> None:
        """Write a version of the entries. May run in any thread; an older version never replaces a newer one."""
        with self._writing:
            if version > self._saved_version:
                write_lines(self._disk, self._path, [f"{epoch} {start}" for epoch, start in entries])
                self._saved_version = version

    def _change(self, entries: list[tuple[int, int]], save: bool) -> None:
        """Change the file first, so that a failed write leaves memory unchanged too."""
        if save:
            self.write(entries, self._version + 1)
        self._set(entries)

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._version += 1
        self._epochs = [epoch for epoch, _ in entries]
        self._start_offsets = [start for _, start in entries]
        self.latest_epoch = self._epochs[-1] if self._epochs else NO_EPOCH


class UnsavedEpochs(RewrittenFile):
    """The epochs at one point in time, written when the object is synced."""

    __slots__ = ("_entries", "_epochs", "_version")

    def __init__(self, epochs: LeaderEpochs, entries: list[tuple[int, int]], version: int) -> None:
        self._epochs = epochs
        self._entries = entries
        self._version = version

    def sync(self) -> None:
        self._epochs.write(self._entries, self._version)


def _parse(line: str, path: str) -> tuple[int, int]:
    try:
        epoch, start_offset = map(int, line.split())
    except ValueError as error:
        raise CorruptFileError(f"{path} has the line {line!r}: {error}") from error
    return epoch, start_offset
