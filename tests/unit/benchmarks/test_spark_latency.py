"""Aggregation of the rounds of the latency benchmark."""

import argparse
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from benchmarks.spark_latency import (
    BEFORE,
    OURS,
    PARTITIONS,
    PLAIN,
    POLL_S_MAX,
    Figures,
    Received,
    Round,
    Sender,
    environment_of,
    lines,
)

import sskafka


def test_figures_are_percentiles_over_all_rounds_and_medians_of_the_rest() -> None:
    first = Round(10.0, [float(number) for number in range(1, 51)], 1000.0)
    second = Round(20.0, [float(number) for number in range(51, 102)], 3000.0, duplicates=2)
    figures = Figures.of([first, second])
    assert figures == (51.0, 91.0, 100.0, 2000.0, 15.0, 2)


@pytest.mark.parametrize(("plain_ms", "verdict"), [(100.0, "yes"), (99.0, "no")])
def test_the_goal_compares_the_medians(plain_ms: float, verdict: str) -> None:
    figures = {
        OURS: Figures(40.0, 50.0, 60.0, 1000.0, 10.0, 0),
        PLAIN: Figures(plain_ms, 200.0, 300.0, 500.0, 20.0, 0),
    }
    shown = list(lines(figures))
    assert shown[-1].endswith(verdict)
    assert "rows/s 2.00x, start 0.50x" in shown[-2]


def test_the_pipeline_of_another_checkout_runs_with_its_own_source(tmp_path: Path) -> None:
    options = argparse.Namespace(before=str(tmp_path))
    assert environment_of(BEFORE, options)["PYTHONPATH"] == str(tmp_path / "src")
    assert str(tmp_path) not in environment_of(OURS, options).get("PYTHONPATH", "")


def test_the_arrival_of_a_record_is_not_measured_late() -> None:
    with sskafka.Broker({"num.partitions": PARTITIONS}) as broker:
        sender, received = Sender(broker.bootstrap_servers, "out"), Received(broker.bootstrap_servers, "out")
        for number in range(20):
            sender.send()
            sender.flush()
            received.wait_for(lambda: number in received.at, 30, lambda: True)  # noqa: B023  called in the loop
        received.close()
        sent_at = sender.at
        del sender  # librdkafka reconnects until its producer is gone
    assert min(received.at[number] - sent for number, sent in enumerate(sent_at)) < POLL_S_MAX / 2
