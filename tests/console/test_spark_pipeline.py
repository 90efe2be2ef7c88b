"""A pipeline that Spark runs, in the browser: its dead letters are shown and sent back while it runs."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from clients import Message, confluent_producer, confluent_send
from console_cluster import ConsoleCluster

sys.path.append(str(Path(__file__).resolve().parents[1] / "spark"))

from process_session import ProcessSession

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
SPARK_S = 240
"""Spark starts slowly on a busy machine."""
FILE = """\
name: browsed
sources:
  visits:
    topic: visits
    format: json
    schema: user string not null, ms int
    expectations:
      - {name: positive, check: ms >= 0, action: dlq}
transform:
  sql: select user, ms from visits
sinks:
  - topic: {topic: visits-clean, partitions: 1}
trigger: 500 milliseconds
spark: {spark.sql.shuffle.partitions: 1}
"""
GOOD = [json.dumps({"user": f"u-{number}", "ms": number}).encode() for number in range(20)]
BROKEN, NEGATIVE = b'{"user": <b>broken</b>', b'{"user": "negative", "ms": -5}'


@pytest.fixture
def run(cluster: ConsoleCluster, tmp_path: Path) -> Iterator[ProcessSession]:
    for topic in ("visits", "visits-clean"):
        cluster.create_topic(topic, partitions=1)
    file = tmp_path / "browsed.yaml"
    file.write_text(FILE)
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", cluster.bootstrap, "--master", "local[2]"]
    run = ProcessSession(command, tmp_path / "run.log")
    yield run
    run.close()


@pytest.mark.timeout(900)
def test_dead_letters_of_a_pipeline_that_runs(browser: Browser, cluster: ConsoleCluster, run: ProcessSession) -> None:
    producer = confluent_producer(cluster.bootstrap)
    confluent_send(producer, "visits", [Message(value) for value in (*GOOD, BROKEN, NEGATIVE)])
    with browser.expecting("404"):  # until the first run has published something
        browser.open(cluster.url(), "pipelines")
        browser.wait_for_text("browsed", SPARK_S, ".row-link")
        browser.click("browsed", ".row-link")
        browser.wait_for_text("browsed", selector="h1")
        browser.wait_for_text("visits", SPARK_S, ".pipeline-graph")
        browser.wait_until(lambda: len(browser.texts(".reasons li")) == 2, "two reasons", SPARK_S)
    assert run.process.poll() is None, run.talk()
    assert any("positive" in reason for reason in browser.texts(".reasons li"))
    for toggle in browser.find(".letters .row-toggle"):
        toggle.click()
    browser.wait_for_text("<b>broken</b>", selector=".letters pre")
    assert browser.accessibility_findings() == []
    browser.click("Dry run")
    browser.wait_for_text("2 letters would be sent back", selector=".note")
    browser.click("Send back")
    browser.wait_for_text("2 dead letters sent back.", selector=".toast")
    again = f"visits-0 at {len(GOOD) + 2}"
    browser.wait_for_text(again, SPARK_S, ".letters")  # the pipeline has read them again: they are as broken as before
    browser.open(cluster.url(), "messages/visits")
    expected = sorted([value.decode() for value in (*GOOD, BROKEN, NEGATIVE, BROKEN, NEGATIVE)])
    browser.wait_until(lambda: sorted(browser.texts("td.value")) == expected, "the records are back, as they were")
    browser.open(cluster.url(), "messages/visits-clean")
    browser.wait_until(lambda: len(browser.texts("td.value")) == len(GOOD), "good records are there once")
    assert run.process.poll() is None, run.talk()
