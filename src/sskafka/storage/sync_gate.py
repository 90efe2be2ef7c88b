"""The files that must be on disk before newly appended batches of a log may be acknowledged.

    a new leader epoch       its line in leader-epoch-checkpoint: recovery truncates batches of unknown epochs
    a truncation             the truncated batches must not reappear below the batches that replace them
    a new log                its topic id, and the names of its directory and files

    open --close--> closed: appends continue, their acknowledgements wait --all files synced, in a thread--> open

After a crash the files may be behind the log, but never behind anything that was acknowledged. If the disk has no space
for a small file, the gate stays closed until `try_again` succeeds. Without threads everything is synced at once.
"""

import threading
from collections.abc import Callable, Sequence

from sskafka.storage.flusher import Flusher, FlushPlan, Syncable
from sskafka.storage.log_directory import is_temporary


class SyncGate:
    __slots__ = ("_due", "_flusher", "_on_change", "_permission", "lacks_room")

    def __init__(self, flusher: Flusher, on_change: Callable[[], None]) -> None:
        """`on_change` is called when the gate opens, and when a full disk keeps it closed."""
        self._flusher = flusher.for_small_files
        self._on_change: Callable[[], None] | None = on_change
        self._due: list[_Due] = []
        self._permission = _WritePermission(flusher.note_shortage)
        self.lacks_room = False
        """Whether the last attempt found the disk full."""

    @property
    def is_open(self) -> bool:
        return not self._due

    @property
    def is_threaded(self) -> bool:
        """Whether `close` returns before the files are synced."""
        return self._flusher.is_threaded

    def close(self, *files: Syncable) -> None:
        """Close the gate until these files are synced."""
        self._due += [_Due(file, self._permission) for file in files]
        self._flusher.request_soon(self)

    def try_again(self) -> None:
        if self._due:
            self._flusher.request_soon(self)

    def abandon(self) -> None:
        """Stop all writes, in every thread: the directory may soon belong to another log."""
        with self._permission.writing:
            self._permission.is_abandoned = True
        self._due.clear()
        self._flusher.forget(self)
        self._on_change = None  # which refers to the log, and the log to this gate

    # ---- the gate's part of a flush

    def files_to_sync(self) -> list[Syncable]:
        return list(self._due)

    def has_synced(self, files: Sequence[Syncable]) -> bool:
        """Return whether all files among these that the gate waits for were synced."""
        return all(due.is_done for due in self._due if due in files)

    def forget_synced(self) -> None:
        self._due = [due for due in self._due if not due.is_done]

    def plan_flush(self) -> FlushPlan:
        return FlushPlan(self.files_to_sync(), 0, 0)

    def complete_flush(self, plan: FlushPlan) -> None:
        self.lacks_room = any(due in self._due and not due.is_done for due in plan.files)
        self.forget_synced()
        if self._on_change is not None and (self.is_open or self.lacks_room):
            self._on_change()


class RewrittenFile(Syncable):
    """A file that is rewritten as a whole when it is synced. After a full disk the write can be retried."""


class _WritePermission:
    """Guards writes of threads to a log's directory, which end when the log is abandoned."""

    __slots__ = ("is_abandoned", "note_shortage", "writing")

    def __init__(self, note_shortage: Callable[[OSError], None]) -> None:
        self.note_shortage = note_shortage
        self.writing = threading.Lock()
        self.is_abandoned = False


class _Due:
    __slots__ = ("_file", "_permission", "is_done")

    def __init__(self, file: Syncable, rights: _WritePermission) -> None:
        self._file = file
        self._permission = rights
        self.is_done = False

    def sync(self) -> None:
        if isinstance(self._file, RewrittenFile):
            self._write(self._file)
        else:
            self._file.sync()
            self.is_done = True

    def _write(self, file: RewrittenFile) -> None:
        with self._permission.writing:
            if self._permission.is_abandoned:
                return
            try:
                file.sync()
                self.is_done = True
            except OSError as error:
                if not is_temporary(error):
                    raise
                self._permission.note_shortage(error)
