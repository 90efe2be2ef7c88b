"""Find turns of a broker's data loop that took too much CPU time, in the logs of brokers and of this process.

Brokers report slow turns themselves (runtime/loop_watchdog.py). The CPU time of the loop's thread is compared, not the
time on the clock, because a busy machine makes every turn long.

Tests leave hundreds of directories behind, and a walk through all of them after every test would take longer than most
tests. So a directory that several tests share is left out, except after the last test of a file, once no broker has
written there during a whole file.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

CPU_MS_MAX = 250
WATCHDOG = "sskafka.runtime.loop_watchdog"
_REPORT = re.compile(r"a turn of the data loop took \d+ ms \((\d+) ms of CPU time\).*")
_IMPORT = "importlib._bootstrap"
_LOG_DIRECTORY = "meta.properties"
"""Every directory with the logs of partitions has this file. Brokers write no text there."""


class SlowTurns(logging.Handler):
    """Reports of slow turns that nobody has looked at yet."""

    def __init__(self) -> None:
        super().__init__()
        self._read_bytes: dict[Path, int] = {}
        self._grown: set[Path] = set()
        """Shared directories to which brokers have written since the last test file."""
        self._quiet: set[Path] = set()
        self._own: list[str] = []
        logging.getLogger(WATCHDOG).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Brokers inside this process log here.

        The first import of a module takes long in this process: pytest rewrites it, and its caches may be empty."""
        message = record.getMessage()
        if _IMPORT not in message:
            self._own.append(message)

    def take(
        self, directories: Iterable[Path], shared: Iterable[Path] = (), *, is_end_of_file: bool = False
    ) -> list[str]:
        """Return the new reports of too long turns of this process, and of brokers that log below the directories."""
        texts, self._own = self._own, []
        for directory in directories:
            texts += self._texts(directory)
        every = set(shared)
        for directory in every if is_end_of_file else every - self._quiet:
            if any(found := self._texts(directory)):
                self._grown.add(directory)
                texts += found
        if is_end_of_file:
            self._quiet, self._grown = every - self._grown, set()
        return [found[0] for text in texts for found in _REPORT.finditer(text) if int(found[1]) > CPU_MS_MAX]

    def _texts(self, directory: Path) -> list[str]:
        return [self._unread(path) for path in _log_files(directory)]

    def _unread(self, path: Path) -> str:
        start = self._read_bytes.get(path, 0)
        try:
            with path.open("rb") as file:
                file.seek(start)
                data = file.read()
        except OSError:
            return ""
        self._read_bytes[path] = start + len(data)
        return data.decode(errors="replace")


def _log_files(directory: Path) -> Iterator[Path]:
    """Yield files that brokers write text to; log segments have names of digits.

    Running brokers delete directories in the meantime: os.walk passes over those, Path.rglob fails."""
    for parent, below, names in os.walk(directory):
        if _LOG_DIRECTORY in names:
            below.clear()
        for name in names:
            path = Path(parent, name)
            if path.suffix == ".log" and not path.stem.isdigit():
                yield path
