"""Duration of a micro-batch by its steps, compared with the shortest batch that Spark itself can run.

    python -m benchmarks.spark_batch [--rounds 3] [--seconds 10] [--rate 20] [--brokers 3]

Five streaming queries run in one session with the settings of pipelines, one at a time, round by round:

    floor             a source of Spark that makes two rows a batch, and a sink of Spark that drops them
    sskafka           a topic copied to another topic by SSKafka's connector, exactly once
    sskafka source    the same topic into the sink that drops rows
    sskafka sink      the rows of the floor into a topic, exactly once
    kafka             a topic copied by Spark's own connector, at least once

The steps are those of Spark's progress reports (`durationMs`). A record that arrives at a random time waits for half a
batch and then for a whole one, so no connector has a median latency below 1.5 times the duration of the floor.
CPU time is that of Java, of its Python workers and of the brokers, for one batch.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.brokers import Broker, BrokerKind, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.spark_comparison import Cpu
from benchmarks.spark_kafka import resolve_spark_kafka_jars, spark_jars
from benchmarks.spark_latency import Sender, create_topics
from sskafka.pipelines.runner.run import REPORTS_CONF
from sskafka.pipelines.session import LOCAL_CHECKPOINTS, SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FLOOR, BOTH, SOURCE, SINK, SPARKS_OWN = "floor", "sskafka", "sskafka source", "sskafka sink", "kafka"
STEPS = ("triggerExecution", "latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
COLLECT_EVERY_S = 0.5


@dataclass
class Batches:
    """Reports of the micro-batches of one kind of query that had rows."""

    reports: list[Mapping[str, int]] = field(default_factory=list)
    cpu: list[Cpu] = field(default_factory=list)
    """CPU time of each round, divided by its batches."""

    def step_ms(self, step: str) -> float:
        return median(report.get(step, 0) for report in self.reports)


def source_of(spark: "SparkSession", kind: str, bootstrap: str, topic: str) -> "DataFrame":
    if kind in {FLOOR, SINK}:
        rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=2, numPartitions=1).load()
        return rows.selectExpr("cast(cast(value as string) as binary) as value")
    connector = "kafka" if kind == SPARKS_OWN else "sskafka"
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format(connector).options(**options).load().select("value")


def sink_of(rows: "DataFrame", kind: str, bootstrap: str, topic: str, checkpoint: str) -> "DataStreamWriter":
    writer = rows.writeStream.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds")
    if kind in {FLOOR, SOURCE}:
        return writer.format("noop")
    connector = "kafka" if kind == SPARKS_OWN else "sskafka"
    return writer.format(connector).options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic})


class Measurement:
    def __init__(self, spark: "SparkSession", broker: Broker, java_pid: int, options: argparse.Namespace) -> None:
        self._spark = spark
        self._broker = broker
        self._java_pid = java_pid
        self._options = options

    def run(self, kind: str, number: int, into: Batches) -> None:
        """Run one query of this kind for a while, and add the batches after the warm-up."""
        names = [f"{which}-{kind.replace(' ', '-')}-{number}" for which in ("in", "out")]
        create_topics(self._broker, names)
        with tempfile.TemporaryDirectory() as directory:
            rows = source_of(self._spark, kind, self._broker.bootstrap, names[0])
            query = sink_of(rows, kind, self._broker.bootstrap, names[1], directory).start()
            try:
                self._watch(query, Sender(self._broker.bootstrap, names[0]), into)
            finally:
                query.stop()

    def _watch(self, query: "StreamingQuery", sender: Sender, into: Batches) -> None:
        options = self._options
        thread = sender.send_steadily(options.rate, options.warm_up + options.seconds)
        seen = set(collected(query, options.warm_up))
        before = Cpu.read(self._broker, self._java_pid)
        found = {number: steps for number, steps in collected(query, options.seconds).items() if number not in seen}
        after = Cpu.read(self._broker, self._java_pid)
        thread.join()
        into.reports += found.values()
        into.cpu.append(Cpu(*((late - early) / max(1, len(found)) for early, late in zip(before, after, strict=True))))


def collected(query: "StreamingQuery", seconds: float) -> dict[int, Mapping[str, int]]:
    """Return the durations of the batches with rows, by number."""
    found: dict[int, Mapping[str, int]] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(COLLECT_EVERY_S)
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        for progress in query.recentProgress:
            report: dict[str, Any] = json.loads(progress.json)
            if report["numInputRows"]:
                found[report["batchId"]] = report["durationMs"]
    return found


def lines(kinds: Mapping[str, Batches]) -> Iterator[str]:
    yield f"| query | batches | {' | '.join(STEPS)} | CPU ms: Java | Python | brokers |"
    yield "|---|--:|" + "--:|" * (len(STEPS) + 3)
    for kind, batches in kinds.items():
        steps = " | ".join(f"{batches.step_ms(step):.0f}" for step in STEPS)
        cpu = [median(getattr(one, name) for one in batches.cpu) * 1000 for name in ("jvm", "workers", "brokers")]
        yield f"| {kind} | {len(batches.reports)} | {steps} | {' | '.join(f'{one:.0f}' for one in cpu)} |"


def java_pid() -> int:
    from pyspark import SparkContext  # noqa: PLC0415  it is started by now

    assert SparkContext._gateway is not None
    return int(SparkContext._gateway.proc.pid)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--rate", type=float, default=20, help="records per second")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--conf", action="append", default=[], help="a Spark setting, NAME=VALUE")
    every = [FLOOR, BOTH, SOURCE, SINK, SPARKS_OWN]
    parser.add_argument("--queries", nargs="+", choices=every, default=every)
    options = parser.parse_args(arguments)
    jars = {"spark.jars": spark_jars(resolve_spark_kafka_jars())} if SPARKS_OWN in options.queries else {}
    conf = {**REPORTS_CONF, **LOCAL_CHECKPOINTS, **jars, **dict(one.split("=", 1) for one in options.conf)}
    kind: BrokerKind = sskafka_kind() if options.brokers == 1 else ClusterKind(sskafka_kind(), options.brokers)
    spark = start_session(SessionSettings("benchmark", conf=conf))
    found = {name: Batches() for name in options.queries}
    with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory)) as broker:
        measurement = Measurement(spark, broker, java_pid(), options)
        for number in range(options.rounds):
            for name, batches in found.items():
                measurement.run(name, number, batches)
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
