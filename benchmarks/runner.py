"""The sequence of a run: start-ups, then each scenario with warm-up and counted rounds, alternating between brokers.

Changes of the machine during a run thus affect both brokers. Every other round starts with the other broker.
"""

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.brokers import Broker, BrokerKind, TlsKind
from benchmarks.generator import Round, run_load, run_round
from benchmarks.memory import WarmPages
from benchmarks.processes import read_rss_bytes
from benchmarks.results import BrokerResult
from benchmarks.scenarios import BURN_IN, Extent, Load, Scenario
from benchmarks.topics import fresh_topic

SETTLE_SECONDS = 1.0


def measure_kinds(
    kinds: Sequence[BrokerKind], scenarios: Sequence[Scenario], extent: Extent, directory: Path
) -> list[BrokerResult]:
    """Start each kind of broker in `directory`, measure it, and delete what was written."""
    results = [BrokerResult(kind.name) for kind in kinds]
    with _scratch(directory), contextlib.ExitStack() as running:
        for number in range(extent.startups - 1):
            for kind, result in zip(kinds, results, strict=True):
                with kind.running(directory / f"{kind.name}-start-{number}") as broker:
                    _note_startup(result, broker)
        brokers = [running.enter_context(kind.running(directory / kind.name)) for kind in kinds]
        for broker, result in zip(brokers, results, strict=True):
            _note_startup(result, broker)
        _measure_running(brokers, results, scenarios, extent)
    return results


def measure_tls(
    kinds: Sequence[BrokerKind],
    scenarios: Sequence[Scenario],
    extent: Extent,
    directory: Path,
    results: Sequence[BrokerResult],
) -> None:
    """Add the rounds at listeners with TLS to the results. Start-up and memory remain those without TLS."""
    secured = measure_kinds([TlsKind(kind) for kind in kinds], scenarios, replace(extent, startups=1), directory)
    for result, with_tls in zip(results, secured, strict=True):
        result.rounds.update(with_tls.rounds)


def measure_attached(broker: Broker, scenarios: Sequence[Scenario], extent: Extent) -> list[BrokerResult]:
    """Measure a broker that is already running."""
    results = [BrokerResult(broker.name)]
    _measure_running([broker], results, scenarios, extent)
    return results


def _measure_running(
    brokers: Sequence[Broker], results: Sequence[BrokerResult], scenarios: Sequence[Scenario], extent: Extent
) -> None:
    time.sleep(SETTLE_SECONDS)
    pairs = list(zip(brokers, results, strict=True))
    for broker, result in pairs:
        result.rss_idle_bytes = read_rss_bytes(broker.pid)
    for broker in brokers:
        _burn_in(broker, extent, tls=any(scenario.tls for scenario in scenarios))
    for scenario in scenarios:
        _measure_scenario(scenario, extent, pairs)
    for broker, result in pairs:
        result.rss_after_load_bytes = read_rss_bytes(broker.pid)


def _burn_in(broker: Broker, extent: Extent, *, tls: bool) -> None:
    arguments = BURN_IN.arguments(extent) | {"--seconds": extent.burn_in_seconds}
    with fresh_topic(broker, BURN_IN.partitions) as topic:
        run_load(BURN_IN.load, broker, topic, arguments, tls=tls)


def _measure_scenario(scenario: Scenario, extent: Extent, pairs: Sequence[tuple[Broker, BrokerResult]]) -> None:
    pages = WarmPages(scenario.bytes_written_max(extent))
    with contextlib.ExitStack() as filled:
        topics = {broker.name: filled.enter_context(_topic_to_read(scenario, extent, broker)) for broker, _ in pairs}
        for number in range(-extent.warm_up_rounds, extent.rounds):
            for broker, result in pairs if number % 2 == 0 else reversed(pairs):
                pages.hold()
                one = _one_round(scenario, extent, broker, topics[broker.name], pages)
                if number >= 0:
                    result.rounds.setdefault(scenario.key, []).append(one)
                _tell(scenario, broker, number, one)


@contextlib.contextmanager
def _topic_to_read(scenario: Scenario, extent: Extent, broker: Broker) -> Iterator[str | None]:
    """Consuming reads one filled topic repeatedly; all other scenarios write to a new topic in each round."""
    if scenario.load is not Load.CONSUME:
        yield None
        return
    with fresh_topic(broker, scenario.partitions) as topic:
        run_load(Load.PRODUCE, broker, topic, scenario.arguments(extent), tls=scenario.tls)
        yield topic


def _one_round(scenario: Scenario, extent: Extent, broker: Broker, filled_topic: str | None, pages: WarmPages) -> Round:
    if filled_topic is not None:
        return run_round(scenario, extent, broker, filled_topic, pages)
    with fresh_topic(broker, scenario.partitions) as topic:
        return run_round(scenario, extent, broker, topic, pages)


def _note_startup(result: BrokerResult, broker: Broker) -> None:
    if broker.startup is not None:
        result.port_open_seconds.append(broker.startup.port_open_seconds)
        result.ready_seconds.append(broker.startup.ready_seconds)


def _tell(scenario: Scenario, broker: Broker, number: int, one: Round) -> None:
    label = "warm-up" if number < 0 else f"round {number + 1}"
    print(f"{scenario.title}: {broker.name}, {label}: {one.rate:,.0f}/s", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _scratch(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)
