"""Work that must not block the event loop: it runs for a few milliseconds at once, and continues in later turns.

Work runs in the order in which it was added. Work added again under the same key replaces the earlier work.
"""

from collections.abc import Callable, Hashable, Mapping

from sskafka.runtime.clock import Clock

TURN_MS = 5

Work = Callable[[], None]


class WorkQueue:
    def __init__(self, clock: Clock, call_soon: Callable[[Work], object]) -> None:
        self._clock = clock
        self._call_soon = call_soon
        self._work: dict[Hashable, Work] = {}
        self._waiting: list[Work] = []
        self._is_scheduled = False
        self._pauses = 0

    def put(self, key: Hashable, work: Work) -> None:
        self._work.pop(key, None)
        self._work[key] = work

    def put_first(self, work: Mapping[Hashable, Work]) -> None:
        """Do this work before all other work. Running work can divide itself like this and keep its place."""
        self._work = {**work, **self._work}

    def run(self) -> None:
        """Start the work that was added, unless earlier work is still running."""
        if not self._is_scheduled and not self._pauses:
            self._run_turn()

    def pause(self) -> None:
        """Do no work until `resume` has been called as often as `pause`."""
        self._pauses += 1

    def resume(self) -> None:
        self._pauses -= 1
        self.run()

    def when_done(self, callback: Work) -> None:
        """Call `callback` when all work added so far is done, at once if it is already."""
        if self._work:
            self._waiting.append(callback)
        else:
            callback()

    def _run_turn(self) -> None:
        self._is_scheduled = False
        if self._pauses:
            return
        stop_ms = self._clock.monotonic_ms() + TURN_MS
        try:
            while self._work:
                work = self._work.pop(next(iter(self._work)))
                work()
                if self._clock.monotonic_ms() >= stop_ms:
                    break
        finally:
            if self._work:
                self._is_scheduled = True
                self._call_soon(self._run_turn)
        if not self._work:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()
