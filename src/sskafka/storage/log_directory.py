"""The state of one log directory that its logs share: after a failed sync it is offline for good.

A failed fsync may have thrown dirty pages away, so trying again could report success for bytes that are lost. Nothing
is written to the directory, and nothing in it acknowledged, until the broker has been restarted and has recovered it.
"""

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sskafka.storage.disk import Disk
from sskafka.storage.errors import LogDirectoryError, StorageError

_log = logging.getLogger(__name__)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # the last: above the limit of the process


def is_no_room(error: OSError) -> bool:
    """A full disk, a quota, a limit of the process: it passes."""
    return error.errno in _NO_ROOM


class LogDirectory:
    __slots__ = ("disk", "failure", "on_failure", "path")

    def __init__(self, disk: Disk, path: str, on_failure: Callable[["LogDirectory"], None] | None = None) -> None:
        self.disk = disk
        self.path = path
        self.failure: LogDirectoryError | None = None
        self.on_failure = on_failure

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, error: OSError) -> LogDirectoryError:
        """Takes the directory offline and tells its owner, once."""
        if self.failure is None:
            self.failure = LogDirectoryError(f"log directory {self.path} is offline: {error}")
            _log.error("%s", self.failure)
            if self.on_failure is not None:
                self.on_failure(self)
        return self.failure

    def write_failed(self, error: OSError) -> StorageError:
        """A full disk passes; anything else takes the directory offline."""
        if is_no_room(error):
            return StorageError(f"no room in log directory {self.path}: {error}")
        return self.fail(error)

    def read_failed(self, error: OSError) -> StorageError:
        """A file that is gone was deleted under the reader; anything else takes the directory offline."""
        if isinstance(error, FileNotFoundError):
            return StorageError(f"deleted while it was being read: {error.filename}")
        return self.fail(error)

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.read_failed(error) from error
