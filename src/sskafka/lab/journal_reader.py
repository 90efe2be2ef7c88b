"""Read the journal of topics for the lab's /kraft/v1 endpoints, whose offsets are its line numbers.

The broker appends a line when a change is committed (journal_file.py). This side only reads, from where it stopped. If
the journal became shorter or is another file, it was rewritten and is read again.
"""

import os
from typing import NamedTuple

from sskafka.lab.journal import JournalEntry, parse_line

NOTHING = -1


class JournalEnd(NamedTuple):
    """The last line; an empty journal ends at offset -1 in epoch -1."""

    offset: int
    epoch: int

    def is_ahead_of(self, offset: int, epoch: int) -> bool:
        """Return whether a log that ends at `offset` in `epoch` lacks entries. Epoch -1 stands for an empty log."""
        if self.epoch == NOTHING:
            return False
        return epoch == NOTHING or (self.epoch, self.offset) > (epoch, offset)


class Journal:
    """`path` is None if the broker keeps no journal: the journal is empty then."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file_id = 0
        self._read_bytes = 0
        self._entries: list[JournalEntry] = []

    @property
    def is_kept(self) -> bool:
        return self._path is not None

    def end(self) -> JournalEnd:
        entries = self._current()
        return JournalEnd(entries[-1].offset, entries[-1].epoch) if entries else JournalEnd(NOTHING, NOTHING)

    def after(self, offset: int, count: int) -> list[JournalEntry]:
        """Return at most `count` entries after `offset`."""
        return self._current()[offset + 1 : offset + 1 + count]

    def divergence(self, offset: int, epoch: int) -> JournalEnd | None:
        """Return where a log that ends at `offset` in `epoch` diverges from this journal: the largest epoch up to its
        own that both may share, and the last offset of that epoch here. None if this journal continues that log."""
        entries = self._current()
        if NOTHING in {offset, epoch}:
            return None
        if offset < len(entries) and entries[offset].epoch == epoch:
            return None
        shared = [entry for entry in entries[: offset + 1] if entry.epoch <= epoch]
        return JournalEnd(shared[-1].offset, shared[-1].epoch) if shared else JournalEnd(NOTHING, NOTHING)

    def _current(self) -> list[JournalEntry]:
        if self._path is not None:
            try:
                self._read_on(self._path)
            except FileNotFoundError:
                self._forget()
        return self._entries

    def _read_on(self, path: str) -> None:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._file_id or status.st_size < self._read_bytes:
                self._forget()
                self._file_id = status.st_ino
            file.seek(self._read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._entries += [parse_line(line) for line in whole.decode().splitlines(keepends=True)]
        self._read_bytes += len(whole)

    def _forget(self) -> None:
        self._read_bytes = 0
        self._entries = []
