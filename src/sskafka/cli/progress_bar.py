"""Progress of long work on stderr: a bar on a terminal, a line every few seconds elsewhere."""

import sys
from collections import deque
from collections.abc import Callable
from time import monotonic

from sskafka.cli.output import talk
from sskafka.cli.sizes import duration_text, size_text

WIDTH = 30
LINES_EVERY_S = 2.0
RATE_OVER_S = 5.0
"""The rate is that of the last seconds: an average since the start would hide that the work has stopped."""


class ProgressBar:
    def __init__(self, *, is_terminal: bool | None = None, clock_s: Callable[[], float] = monotonic) -> None:
        self._is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
        self._clock_s = clock_s
        self._seen: deque[tuple[float, int]] = deque()
        self._told_at: float | None = None
        self._told = ""

    def show(self, done_bytes: int, total_bytes: int, detail: str) -> None:
        now = self._clock_s()
        self._seen.append((now, done_bytes))
        while len(self._seen) > 2 and now - self._seen[0][0] > RATE_OVER_S:
            self._seen.popleft()
        text = self._text(done_bytes, total_bytes, detail)
        if self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif (self._told_at is None or now - self._told_at >= LINES_EVERY_S) and text != self._told:
            self._told_at, self._told = now, text
            talk(text)

    def close(self) -> None:
        if self._is_terminal and self._seen:
            print(file=sys.stderr)

    def _text(self, done: int, total: int, detail: str) -> str:
        share = done / total if total else 1.0
        filled = int(WIDTH * share)
        rate = self._rate()
        left = f", {duration_text((total - done) / rate)} left" if rate and done < total else ""
        bar = "#" * filled + "-" * (WIDTH - filled)
        return f"[{bar}] {share:4.0%}  {size_text(done)} of {size_text(total)}, {size_text(rate)}/s{left}, {detail}"

    def _rate(self) -> float:
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        return max(0.0, (last - first) / (now - began)) if now > began else 0.0
