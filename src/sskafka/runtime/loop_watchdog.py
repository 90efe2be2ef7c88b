"""Measure the turns of an event loop, and report turns that are so long that every client waits for them.

    tick      a timer of the loop, due every TICK_S. A turn that takes longer delays the tick, which measures the turn.
    sampler   a thread that looks at the stack of the loop's thread while a tick is overdue, to name the request

The turn is measured from the moment at which the tick was due, so a turn is reported with up to TICK_S less than it
took, and never with more. The CPU time is that of the loop's own thread within that time: on a machine whose other
processes keep the thread from running, a turn is long, but its CPU time is short. A long turn in which the loop only
waited for events is logged as information, every other one as a warning.

This costs requests nothing. The tick and the sampler together take 0.4% of a core while the broker is idle.
"""

import asyncio
import logging
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType
from typing import NamedTuple

from sskafka.model.counter_rate import CounterRate
from sskafka.model.counters import Sample

log = logging.getLogger(__name__)

TICK_S = 0.02
SLOW_TURN_S = 0.05
OVERDUE_S = SLOW_TURN_S / 2
MIN_SAMPLE_WAIT_S = 0.01
LOG_INTERVAL_S = 10.0
STACK_FRAMES = 6
_WAITING = re.compile(r"$|\w+ \((?:base_events|runners|selectors|threading)\.py:")
"""Matches the stack of a loop that waits for events, with and without uvloop, and an empty stack."""
OTHER_WORK = "other"
"""The name under which a slow turn is counted if it handles no request."""
_METRICS = "sskafka_data_loop_"


class SlowTurn(NamedTuple):
    wall_s: float
    cpu_s: float
    request: str
    """Name of the API, or OTHER_WORK."""
    stack: str
    """The innermost frames, from the inside out; empty if the turn was over before the sampler looked."""

    @property
    def is_of_the_machine(self) -> bool:
        """Return whether the loop had nothing to do: the machine did not let its thread run."""
        return self.cpu_s < SLOW_TURN_S / 2 and _WAITING.match(self.stack) is not None

    def __str__(self) -> str:
        where = f" at {self.stack}" if self.stack else ""
        return (
            f"a turn of the data loop took {self.wall_s * 1000:.0f} ms ({self.cpu_s * 1000:.0f} ms of CPU time)"
            f" in {self.request}{where}"
        )


class LoopWatchdog:
    def __init__(self) -> None:
        self.slow_turns: Counter[str] = Counter()
        self.longest_wall_s = 0.0
        self.longest_cpu_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._due_s = 0.0
        self._ticked_s = 0.0
        self._ticked_cpu_s = 0.0
        self._sampled: tuple[str, str] | None = None
        self._busy: CounterRate | None = None
        self._stopped = threading.Event()
        self._logged_s = -LOG_INTERVAL_S

    def start(self) -> None:
        """Watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._arm(time.monotonic(), time.thread_time())
        self._busy = CounterRate(self._ticked_s * 1000, self._ticked_cpu_s)
        threading.Thread(target=self._sample_overdue_ticks, name="sskafka-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def samples(self) -> Iterator[Sample]:
        for request, count in list(self.slow_turns.items()):
            yield Sample(_METRICS + "slow_turns_total", (("request", request),), count)
        yield Sample(_METRICS + "longest_turn_seconds", (), self.longest_wall_s)
        yield Sample(_METRICS + "longest_turn_cpu_seconds", (), self.longest_cpu_s)
        yield from self._idle_samples()

    def _idle_samples(self) -> Iterator[Sample]:
        """Yield the share of the last minute in which the loop's thread used no CPU. Called on the loop.

        One thread does the work of Kafka's network threads and of its request handlers."""
        now_ms, cpu_s = time.monotonic() * 1000, time.thread_time()
        if self._busy is None:
            self._busy = CounterRate(now_ms, cpu_s)
        idle = min(max(1 - self._busy.per_second(cpu_s, now_ms), 0.0), 1.0)
        yield Sample("kafka_network_socketserver_networkprocessoravgidle_percent", (), idle)
        yield Sample("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", (), idle)

    # -- on the loop

    def _arm(self, now_s: float, cpu_s: float) -> None:
        assert self._loop is not None
        self._ticked_s, self._ticked_cpu_s, self._due_s = now_s, cpu_s, now_s + TICK_S
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        wall_s = now_s - self._due_s
        if wall_s > self.longest_wall_s or wall_s > SLOW_TURN_S:
            # What the thread did before the tick was due may belong to earlier turns.
            spent_s = cpu_s - self._ticked_cpu_s - (self._due_s - self._ticked_s)
            self._note(now_s, wall_s, max(0.0, min(spent_s, wall_s)))
        self._sampled = None
        self._arm(now_s, cpu_s)

    def _note(self, now_s: float, wall_s: float, cpu_s: float) -> None:
        is_longest = wall_s > 1.2 * self.longest_wall_s or cpu_s > 1.2 * self.longest_cpu_s
        self.longest_wall_s = max(wall_s, self.longest_wall_s)
        self.longest_cpu_s = max(cpu_s, self.longest_cpu_s)
        if wall_s <= SLOW_TURN_S:
            return
        request, stack = self._sampled or (OTHER_WORK, "")
        self.slow_turns[request] += 1
        if is_longest or now_s - self._logged_s >= LOG_INTERVAL_S:
            self._logged_s = now_s
            turn = SlowTurn(wall_s, cpu_s, request, stack)
            log.log(logging.INFO if turn.is_of_the_machine else logging.WARNING, "%s", turn)

    # -- on the sampler's thread

    def _sample_overdue_ticks(self) -> None:
        # The thread wakes when the tick that it last saw would be overdue, so that it cannot miss a slow turn.
        while not self._stopped.wait(max(MIN_SAMPLE_WAIT_S, self._due_s + OVERDUE_S - time.monotonic())):
            due_s = self._due_s
            if self._sampled is None and time.monotonic() - due_s >= OVERDUE_S:
                sampled = describe(sys._current_frames().get(self._thread_id))
                if due_s == self._due_s:
                    self._sampled = sampled


def describe(innermost: FrameType | None) -> tuple[str, str]:
    """Return the name of the API whose request is being handled, and the innermost frames as text.

    The code that handles a request has the API, an object with a name, in a variable `api`."""
    frames: list[str] = []
    request, frame = OTHER_WORK, innermost
    while frame is not None:
        code = frame.f_code
        if len(frames) < STACK_FRAMES:
            frames.append(f"{code.co_name} ({PurePath(code.co_filename).name}:{frame.f_lineno})")
        if request == OTHER_WORK and ("api" in code.co_varnames or "api" in code.co_freevars):
            request = getattr(frame.f_locals.get("api"), "name", OTHER_WORK)
        frame = frame.f_back
    return request, " < ".join(frames)
