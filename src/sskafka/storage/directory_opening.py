"""Open a broker's log directories at startup: lock them and read their meta.properties.

A directory that cannot be read is offline from the start, and the broker serves the other directories. The broker
refuses to start if the directory of the metadata log is offline, if all directories are offline, if another process
holds a directory, or if a directory belongs to another node: an operator has to decide then.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sskafka.runtime.background import SyncBackground
from sskafka.storage.broker_directory import LogDir, lock_directory
from sskafka.storage.disk import Disk, Lock
from sskafka.storage.errors import LogDirectoryError, next_step
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

_log = logging.getLogger(__name__)


class Identity(NamedTuple):
    """The node to which the directories must belong."""

    node_id: int
    partition_base: int
    format_as: Callable[[], MetaProperties] | None
    """Makes the meta.properties of an unformatted directory. None: refuse unformatted directories."""


class DirectoryOpening:
    def __init__(
        self,
        disk: Disk,
        identity: Identity,
        background: SyncBackground | None,
        on_failure: Callable[[LogDirHealth], None] | None,
    ) -> None:
        self._disk = disk
        self._identity = identity
        self._background = background
        self._on_failure = on_failure
        self._locks: dict[str, Lock] = {}
        self._metas: dict[str, MetaProperties] = {}
        self._failures: dict[str, LogDirectoryError] = {}

    def open(self, paths: Sequence[str], metadata_path: str) -> dict[str, LogDir]:
        """Return the opened directories by path. Raise LogDirectoryError if the broker must not start."""
        try:
            for path in dict.fromkeys([*paths, metadata_path]):
                self._attempt(path, self._identify)
            check_meta_properties(self._metas, self._identity.node_id, self._identity.partition_base)
            opened: dict[str, LogDir] = {}
            for path in self._metas:
                self._attempt(path, lambda path: opened.update({path: self._directory(path)}))
            self._check_enough(paths, metadata_path)
        except BaseException:
            for path in list(self._locks):
                self._release(path)
            raise
        return opened | {path: self._offline(path, failure) for path, failure in self._failures.items()}

    def _attempt(self, path: str, step: Callable[[str], None]) -> None:
        try:
            step(path)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.filename is not None and str(error.filename) != path:
                reason = f"{error.filename}: {reason}{next_step(error)}"
            self._failures[path] = LogDirectoryError(f"log directory {path} cannot be used: {reason}")
            self._release(path)

    def _identify(self, path: str) -> None:
        self._locks[path] = lock_directory(self._disk, path)
        self._metas[path] = self._meta_properties(path)

    def _meta_properties(self, path: str) -> MetaProperties:
        meta = read_meta_properties(self._disk, path)
        if meta is None:
            if self._identity.format_as is None:
                raise LogDirectoryError(f"log directory {path} has no meta.properties: format it first")
            meta = self._identity.format_as()
            write_meta_properties(self._disk, path, meta)
        return meta

    def _directory(self, path: str) -> LogDir:
        meta, lock = self._metas[path], self._locks[path]
        return LogDir(self._disk, path, meta, lock, self._background, self._on_failure)

    def _offline(self, path: str, failure: LogDirectoryError) -> LogDir:
        _log.error("%s; the broker starts without it", failure)
        nobody = MetaProperties(None, None, partition_base=self._identity.partition_base)
        return LogDir(self._disk, path, nobody, None, self._background, self._on_failure, failure)

    def _check_enough(self, paths: Sequence[str], metadata_path: str) -> None:
        if metadata_path in self._failures:
            where = "" if set(paths) == {metadata_path} else "the metadata log is unavailable: "
            raise LogDirectoryError(f"{where}{self._failures[metadata_path]}")
        if all(path in self._failures for path in paths):
            raise LogDirectoryError("no log directory is usable: " + "; ".join(map(str, self._failures.values())))

    def _release(self, path: str) -> None:
        lock = self._locks.pop(path, None)
        if lock is not None:
            lock.release()
