"""The file in which a process that commits batches hands the driver's producer to a task of the next batch.

    <temporary directory>/sskafka-<user id>/driver-<digest of brokers and prefix>

Both processes run on the machine of Spark's driver. On other machines tasks find no file, and write in transactions of
their own. Who takes a file removes it, so that only one process has its content (rule 8 of `commit_protocol`). A file
that nobody takes is replaced by the next run of the query; its producer is fenced by then. Files of queries that no
longer run are removed after a day.
"""

import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from sskafka.client.transactions import Transaction
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.commit_protocol import Handover
from sskafka.pipelines.connector.decision import Decision

logger = logging.getLogger(__name__)

KEPT_S_MAX = 24 * 60 * 60

_tidied: set[Path] = set()
"""Directories in which this process has removed old files."""


class HandoverFile:
    """The file of one query."""

    def __init__(self, bootstrap: str, prefix: str, directory: Path | None = None) -> None:
        name = hashlib.sha256(f"{bootstrap} {prefix}".encode()).hexdigest()[:24]
        self._path = (directory or _directory()) / f"driver-{name}"

    def store(self, handover: Handover) -> None:
        """Make the content available to one process; if that fails, it is lost, which does no harm."""
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(self._path.parent):
                return
            beside.write_bytes(to_json(handover))
            beside.replace(self._path)
            if self._path.parent not in _tidied:
                _tidied.add(self._path.parent)
                _remove_old_files(self._path.parent, time.time() - KEPT_S_MAX)
        except OSError as error:
            logger.info("nothing is handed over to tasks: %s", error)

    def take(self) -> Handover | None:
        """Return the content and remove the file; None if there is none, or another process was faster."""
        taken = self._path.with_name(f"{self._path.name}.{os.getpid()}.taken")
        try:
            if not _is_private(self._path.parent):
                return None
            self._path.rename(taken)
            text = taken.read_bytes()
            taken.unlink()
            return from_json(text)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.info("what was handed over cannot be read: %s", error)
            return None


def _directory() -> Path:
    return Path(tempfile.gettempdir()) / f"sskafka-{os.getuid()}"


def _is_private(directory: Path) -> bool:
    """Return whether nobody else can write to the directory: temporary directories are shared by all users."""
    found = directory.lstat()
    is_closed = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and is_closed


def _remove_old_files(directory: Path, before: float) -> None:
    """Remove the files that were written before a time; their queries do not run, or can do without them."""
    for file in directory.iterdir():
        with suppress(FileNotFoundError):
            if file.lstat().st_mtime < before:
                file.unlink()


def to_json(handover: Handover) -> bytes:
    return json.dumps(
        {
            "decision": handover.decision.to_json().decode(),
            "driver": list(handover.driver),
            "sequences": [[*partition, sequence] for partition, sequence in handover.sequences],
        }
    ).encode()


def from_json(text: bytes) -> Handover:
    fields = json.loads(text)
    sequences = tuple((TopicPartition(topic, number), sequence) for topic, number, sequence in fields["sequences"])
    return Handover(Decision.from_json(fields["decision"].encode()), Transaction(*fields["driver"]), sequences)
