"""Tables: medians, ratios, goals and verdicts from rounds."""

from dataclasses import replace

import pytest
from benchmarks.generator import Round
from benchmarks.goals import ABSOLUTE_GOALS, RATIO_GOALS, at_least, at_most
from benchmarks.report import markdown, plain_text, tables
from benchmarks.results import BrokerResult, Busy, as_json, figure
from benchmarks.scenarios import FULL, QUICK, REPLICATED_SCENARIOS, SCENARIOS, TLS_SCENARIOS, Load

ROUND = Round(
    rate=1000.0,
    megabytes_per_second=1.0,
    broker_cpu_per_gigabyte=0.5,
    broker_cpu_us_per_message=10.0,
    broker_cores=0.9,
    broker_busiest_thread=0.9,
    client_cores=0.4,
    client_busiest_thread=0.3,
    follower_cpu_per_gigabyte=None,
    other_cores=0.1,
    p50_us=100.0,
    p99_us=200.0,
)


def result(name: str, rate: float, cpu_per_gigabyte: float = 0.5) -> BrokerResult:
    rounds = [
        replace(ROUND, rate=rate * factor, broker_cpu_per_gigabyte=cpu_per_gigabyte) for factor in (0.9, 1.0, 1.3)
    ]
    return BrokerResult(
        name,
        {scenario.key: rounds for scenario in (*SCENARIOS, *TLS_SCENARIOS, *REPLICATED_SCENARIOS)},
        [0.1],
        [0.2],
        rss_idle_bytes=30_000_000,
        rss_after_load_bytes=60_000_000,
    )


def test_figure_is_the_median_with_its_spread() -> None:
    one = figure([90.0, 100.0, 130.0])
    assert one.median == 100.0
    assert one.spread == pytest.approx(0.2)


def test_goals_bound_from_one_side() -> None:
    assert at_least(1.2).reached(1.2)
    assert not at_least(1.2).reached(1.19)
    assert at_most(0.5).reached(0.5)
    assert not at_most(0.5).reached(0.51)


def test_every_goal_belongs_to_a_row_that_is_printed() -> None:
    alone = tables([result("SSKafka", 10)], SCENARIOS, 2)[0]
    both = tables(
        [result("SSKafka", 10), result("Apache Kafka", 10)], (*SCENARIOS, *TLS_SCENARIOS, *REPLICATED_SCENARIOS), 2
    )[0]
    assert sum(row[-1] != "" for row in alone.rows) == len(ABSOLUTE_GOALS)
    assert sum(row[-1] != "" for row in both.rows) == len(RATIO_GOALS)


def test_ratios_are_ours_to_theirs() -> None:
    table = tables([result("SSKafka", 1300, 0.2), result("Apache Kafka", 1000, 0.8)], SCENARIOS, 2)[0]
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["produce 1 KB, large batches", "per second"] == ("1,300 ±20%", "1,000 ±20%", "1.30x", ">= 1.2", "yes")
    assert rows["produce 1 KB, large batches", "broker CPU s/GB"][2:] == ("0.25x", "<= 0.5", "yes")
    assert rows["produce 1 KB, 16 KB batches", "per second"][2:] == ("1.30x", ">= 1.5", "no")


@pytest.mark.parametrize(
    ("busy", "verdict"),
    [
        (Busy(0.95, 1.0, 0.5, 0.6, 0.1), "broker"),
        (Busy(0.4, 0.5, 0.97, 1.2, 0.1), "client"),
        (Busy(0.5, 1.3, 0.4, 0.6, 0.1), "machine (mostly broker)"),
        (Busy(0.3, 0.3, 0.2, 0.2, 0.1), "neither (waiting)"),
        (Busy(0.5, 0.5, 0.4, 0.6, 0.8), "disturbed by others"),
    ],
)
def test_the_bottleneck_is_identified(busy: Busy, verdict: str) -> None:
    assert busy.verdict(machine_cores=2) == verdict


def test_text_and_markdown_hold_every_row() -> None:
    shown = tables([result("SSKafka", 10)], SCENARIOS, 2)
    rows = sum(len(table.rows) for table in shown)
    text, marked = plain_text(shown, {"machine": "small"}), markdown(shown, {"machine": "small"})
    assert text.startswith("machine: small\n")
    assert sum(line.startswith("| ") for line in marked.splitlines()) == rows + 2 * len(shown)
    assert len(text.splitlines()) == 1 + rows + 4 * len(shown)
    assert as_json([result("SSKafka", 10)], {})["brokers"][0]["rounds"]["tiny-1"][1]["rate"] == 10


def test_runs_are_bounded_in_count_and_time() -> None:
    for extent in (FULL, QUICK):
        for scenario in SCENARIOS:
            arguments = scenario.arguments(extent)
            assert arguments["--seconds"] <= 30
            assert scenario.messages_max(extent) * scenario.message_bytes <= extent.round_bytes_max
            assert ("--messages" in arguments) == (scenario.load in {Load.PRODUCE, Load.CONSUME})
