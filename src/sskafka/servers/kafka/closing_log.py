"""Log why connections are closed, at most a few lines a minute, so that clients cannot fill the disk with logs."""

import logging

log = logging.getLogger(__name__)

LINES_MAX = 20
PERIOD_TICKS = 60


class ClosingLog:
    def __init__(self) -> None:
        self._since_tick = 0
        self._lines = 0
        self._left_out = 0

    def log(self, listener: str, peer: str, reason: str, tick: int) -> None:
        """Write one line, unless enough have been written in this minute. `tick` counts seconds."""
        if tick - self._since_tick >= PERIOD_TICKS:
            if self._left_out:
                log.info(
                    "listener %s: %d more connections were closed, which were not logged", listener, self._left_out
                )
            self._since_tick, self._lines, self._left_out = tick, 0, 0
        if self._lines >= LINES_MAX:
            self._left_out += 1
            return
        self._lines += 1
        log.info("closing the connection from %s: %s", peer, reason[:500])
