"""A broker under attack: what it costs the broker, and what a polite client beside the attacker notices of it.

    scene = start_scene()                   the polite client has been measured without an attack
    ...attack scene.broker...
    scene.check(rss_growth_bytes_max=...)   fails if memory, the longest turn of the loop or the polite client suffered

The polite client is a process of its own (polite_client.py), so that the attacker's Python does not slow it down.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from broker_process import BrokerProcess
from waiting import wait_until
from wire_connection import Connection

QUIET_S = 1.5
WAIT_MS_MAX = 250.0
QUIET_FACTOR_MAX = 10
QUIET_LIMIT_MS_MIN = 100.0
"""Ten times the quiet wait is compared only above this: on a quiet machine that wait is below a millisecond."""
REQUESTS_MIN = 300
"""With fewer requests the 99th percentile is nearly the longest wait, which is compared with WAIT_MS_MAX alone."""
STARVED_SHARE = 0.05
"""Share of the time that broker or client waited for a CPU from which on the machine is too busy for these limits."""
STARVED_FACTOR = 20
"""How much the limit grows with that share: a process that has to wait for others waits for many of their turns."""
LOOP_CPU_MS_MAX = 250
POLITE_TOPIC = "polite"
MEGABYTE = 1 << 20
_TURN = re.compile(r"a turn of the data loop took (\d+) ms \((\d+) ms of CPU time\) in (\S+)")


class Measured(NamedTuple):
    quiet_p99_ms: float
    p99_ms: float
    worst_ms: float
    requests: int
    rss_growth_bytes: int
    """Highest resident memory during the attack, less what the broker had before it."""
    longest_turn_cpu_ms: int
    """0 if no turn of the data loop took more than 50 ms."""
    longest_turn_request: str
    starved_share: float
    """Share of the time for which the broker's data loop or the polite client could have run, but had no CPU."""

    @property
    def wait_ms_max(self) -> float:
        """What the 99th percentile may be. A machine without a CPU to spare makes every client wait."""
        relative_ms = QUIET_FACTOR_MAX * self.quiet_p99_ms
        if self.starved_share > STARVED_SHARE:
            return max(relative_ms, WAIT_MS_MAX * (1 + STARVED_FACTOR * self.starved_share))
        if self.requests < REQUESTS_MIN:
            return WAIT_MS_MAX
        return min(WAIT_MS_MAX, max(QUIET_LIMIT_MS_MIN, relative_ms))

    def __str__(self) -> str:
        starved = f"; starved of CPU for {self.starved_share:.0%} of the time"
        return (
            f"polite client: p99 {self.p99_ms:.0f} ms, worst {self.worst_ms:.0f} ms of {self.requests} requests"
            f" (quiet: p99 {self.quiet_p99_ms:.1f} ms); memory: {self.rss_growth_bytes / MEGABYTE:.0f} MB more;"
            f" longest turn of the loop: {self.longest_turn_cpu_ms} ms of CPU time {self.longest_turn_request}"
            f"{starved if self.starved_share > STARVED_SHARE else ''}"
        )


class Scene:
    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap
        self._polite = PoliteClient(broker.bootstrap)
        self._quiet_ms: list[float] = []
        self._rss_bytes = 0
        self._log_length = 0
        self._began_ns = 0
        self._delays_ns: list[int] = []

    def begin(self) -> "Scene":
        """Measure the polite client alone; after this the attack may start."""
        time.sleep(QUIET_S)  # the client is measured meanwhile: there is nothing to wait for
        self._quiet_ms = self._polite.take()
        self._rss_bytes = rss_bytes(self.broker.pid)
        self._log_length = len(self.broker.log)
        reset_peak_rss(self.broker.pid)
        self._began_ns, self._delays_ns = time.monotonic_ns(), self._run_delays_ns()
        return self

    def _run_delays_ns(self) -> list[int]:
        return [run_delay_ns(self.broker.pid), run_delay_ns(self._polite.pid)]

    def _starved_share(self) -> float:
        elapsed_ns = max(1, time.monotonic_ns() - self._began_ns)
        return max(
            (now - before) / elapsed_ns for now, before in zip(self._run_delays_ns(), self._delays_ns, strict=True)
        )

    def measure(self) -> Measured:
        """Return what happened since `begin` or the last `measure`. The broker must still be running."""
        assert self.broker.is_running, self.broker.log
        waits_ms = self._polite.take()
        turns = _TURN.findall(self.broker.log[self._log_length :])
        longest = max(turns, key=lambda turn: int(turn[1]), default=("0", "0", ""))
        growth = peak_rss_bytes(self.broker.pid) - self._rss_bytes
        return Measured(
            percentile(self._quiet_ms, 0.99),
            percentile(waits_ms, 0.99),
            max(waits_ms),
            len(waits_ms),
            growth,
            int(longest[1]),
            longest[2],
            self._starved_share(),
        )

    def check(self, rss_growth_bytes_max: int) -> Measured:
        """Fail unless the attack was bounded; print what was measured."""
        measured = self.measure()
        print(measured)  # noqa: T201
        assert measured.rss_growth_bytes <= rss_growth_bytes_max, measured
        assert measured.longest_turn_cpu_ms <= LOOP_CPU_MS_MAX, measured
        assert measured.p99_ms <= measured.wait_ms_max, measured
        return measured

    def connect(self) -> Connection:
        return Connection(self.bootstrap)

    def rss_bytes(self) -> int:
        return rss_bytes(self.broker.pid)

    def wait_until_rss_below(self, growth_bytes: int, timeout_s: float = 15) -> None:
        """Wait until the broker has given back what the attack took."""
        wait_until(lambda: self.rss_bytes() - self._rss_bytes < growth_bytes, "the memory is given back", timeout_s)

    def close(self) -> None:
        self._polite.close()


class PoliteClient:
    """A process that produces small records, one at a time, and notes how long each waits for its answer."""

    def __init__(self, bootstrap: str) -> None:
        with Connection(bootstrap) as connection:
            connection.create_topic(POLITE_TOPIC)
        script = Path(__file__).with_name("polite_client.py")
        command = [sys.executable, str(script), bootstrap, POLITE_TOPIC]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.take()

    @property
    def pid(self) -> int:
        return self._process.pid

    def take(self) -> list[float]:
        """Return the waits in milliseconds since the last call, including that of the request in flight."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        waits_ms: list[float] = json.loads(self._process.stdout.readline() or "[]")
        assert waits_ms, "the polite client has ended: the broker closed its connection"
        return waits_ms

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def percentile(values: list[float], fraction: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


def rss_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmRSS")


def peak_rss_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmHWM")


def run_delay_ns(pid: int) -> int:
    """Return for how long the main thread of a process has waited for a CPU. It is the data loop of a broker."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def reset_peak_rss(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status_bytes(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
