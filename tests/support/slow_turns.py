"""Find turns of a broker's data loop that took too much CPU time, in the logs of brokers and of this process.

Brokers report slow turns themselves (runtime/loop_watchdog.py). The CPU time of the loop's thread is compared, not the
time on the clock, because a busy machine makes every turn long.
"""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

CPU_MS_MAX = 250
WATCHDOG = "sskafka.runtime.loop_watchdog"
_REPORT = re.compile(r"a turn of the data loop took \d+ ms \((\d+) ms of CPU time\).*")
_IMPORT = "importlib._bootstrap"


class SlowTurns(logging.Handler):
    """Reports of slow turns that nobody has looked at yet."""

    def __init__(self) -> None:
        super().__init__()
        self._read_bytes: dict[Path, int] = {}
        self._own: list[str] = []
        logging.getLogger(WATCHDOG).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Brokers inside this process log here.

        The first import of a module takes long in this process: pytest rewrites it, and its caches may be empty."""
        message = record.getMessage()
        if _IMPORT not in message:
            self._own.append(message)

    def take(self, directories: list[Path]) -> list[str]:
        """Return the new reports of too long turns of this process and of brokers that log below `directories`."""
        texts, self._own = self._own, []
        for directory in directories:
            texts += [self._unread(path) for path in _log_files(directory)]
        return [found[0] for text in texts for found in _REPORT.finditer(text) if int(found[1]) > CPU_MS_MAX]

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
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent, name)
            if path.suffix == ".log" and not path.stem.isdigit():
                yield path
