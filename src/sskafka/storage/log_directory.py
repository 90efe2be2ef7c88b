"""The shared state of the logs in one log directory. After a failed sync the directory is offline until a restart.

A failed fsync may have dropped dirty pages, so a retry could report success for lost bytes. Nothing is written to the
directory or acknowledged from it until the broker has been restarted and has recovered the directory.
"""

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sskafka.storage.disk import Disk
from sskafka.storage.errors import LogDirectoryError, StorageError

_log = logging.getLogger(__name__)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # EFBIG: above the file size limit of the process


def is_no_room(error: OSError) -> bool:
    """Return whether the error means a full disk, a quota or a process limit, which are temporary conditions."""
    return error.errno in _NO_ROOM


class LogDirHealth:
    __slots__ = ("disk", "failure", "on_failure", "path")

    def __init__(self, disk: Disk, path: str, on_failure: Callable[["LogDirHealth"], None] | None = None) -> None:
        self.disk = disk
        self.path = path
        self.failure: LogDirectoryError | None = None
        self.on_failure = on_failure

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, error: OSError) -> LogDirectoryError:
        """Take the directory offline and notify its owner once."""
        if self.failure is None:
            self.failure = LogDirectoryError(f"log directory {self.path} is offline: {error}")
            _log.error("%s", self.failure)
            if self.on_failure is not None:
                self.on_failure(self)
        return self.failure

    def write_failed(self, error: OSError) -> StorageError:
        """Translate a write error. A full disk is temporary; any other error takes the directory offline."""
        if is_no_room(error):
            return StorageError(f"no room in log directory {self.path}: {error}")
        return self.fail(error)

    def read_failed(self, error: OSError) -> StorageError:
        """Translate a read error. A missing file was deleted during the read; any other error takes the directory
        offline."""
        if isinstance(error, FileNotFoundError):
            return StorageError(f"deleted while it was being read: {error.filename}")
        return self.fail(error)

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.read_failed(error) from error
