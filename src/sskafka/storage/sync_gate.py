"""What must be on the disk before anything that a log takes from now on may be acknowledged.

    a new leader epoch       its line in leader-epoch-checkpoint: recovery cuts off batches of epochs it does not know
    a cut at the log's end   what was cut off must not come back under what is appended in its place

    open --close--> closed: appends go on, their acknowledgements wait --all of it synced, in a thread--> open

So after a crash the files may be behind the log, but never behind anything that was acknowledged. A disk that has no
room for a small file keeps the gate closed until `try_again` finds some. Without threads everything is synced at once.
"""

from collections.abc import Callable, Sequence

from sskafka.storage.flusher import Flusher, FlushPlan, Syncable
from sskafka.storage.log_directory import is_no_room


class SyncGate:
    __slots__ = ("_due", "_flusher", "_on_open")

    def __init__(self, flusher: Flusher, on_open: Callable[[], None]) -> None:
        self._flusher = flusher.for_small_files
        self._on_open = on_open
        self._due: list[_Due] = []

    @property
    def is_open(self) -> bool:
        return not self._due

    @property
    def is_threaded(self) -> bool:
        """Whether `close` returns before the disk has everything."""
        return self._flusher.is_threaded

    def close(self, *files: Syncable) -> None:
        """Until these are synced."""
        self._due += [_Due(file) for file in files]
        self._flusher.request_soon(self)

    def try_again(self) -> None:
        if self._due:
            self._flusher.request_soon(self)

    def abandon(self) -> None:
        self._due.clear()
        self._flusher.forget(self)

    # ---- what a flush does with it

    def files_to_sync(self) -> list[Syncable]:
        return list(self._due)

    def is_through(self, files: Sequence[Syncable]) -> bool:
        """Of what stands here among these, everything was synced."""
        return all(due.is_done for due in self._due if due in files)

    def forget_synced(self) -> None:
        self._due = [due for due in self._due if not due.is_done]

    def plan_flush(self) -> FlushPlan:
        return FlushPlan(self.files_to_sync(), 0, 0)

    def complete_flush(self, plan: FlushPlan) -> None:
        self.forget_synced()
        if self.is_open:
            self._on_open()


class RewrittenFile(Syncable):
    """One that is written as a whole when it is synced: where there is no room for it, it can be tried again."""


class _Due:
    __slots__ = ("_file", "is_done")

    def __init__(self, file: Syncable) -> None:
        self._file = file
        self.is_done = False

    def sync(self) -> None:
        try:
            self._file.sync()
        except OSError as error:
            if not (isinstance(self._file, RewrittenFile) and is_no_room(error)):
                raise
        else:
            self.is_done = True
