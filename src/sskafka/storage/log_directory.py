"""The shared state of the logs in one log directory. After a failed sync the directory is offline until a restart.

A failed fsync may have dropped dirty pages, so a retry could report success for lost bytes. Nothing is written to the
directory or acknowledged from it until the broker has been restarted and has recovered the directory.
"""

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sskafka.model.counters import Sample
from sskafka.runtime.descriptors import SHORTAGE
from sskafka.storage.disk import Disk
from sskafka.storage.errors import LogDirectoryError, StorageError, TemporaryStorageError, next_step

_log = logging.getLogger(__name__)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # EFBIG: above the file size limit of the process
ROOM_BYTES_MIN = 1 << 20
"""With less free space than this, a directory that was full counts as full."""
_SCARCE = SHORTAGE | {errno.ENOMEM, errno.EINTR, errno.EAGAIN}
QUIET_S = 3.0


def is_no_room(error: OSError) -> bool:
    """Return whether the error means a full disk, a quota or a process limit, which are temporary conditions."""
    return error.errno in _NO_ROOM


def is_temporary(error: OSError) -> bool:
    """Return whether the error says nothing about the disk itself: it is full, or the system lacks something else."""
    return error.errno in _NO_ROOM or error.errno in _SCARCE


class LogDirHealth:
    __slots__ = ("_failing", "disk", "failure", "no_descriptors", "no_room", "on_failure", "path")

    def __init__(self, disk: Disk, path: str, on_failure: Callable[["LogDirHealth"], None] | None = None) -> None:
        self.disk = disk
        self.path = path
        self.failure: LogDirectoryError | None = None
        self.on_failure = on_failure
        self._failing = threading.Lock()
        self.no_room = Shortage(path, "is full", "logdirectoryfull")
        self.no_descriptors = Shortage(path, "lacks descriptors or memory", "logdirectoryshort")

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, error: OSError) -> LogDirectoryError:
        """Take the directory offline and notify its owner once. Several threads may find the failure at once."""
        with self._failing:
            is_first = self.failure is None
            failure = self.failure = self.failure or LogDirectoryError(
                f"log directory {self.path} is offline: {error}{next_step(error)}"
            )
        if is_first:
            _log.error("%s", failure)
            if self.on_failure is not None:
                self.on_failure(self)
        return failure

    def write_failed(self, error: OSError) -> StorageError:
        """Translate a write error. A full disk and a lack of descriptors or memory are temporary; any other error takes
        the directory offline.

        Whatever was written must have been undone."""
        if not is_temporary(error):
            return self.fail(error)
        self.note_shortage(error)
        if is_no_room(error):
            return TemporaryStorageError(f"no room in log directory {self.path}: {error}")
        return TemporaryStorageError(f"cannot write to log directory {self.path} for now: {error}")

    def note_shortage(self, error: OSError) -> None:
        """Log a temporary error, unless it continues what was logged before."""
        (self.no_room if is_no_room(error) else self.no_descriptors).note(error)

    def maybe_end_shortages(self) -> None:
        """Log the end of a shortage. To be called about once a second."""
        self.no_room.maybe_end(self._has_room)
        self.no_descriptors.maybe_end(lambda: True)

    def _has_room(self) -> bool:
        try:
            return self.disk.usage(self.path).usable_bytes >= ROOM_BYTES_MIN
        except OSError:  # the next write tells what is wrong
            return False

    def samples(self) -> Iterator[Sample]:
        yield Sample(
            "kafka_log_logmanager_logdirectoryoffline", (("logdirectory", self.path),), int(bool(self.failure))
        )
        yield from self.no_room.samples()
        yield from self.no_descriptors.samples()

    def sync_failed(self, error: OSError) -> StorageError:
        """Translate an error of a sync or of a recovery, which syncs what it verified. Only a lack of descriptors is
        temporary, because then nothing was synced; any other error takes the directory offline."""
        if error.errno in SHORTAGE:
            self.note_shortage(error)
            return TemporaryStorageError(f"cannot sync log directory {self.path} for now: {error}")
        return self.fail(error)

    def read_failed(self, error: OSError) -> StorageError:
        """Translate a read error. A missing file was deleted during the read; any other error takes the directory
        offline."""
        if isinstance(error, FileNotFoundError):
            return StorageError(f"deleted while it was being read: {error.filename}")
        if is_temporary(error):
            self.note_shortage(error)
            return TemporaryStorageError(f"cannot read log directory {self.path} for now: {error}")
        return self.fail(error)

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.read_failed(error) from error


class Shortage:
    """A lack of space or descriptors in one log directory: logged once when it begins and once when it is over.

    While it lasts, every append, roll and checkpoint may fail with the same error, so these do not log it themselves.
    It is over when no operation has failed for a while and there is room again."""

    __slots__ = ("_began_s", "_failed", "_failed_s", "_metric", "_now_s", "_path", "_what", "episodes")

    def __init__(self, path: str, what: str, metric: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """`what` completes the sentence "log directory PATH ..."."""
        self._path = path
        self._what = what
        self._metric = metric
        self._now_s = now_s
        self._began_s: float | None = None
        self._failed_s = 0.0
        self._failed = 0
        self.episodes = 0

    @property
    def is_present(self) -> bool:
        return self._began_s is not None

    def note(self, error: OSError) -> None:
        """Count an operation that failed for this reason. May be called in any thread."""
        self._failed_s = self._now_s()
        self._failed += 1
        if self._began_s is None:
            self._began_s = self._failed_s
            self.episodes += 1
            _log.error(
                "log directory %s %s: %s; writes to it fail, are retried, and are not logged until this is over",
                self._path,
                self._what,
                error,
            )

    def maybe_end(self, has_room: Callable[[], bool]) -> None:
        """End the trouble if no operation has failed lately and there is room. Called about once a second."""
        if self._began_s is None or self._now_s() - self._failed_s < QUIET_S or not has_room():
            return
        lasted_s, failed = self._now_s() - self._began_s, self._failed
        self._began_s, self._failed = None, 0
        _log.warning(
            "log directory %s %s no longer: %d operations failed in %.0f s", self._path, self._what, failed, lasted_s
        )

    def samples(self) -> Iterator[Sample]:
        labels = (("logdirectory", self._path),)
        yield Sample(f"kafka_log_logmanager_{self._metric}", labels, int(self.is_present))
        yield Sample(f"kafka_log_logmanager_{self._metric}_total", labels, self.episodes)
