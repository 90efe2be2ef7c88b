"""What must be on the disk before anything that a log takes from now on may be acknowledged.

    a new leader epoch       its line in leader-epoch-checkpoint: recovery cuts off batches of epochs it does not know
    a cut at the log's end   what was cut off must not come back under what is appended in its place
    a new log                whose it is, and the names of its directory and files

    open --close--> closed: appends go on, their acknowledgements wait --all of it synced, in a thread--> open

So after a crash the files may be behind the log, but never behind anything that was acknowledged. A disk that has no
room for a small file keeps the gate closed until `try_again` finds some. Without threads everything is synced at once.
"""

import threading
from collections.abc import Callable, Sequence

from sskafka.storage.flusher import Flusher, FlushPlan, Syncable
from sskafka.storage.log_directory import is_no_room


class SyncGate:
    __slots__ = ("_due", "_flusher", "_on_news", "_rights", "lacks_room")

    def __init__(self, flusher: Flusher, on_news: Callable[[], None]) -> None:
        """`on_news` hears that it is open, and that a full disk keeps it closed."""
        self._flusher = flusher.for_small_files
        self._on_news = on_news
        self._due: list[_Due] = []
        self._rights = _Rights()
        self.lacks_room = False
        """The last attempt has found none."""

    @property
    def is_open(self) -> bool:
        return not self._due

    @property
    def is_threaded(self) -> bool:
        """Whether `close` returns before the disk has everything."""
        return self._flusher.is_threaded

    def close(self, *files: Syncable) -> None:
        """Until these are synced."""
        self._due += [_Due(file, self._rights) for file in files]
        self._flusher.request_soon(self)

    def try_again(self) -> None:
        if self._due:
            self._flusher.request_soon(self)

    def abandon(self) -> None:
        """Nothing is written any more, by no thread: the directory may be another log's before long."""
        with self._rights.writing:
            self._rights.are_given_up = True
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
        self.lacks_room = any(due in self._due and not due.is_done for due in plan.files)
        self.forget_synced()
        if self.is_open or self.lacks_room:
            self._on_news()


class RewrittenFile(Syncable):
    """One that is written as a whole when it is synced: where there is no room for it, it can be tried again."""


class _Rights:
    """Of threads to write into a log's directory."""

    __slots__ = ("are_given_up", "writing")

    def __init__(self) -> None:
        self.writing = threading.Lock()
        self.are_given_up = False


class _Due:
    __slots__ = ("_file", "_rights", "is_done")

    def __init__(self, file: Syncable, rights: _Rights) -> None:
        self._file = file
        self._rights = rights
        self.is_done = False

    def sync(self) -> None:
        if isinstance(self._file, RewrittenFile):
            self._write(self._file)
        else:
            self._file.sync()
            self.is_done = True

    def _write(self, file: RewrittenFile) -> None:
        with self._rights.writing:
            if self._rights.are_given_up:
                return
            try:
                file.sync()
                self.is_done = True
            except OSError as error:
                if not is_no_room(error):
                    raise
