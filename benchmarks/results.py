"""Aggregate rounds: the median and spread of each measure, and what was busy."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.generator import Round

BUSY_SHARE = 0.85
NOISE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Figure:
    """A median with the lowest and the highest round."""

    median: float
    lowest: float
    highest: float

    @property
    def spread(self) -> float:
        """Half the distance from lowest to highest, as a share of the median."""
        return (self.highest - self.lowest) / 2 / self.median if self.median else 0.0


def figure(values: Sequence[float]) -> Figure:
    return Figure(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value of a round: its name, how to read it, and its decimals."""

    name: str
    take: Callable[[Round], float | None]
    decimals: int


RATE = Measure("per second", lambda one: one.rate, 0)
MEGABYTES = Measure("MB/s", lambda one: one.megabytes_per_second, 1)
CPU_PER_GIGABYTE = Measure("broker CPU s/GB", lambda one: one.broker_cpu_per_gigabyte, 2)
FOLLOWER_CPU_PER_GIGABYTE = Measure("follower CPU s/GB", lambda one: one.follower_cpu_per_gigabyte, 2)
CPU_PER_REQUEST = Measure("broker CPU us/request", lambda one: one.broker_cpu_us_per_message, 1)
P50 = Measure("p50 us", lambda one: one.p50_us, 0)
P99 = Measure("p99 us", lambda one: one.p99_us, 0)


@dataclass(slots=True)
class BrokerResult:
    """All measurements of one broker."""

    name: str
    rounds: dict[str, list[Round]] = field(default_factory=dict)
    port_open_seconds: list[float] = field(default_factory=list)
    ready_seconds: list[float] = field(default_factory=list)
    rss_idle_bytes: int | None = None
    rss_after_load_bytes: int | None = None

    def figure(self, scenario_key: str, measure: Measure) -> Figure | None:
        values = [value for one in self.rounds.get(scenario_key, ()) if (value := measure.take(one)) is not None]
        return figure(values) if values else None


@dataclass(frozen=True, slots=True)
class Busy:
    """CPU usage in cores: of the busiest thread and the whole process on both sides, and of everything else."""

    broker_thread: float
    broker_cores: float
    client_thread: float
    client_cores: float
    other_cores: float

    def verdict(self, machine_cores: int) -> str:
        """Return the bottleneck: a thread that is always busy, else all cores together, else neither (waiting)."""
        if max(self.broker_thread, self.client_thread) >= BUSY_SHARE:
            return "broker" if self.broker_thread >= self.client_thread else "client"
        if self.other_cores >= NOISE_SHARE:
            return "disturbed by others"
        if self.broker_cores + self.client_cores >= BUSY_SHARE * machine_cores:
            return "machine (mostly broker)" if self.broker_cores > self.client_cores else "machine (mostly client)"
        return "neither (waiting)"


def busy(rounds: Sequence[Round]) -> Busy:
    return Busy(
        statistics.median(one.broker_busiest_thread for one in rounds),
        statistics.median(one.broker_cores for one in rounds),
        statistics.median(one.client_busiest_thread for one in rounds),
        statistics.median(one.client_cores for one in rounds),
        statistics.median(one.other_cores for one in rounds),
    )


def as_json(results: Sequence[BrokerResult], about: Mapping[str, object]) -> dict[str, Any]:
    return {"about": dict(about), "brokers": [asdict(result) for result in results]}
