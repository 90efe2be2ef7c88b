"""Group commit: one sync for all appends that wait for a sync.

    append, append, append          each log requests a flush and holds back its acknowledgements
    next turn of the event loop     one append waits: sync on this thread, because a thread would cost more
                                    several: a thread syncs every log that requested it; the loop continues;
                                    many logs, such as a thousand new ones, are synced side by side
    done                            each log advances its recovery point and its ready offset; logs that requested
                                    a flush in the meantime, and those beyond LOGS_PER_ROUND, are flushed in the
                                    next round

A failed sync takes the log directory offline; see log_directory.py.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice
from time import sleep
from typing import NamedTuple, Protocol

from sskafka.runtime.background import SyncBackground
from sskafka.runtime.descriptors import SHORTAGE
from sskafka.runtime.sync_threads import FEW_LOGS
from sskafka.storage.errors import TemporaryStorageError
from sskafka.storage.log_directory import LogDirHealth

LOGS_PER_ROUND = 250
"""Logs whose flushes are planned and completed in one turn of the event loop, which takes some 5 ms."""
_RETRIES = 100
_RETRY_S = 0.1


class Syncable(Protocol):
    def sync(self) -> None: ...


class FlushPlan(NamedTuple):
    """The files to sync so that everything below `end_offset` is durable."""

    files: Sequence[Syncable]
    end_offset: int
    truncations: int  # the result is ignored if the log was truncated in the meantime


class FlushableLog(Protocol):
    def plan_flush(self) -> FlushPlan: ...

    def complete_flush(self, plan: FlushPlan) -> None: ...


class Flusher:
    """One flusher for each log directory. Without a background executor every flush is immediate."""

    def __init__(self, directory: LogDirHealth, background: SyncBackground | None = None) -> None:
        self._directory = directory
        self._background = background
        self._waiting: dict[FlushableLog, int] = {}  # log -> number of waiting appends
        self._is_busy = False
        self._gone: set[FlushableLog] | None = None  # while a thread syncs: logs closed or deleted in the meantime
        self._for_small_files: Flusher | None = None

    def note_shortage(self, error: OSError) -> None:
        self._directory.note_shortage(error)

    @property
    def is_threaded(self) -> bool:
        return self._background is not None

    @property
    def for_small_files(self) -> "Flusher":
        """A separate queue for small files, so that they do not wait for the sync of a whole segment."""
        if self._for_small_files is None:
            self._for_small_files = Flusher(self._directory, self._background)
        return self._for_small_files

    def request(self, log: FlushableLog) -> None:
        """Call `log.complete_flush` after a sync that begins after this call."""
        if self._background is None:
            self.flush_now(log)
            return
        self._waiting[log] = self._waiting.get(log, 0) + 1
        if not self._is_busy:
            self._is_busy = True
            self._background.soon(self._next_round)

    def request_soon(self, log: FlushableLog) -> None:
        """Request a sync that may take long and that no acknowledgement waits for. Runs in a thread if there is one."""
        self.request(log)
        if self._background is not None:
            self.request(log)  # counts as two appends, so the sync does not run on this thread

    def request_if_threaded(self, log: FlushableLog) -> None:
        """Like `request_soon`, but without a background executor leave the sync to the next flush."""
        if self._background is not None:
            self.request_soon(log)

    def flush_now(self, log: FlushableLog) -> None:
        """Sync everything that `log` holds before returning."""
        self._directory.check_online()
        try:
            plan = log.plan_flush()
            sync_files(plan.files)
        except OSError as error:
            raise self._directory.sync_failed(error) from error
        log.complete_flush(plan)

    def forget(self, log: FlushableLog) -> None:
        """Drop the requests of a log that is closed or deleted."""
        self._waiting.pop(log, None)
        if self._gone is not None:
            self._gone.add(log)

    def _next_round(self) -> None:
        self._is_busy = False
        if self._directory.failure is not None:
            self._waiting.clear()
        logs = list(islice(self._waiting, LOGS_PER_ROUND))
        appends = sum(self._waiting.pop(log) for log in logs)
        if not logs:
            return
        try:
            plans = [(log, log.plan_flush()) for log in logs]
            if appends > 1:
                self._sync_in_thread(plans)
                return
            for file in plans[0][1].files:
                file.sync()
        except OSError as error:
            if isinstance(self._directory.sync_failed(error), TemporaryStorageError):
                self._try_again_later(logs)
            return
        _complete(plans)

    def _try_again_later(self, logs: Sequence[FlushableLog]) -> None:
        assert self._background is not None
        self._waiting.update(dict.fromkeys(logs, 2))  # two: in a thread, which can wait for a descriptor
        self._is_busy = True
        self._background.in_thread(lambda: sleep(_RETRY_S), lambda _: self._next_round())

    def _sync_in_thread(self, plans: list[tuple[FlushableLog, FlushPlan]]) -> None:
        background = self._background
        assert background is not None
        self._is_busy = True
        gone: set[FlushableLog] = set()
        self._gone = gone
        background.in_thread(lambda: _sync_all(plans, gone, background), lambda error: self._finish(plans, error))

    def _finish(self, plans: list[tuple[FlushableLog, FlushPlan]], error: BaseException | None) -> None:
        self._gone = None
        if isinstance(error, OSError):
            self._directory.fail(error)
        elif error is not None:
            raise error
        else:
            _complete(plans)
        self._next_round()


def _sync_all(
    plans: list[tuple[FlushableLog, FlushPlan]], gone: AbstractSet[FlushableLog], background: SyncBackground
) -> None:
    if len(plans) > FEW_LOGS:
        background.side_by_side(partial(_sync_one, log, plan, gone) for log, plan in plans)
        return
    for log, plan in plans:
        _sync_one(log, plan, gone)


def _sync_one(log: FlushableLog, plan: FlushPlan, gone: AbstractSet[FlushableLog]) -> None:
    try:
        sync_files(plan.files)
    except FileNotFoundError:
        if log not in gone:  # the directory of a deleted log has been renamed by now
            raise


def sync_files(files: Sequence[Syncable]) -> None:
    """Sync the files, in a thread: a directory is opened for that, which may have to wait for a descriptor."""
    for file in files:
        for retries_left in reversed(range(_RETRIES)):
            try:
                file.sync()
                break
            except OSError as error:
                if error.errno not in SHORTAGE or not retries_left:
                    raise
                sleep(_RETRY_S)


def _complete(plans: list[tuple[FlushableLog, FlushPlan]]) -> None:
    for log, plan in plans:
        log.complete_flush(plan)
