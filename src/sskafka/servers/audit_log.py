"""The audit log: decisions of the authorizer and failed logins as lines of JSON, written by a thread of its own.

    {"time": "2026-11-17T10:15:00.123Z", "principal": "User:alice", "host": "10.0.0.7", "listener": "CLIENTS",
     "api": "Fetch", "operation": "READ", "resource_type": "TOPIC", "resource": "orders", "allowed": true}
    {"time": "2026-11-17T10:15:00.456Z", "user": "bob", "host": "10.0.0.8", "listener": "CLIENTS",
     "failed_login": "PLAIN: Authentication failed: Invalid username or password"}

Event loops only put lines into a queue. The number of lines per second is limited; a line {"dropped": N} says how many
are missing. Anybody can fail to log in, so failed logins have a separate limit, a tenth of that of decisions: they
cannot crowd decisions out of the file. Texts of clients are shortened. A file that has become too large is renamed to
PATH.1, the one before to PATH.2, and so on.
"""

import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TextIO

from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import RequestContext

log = logging.getLogger(__name__)

Entry = dict[str, Any]

SECOND_MS = 1000
TEXT_CHARS_MAX = 1000
FILE_MODE = 0o640


class AuditLog:
    def __init__(self, settings: Settings, now_ms: Callable[[], int]) -> None:
        """Open the file, and start the thread. Raises OSError if the file cannot be written."""
        self._path = Path(settings["audit.log"])
        self._size_max = settings["audit.log.max.bytes"]
        self._backups = settings["audit.log.backups"]
        self._per_second_max = settings["audit.log.max.per.second"]
        self._now_ms = now_ms
        self._second = 0
        self._decisions_in_second = self._logins_in_second = self._dropped = 0
        self._failed_logins_per_second_max = max(1, self._per_second_max // 10)
        self._lock = Lock()
        self._file = self._open()
        self._entries: SimpleQueue[Entry | None] = SimpleQueue()
        self._thread = Thread(target=self._write_all, name="sskafka-audit", daemon=True)
        self._thread.start()

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_allowed: bool,
    ) -> None:
        """May be called on any thread; does not wait for the disk."""
        now_ms = self._now_ms()
        with self._lock:
            self._maybe_begin_second(now_ms)
            if self._decisions_in_second >= self._per_second_max:
                self._dropped += 1
                return
            self._decisions_in_second += 1
        self._entries.put(
            {
                "time": _text(now_ms),
                "principal": context.principal,
                "host": context.host,
                "listener": context.client_listener,
                "api": context.api_name,
                "operation": operation.name,
                "resource_type": resource_type.name,
                "resource": name[:TEXT_CHARS_MAX],
                "allowed": is_allowed,
            }
        )

    def record_failed_login(self, listener: str, host: str, user: str, reason: str) -> None:
        """May be called on any thread; does not wait for the disk. `user` is the name that the client has given."""
        now_ms = self._now_ms()
        with self._lock:
            self._maybe_begin_second(now_ms)
            if self._logins_in_second >= self._failed_logins_per_second_max:
                self._dropped += 1
                return
            self._logins_in_second += 1
        self._entries.put(
            {
                "time": _text(now_ms),
                "user": user[:TEXT_CHARS_MAX],
                "host": host,
                "listener": listener,
                "failed_login": reason[:TEXT_CHARS_MAX],
            }
        )

    def close(self) -> None:
        """Write what is in the queue, and end the thread."""
        with self._lock:
            self._begin_second(self._now_ms())
        self._entries.put(None)
        self._thread.join()
        self._file.close()

    def _maybe_begin_second(self, now_ms: int) -> None:
        if now_ms // SECOND_MS != self._second:
            self._begin_second(now_ms)

    def _begin_second(self, now_ms: int) -> None:
        self._second, self._decisions_in_second, self._logins_in_second = now_ms // SECOND_MS, 0, 0
        if self._dropped:
            self._entries.put({"time": _text(now_ms), "dropped": self._dropped})
            self._dropped = 0

    # -- the thread

    def _write_all(self) -> None:
        while (entry := self._entries.get()) is not None:
            entries = [entry]
            try:
                while (more := self._entries.get_nowait()) is not None:
                    entries.append(more)
            except Empty:
                self._write(entries)
            else:
                self._write(entries)
                return

    def _write(self, entries: list[Entry]) -> None:
        try:
            self._file.writelines(json.dumps(entry) + "\n" for entry in entries)
            self._file.flush()
            if self._file.tell() >= self._size_max:
                self._rotate()
        except OSError as error:  # a full disk must not end the broker
            log.error("%d lines of the audit log %s are lost: %s", len(entries), self._path, error)

    def _rotate(self) -> None:
        self._file.close()
        numbered = [self._path.with_name(f"{self._path.name}.{number}") for number in range(self._backups, 0, -1)]
        for older, newer in zip(numbered, [*numbered[1:], self._path], strict=True):
            if newer.exists():
                newer.replace(older)
        if not numbered:
            self._path.unlink()
        self._file = self._open()

    def _open(self) -> TextIO:
        return open(self._path, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, FILE_MODE))


def _text(now_ms: int) -> str:
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
