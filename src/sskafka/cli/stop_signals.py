"""SIGTERM and Ctrl+C: the first signal requests a clean stop, the next one an immediate stop.

Programs that start other programs often signal twice: `timeout` signals the program and then its process group, and
wrappers forward signals that the terminal has sent to the program already. A second signal right after the first is
therefore ignored.
"""

import asyncio
import os
import signal
import sys

ECHO_S = 0.5


class StopSignals:
    def __init__(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._echo_until = 0.0
        self.first: asyncio.Future[signal.Signals] = loop.create_future()
        self.second: asyncio.Future[signal.Signals] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._receive, number)

    def stop_at_end_of_input(self) -> None:
        """Treat the end of the standard input, a pipe, as SIGTERM: its writer has died."""
        self._loop.add_reader(sys.stdin.fileno(), self._read_input)

    def _read_input(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            self._loop.remove_reader(sys.stdin.fileno())
            self._receive(signal.SIGTERM)

    def _receive(self, number: signal.Signals) -> None:
        now = self._loop.time()
        if not self.first.done():
            self._echo_until = now + ECHO_S
            self.first.set_result(number)
        elif now >= self._echo_until and not self.second.done():
            self.second.set_result(number)
