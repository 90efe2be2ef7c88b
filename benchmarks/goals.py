"""Goals: ratios to Apache Kafka and to an earlier version, and bounds (1.5 times the figures of the prototype)."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.results import CPU_PER_GIGABYTE, CPU_PER_REQUEST, P50, P99, RATE, Measure


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a measure, or on its ratio to that of the other broker."""

    bound: float
    at_least: bool

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


def at_most(bound: float) -> Goal:
    return Goal(bound, at_least=False)


START_UP = "start-up"
RSS_AFTER_LOAD = "RSS after load"
RSS_IDLE = "RSS idle"

RATIO_GOALS: dict[tuple[str, str], Goal] = {
    ("produce-1kb", RATE.name): at_least(1.2),
    ("produce-1kb", CPU_PER_GIGABYTE.name): at_most(0.5),
    ("produce-1kb-16k", RATE.name): at_least(1.5),
    ("consume-100b", RATE.name): at_least(1.1),
    ("consume-100b", CPU_PER_GIGABYTE.name): at_most(1.0),
    ("consume-1kb", RATE.name): at_least(1.1),
    ("consume-1kb", CPU_PER_GIGABYTE.name): at_most(1.0),
    ("tiny-1", RATE.name): at_least(1.3),
    ("tiny-16", RATE.name): at_least(1.0),
    ("tiny-64", RATE.name): at_least(1.0),
    ("tiny-4x50", RATE.name): at_least(4.0),
    ("latency", P50.name): at_most(0.5),
    ("latency", P99.name): at_most(0.5),
    ("tls-produce-1kb", RATE.name): at_least(1.0),
    ("replicated-1kb", RATE.name): at_least(1.2),
    ("replicated-1kb-16k", RATE.name): at_least(1.2),
    ("replicated-tiny-1", RATE.name): at_least(1.0),
    ("replicated-tiny-16", RATE.name): at_least(1.0),
    ("replicated-tiny-4x50", RATE.name): at_least(1.0),
    ("process", START_UP): at_most(0.1),
    ("process", RSS_AFTER_LOAD): at_most(0.15),
}

ABSOLUTE_GOALS: dict[tuple[str, str], Goal] = {
    ("produce-1kb", CPU_PER_GIGABYTE.name): at_most(0.75),
    ("produce-1kb-16k", CPU_PER_GIGABYTE.name): at_most(2.85),
    ("consume-1kb", CPU_PER_GIGABYTE.name): at_most(0.6),
    ("tiny-16", CPU_PER_REQUEST.name): at_most(66),
    ("tiny-4x50", CPU_PER_REQUEST.name): at_most(13.5),
    ("process", START_UP): at_most(0.5),
    ("process", RSS_IDLE): at_most(70),
}


NO_SLOWER: dict[str, Goal] = {RATE.name: at_least(0.97), P50.name: at_most(1.03)}
"""By measure: what a version may lose to the one before it."""

RatioGoals = Callable[[str, str], Goal | None]
"""Return the goal for the ratio of a scenario, or "process", and the name of a measure."""


def beside_apache_kafka(scenario_key: str, measure: str) -> Goal | None:
    return RATIO_GOALS.get((scenario_key, measure))


def beside_the_version_before(scenario_key: str, measure: str) -> Goal | None:
    return NO_SLOWER.get(measure)


def absolute_goal(scenario_key: str, measure: Measure) -> Goal | None:
    return ABSOLUTE_GOALS.get((scenario_key, measure.name))
