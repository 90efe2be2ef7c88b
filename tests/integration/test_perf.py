"""`sskafka perf` against real brokers."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import sskafka

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))

pytestmark = pytest.mark.usefixtures("_ours")


def perf(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    command = [SSKAFKA, "perf", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    told = perf("produce", topic, "-n", "3000", "-s", "50", "--producers", "2", "-b", bootstrap).stdout
    assert told.startswith("3000 records sent, ")
    assert told.count("\n") == 1
    lines = perf("consume", "--topic", topic, "--messages", "3000", "-b", bootstrap).stdout.splitlines()
    assert lines[0].startswith("start.time, end.time, data.consumed.in.MB")
    assert lines[1].split(", ")[4] == "3000"
    as_json = json.loads(perf("consume", topic, "-n", "10", "-b", bootstrap, "--format", "json").stdout)
    assert as_json["records"] >= 10


def test_a_rate_is_kept(bootstrap: str, topic: str) -> None:
    told = json.loads(
        perf("produce", topic, "-n", "100", "--throughput", "200", "-b", bootstrap, "--format", "json").stdout
    )
    assert told["records"] == 100
    assert told["seconds"] >= 0.4


@pytest.mark.parametrize("options", [(), ("--by-record",)], ids=["by batch", "by record"])
def test_a_grid_leaves_a_table_a_file_a_picture_and_records(
    bootstrap: str, topic: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    sizes = ("--partitions", "1,2", "--brokers", "1", "--replication", "1,3", "--producers", "1", "--consumers", "1")
    kept = ("--results-topic", topic, "-b", bootstrap, "--results", str(out), "--dir", str(tmp_path / "clusters"))
    done = perf("grid", *sizes, "--seconds", "0.3", *kept, *options)
    table = done.stdout.splitlines()
    assert table[0].split() == [
        *("BROKERS", "REPLICATION", "PARTITIONS", "PRODUCE/S", "MB/S", "P50-MS", "P99-MS", "CONSUME/S", "MB/S")
    ]
    assert [line.split()[:3] for line in table[1:]] == [["1", "1", "1"], ["1", "1", "2"]]
    document = json.loads((out / "results.json").read_text())
    rows = document["rows"]
    assert [(row["partitions"], row["phase"]) for row in rows] == [
        *((partitions, phase) for partitions in (1, 2) for phase in ("produce", "consume"))
    ]
    assert all(row["records"] > 0 for row in rows)
    assert ET.parse(out / "grid.svg").getroot().tag.endswith("svg")
    with sskafka.Consumer(bootstrap) as consumer:
        consumer.subscribe(topic)
        records = consumer.poll(10, timeout_ms=5000)
    assert [json.loads(record.value or b"") for record in records] == rows
    assert {record.key for record in records} == {document["run"]["run_id"].encode()}
