"""SIGTERM and Ctrl+C: the first asks to stop, the next one to wait for nobody.

Those who start programs for others often signal twice: `timeout` signals the program and then its whole group, and
wrappers pass on what the terminal has sent to the program itself. What comes at once after the first signal is its
echo and no impatience.
"""

import asyncio
import signal

ECHO_S = 0.5


class StopSignals:
    def __init__(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._echo_until = 0.0
        self.first: asyncio.Future[signal.Signals] = loop.create_future()
        self.second: asyncio.Future[signal.Signals] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._receive, number)

    def _receive(self, number: signal.Signals) -> None:
        now = self._loop.time()
        if not self.first.done():
            self._echo_until = now + ECHO_S
            self.first.set_result(number)
        elif now >= self._echo_until and not self.second.done():
            self.second.set_result(number)
