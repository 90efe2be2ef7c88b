"""Format results as tables: plain text with aligned columns, or Markdown."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.goals import (
    ABSOLUTE_GOALS,
    RSS_AFTER_LOAD,
    RSS_IDLE,
    START_UP,
    Goal,
    RatioGoals,
    absolute_goal,
    beside_apache_kafka,
)
from benchmarks.results import (
    CPU_PER_GIGABYTE,
    CPU_PER_REQUEST,
    FOLLOWER_CPU_PER_GIGABYTE,
    MEGABYTES,
    P50,
    P99,
    RATE,
    BrokerResult,
    Figure,
    Measure,
    busy,
)
from benchmarks.scenarios import Load, Scenario

MEASURES: dict[Load, tuple[Measure, ...]] = {
    Load.PRODUCE: (RATE, MEGABYTES, CPU_PER_GIGABYTE, FOLLOWER_CPU_PER_GIGABYTE),
    Load.CONSUME: (RATE, MEGABYTES, CPU_PER_GIGABYTE),
    Load.REQUESTS: (RATE, CPU_PER_REQUEST, P50, P99),
    Load.LATENCY: (P50, P99, CPU_PER_REQUEST),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a heading and rows of text."""

    title: str
    heading: tuple[str, ...]
    rows: list[tuple[str, ...]]


def tables(
    results: Sequence[BrokerResult],
    scenarios: Sequence[Scenario],
    machine_cores: int,
    goals: RatioGoals = beside_apache_kafka,
) -> list[Table]:
    """One broker: its figures and the absolute goals. Two brokers: both figures, their ratios and `goals` for these."""
    if len(results) == 1:
        figures = Table(
            "Figures", ("scenario", "measure", results[0].name, "goal", "reached"), _single_rows(results[0], scenarios)
        )
    else:
        first, second = results
        heading = ("scenario", "measure", first.name, second.name, "ratio", "goal", "reached")
        figures = Table(
            f"{first.name} compared with {second.name}", heading, _ratio_rows(first, second, scenarios, goals)
        )
    return [figures, _busy_table(results, scenarios, machine_cores)]


def _single_rows(result: BrokerResult, scenarios: Sequence[Scenario]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for measure in MEASURES[scenario.load]:
            if (one := result.figure(scenario.key, measure)) is not None:
                goal = absolute_goal(scenario.key, measure)
                rows.append((scenario.title, measure.name, _text(one, measure.decimals), *_verdict(goal, one.median)))
    for name, value, unit in _process_figures(result):
        rows.append(
            (
                "process",
                f"{name} {unit}",
                f"{value:.2f}",
                *_verdict(ABSOLUTE_GOALS.get((_process(scenarios), name)), value),
            )
        )
    return rows


def _ratio_rows(
    first: BrokerResult, second: BrokerResult, scenarios: Sequence[Scenario], goals: RatioGoals
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for measure in MEASURES[scenario.load]:
            ours, theirs = first.figure(scenario.key, measure), second.figure(scenario.key, measure)
            if ours is not None and theirs is not None:
                texts = _text(ours, measure.decimals), _text(theirs, measure.decimals)
                rows.append(
                    (
                        scenario.title,
                        measure.name,
                        *texts,
                        *_ratio(ours.median, theirs.median, goals(scenario.key, measure.name)),
                    )
                )
    for (name, ours_value, unit), (_, theirs_value, _) in zip(
        _process_figures(first), _process_figures(second), strict=True
    ):
        ratio = _ratio(ours_value, theirs_value, goals(_process(scenarios), name))
        rows.append(("process", f"{name} {unit}", f"{ours_value:.2f}", f"{theirs_value:.2f}", *ratio))
    return rows


def _process(scenarios: Sequence[Scenario]) -> str:
    """Return the key for goals of the process; the start of a cluster includes an election and has no goal."""
    return "cluster" if all(scenario.acks == "all" for scenario in scenarios) else "process"


def _process_figures(result: BrokerResult) -> Iterator[tuple[str, float, str]]:
    if result.ready_seconds:
        yield START_UP, statistics.median(result.ready_seconds), "s"
        yield "port open", statistics.median(result.port_open_seconds), "s"
    if result.rss_idle_bytes is not None:
        yield RSS_IDLE, result.rss_idle_bytes / 1e6, "MB"
    if result.rss_after_load_bytes is not None:
        yield RSS_AFTER_LOAD, result.rss_after_load_bytes / 1e6, "MB"


def _busy_table(results: Sequence[BrokerResult], scenarios: Sequence[Scenario], machine_cores: int) -> Table:
    shares = ("broker thread", "broker cores", "client thread", "client cores", "others")
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for result in results:
            if rounds := result.rounds.get(scenario.key):
                one = busy(rounds)
                cells = (one.broker_thread, one.broker_cores, one.client_thread, one.client_cores, one.other_cores)
                texts = (f"{cell:.2f}" for cell in cells)
                rows.append((scenario.title, result.name, *texts, one.verdict(machine_cores)))
    title = f"What is busy (shares of one core; the machine has {machine_cores})"
    return Table(title, ("scenario", "broker", *shares, "saturated"), rows)


def _text(one: Figure, decimals: int) -> str:
    return f"{one.median:,.{decimals}f} ±{one.spread:.0%}"


def _ratio(ours: float, theirs: float, goal: Goal | None) -> tuple[str, str, str]:
    ratio = ours / theirs if theirs else float("nan")
    return (f"{ratio:.2f}x", *_verdict(goal, ratio))


def _verdict(goal: Goal | None, value: float) -> tuple[str, str]:
    return ("", "") if goal is None else (str(goal), "yes" if goal.reached(value) else "no")


def plain_text(all_tables: Sequence[Table], about: Mapping[str, object]) -> str:
    lines = [f"{name}: {value}" for name, value in about.items()]
    for table in all_tables:
        widths = [max(len(row[column]) for row in (table.heading, *table.rows)) for column in range(len(table.heading))]
        lines += ["", table.title, _aligned(table.heading, widths), _aligned(["-" * width for width in widths], widths)]
        lines += [_aligned(row, widths) for row in table.rows]
    return "\n".join(lines) + "\n"


def markdown(all_tables: Sequence[Table], about: Mapping[str, object]) -> str:
    lines = [f"- {name}: {value}" for name, value in about.items()]
    for table in all_tables:
        lines += ["", f"### {table.title}", "", _piped(table.heading), _piped(["---"] * len(table.heading))]
        lines += [_piped(row) for row in table.rows]
    return "\n".join(lines) + "\n"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
