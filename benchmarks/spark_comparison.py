"""Common code of the Spark benchmarks: the systems to compare, and the resulting table.

SSKafka's connector is compared with Spark's own, on SSKafka and on Apache Kafka brokers, round by round in one session.
CPU time is reported separately for brokers, Spark's JVM and its Python workers.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import Broker, BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.processes import children_of, read_cpu
from benchmarks.spark_kafka import resolve_spark_kafka_jars, spark_jars
from sskafka.pipelines.session import SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, SPARKS_OWN = "sskafka", "kafka"
TITLES = "| broker | connector | rows/s | range | of Spark's own | CPU us/row: brokers | JVM | Python |"


def parser_for(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="only SSKafka's connector and brokers: no Maven, no Kafka")
    return parser


def start_spark(arguments: argparse.Namespace) -> "SparkSession":
    conf = {} if arguments.alone else {"spark.jars": spark_jars(resolve_spark_kafka_jars())}
    return start_session(SessionSettings("benchmark", conf=conf), print)


def clusters(arguments: argparse.Namespace) -> Iterator[tuple[str, BrokerKind]]:
    kinds = [sskafka_kind()] if arguments.alone else [sskafka_kind(), apache_kafka_kind(resolve_kafka_libs())]
    for kind in kinds:
        yield kind.name, kind if arguments.brokers == 1 else ClusterKind(kind, arguments.brokers)


class Cpu(NamedTuple):
    """CPU seconds of brokers, JVM and Python workers."""

    brokers: float = 0
    jvm: float = 0
    workers: float = 0

    @classmethod
    def read(cls, broker: Broker, jvm_pid: int) -> "Cpu":
        brokers = sum(read_cpu(pid).seconds for pid in (broker.pid, *broker.follower_pids))
        workers = sum(read_cpu(pid).seconds for pid in children_of(jvm_pid))
        return cls(brokers, read_cpu(jvm_pid).seconds - workers, workers)


class Measurement(NamedTuple):
    connector: str
    rows_a_second: float
    cpu_us_a_row: Cpu = Cpu()


def rounds(
    spark: "SparkSession", broker: Broker, count: int, records: int, runs: Mapping[str, Callable[[], float]]
) -> Iterator[Measurement]:
    """Execute each run, which returns its duration in seconds, once per round."""
    jvm_pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    for _, (name, run) in product(range(count), runs.items()):
        before = Cpu.read(broker, jvm_pid)
        seconds = run()
        spent = zip(before, Cpu.read(broker, jvm_pid), strict=True)
        yield Measurement(name, records / seconds, Cpu(*((new - old) / records * 1e6 for old, new in spent)))


def table(broker: str, measurements: Iterable[Measurement]) -> Iterator[str]:
    """Yield one line per connector: median, range, ratio to Spark's own connector, and CPU time."""
    seen: dict[str, list[Measurement]] = {}
    for one in measurements:
        print(f"{broker:14} {one.connector:24} {one.rows_a_second:12,.0f} rows/s", flush=True)
        seen.setdefault(one.connector, []).append(one)
    rates = {connector: [one.rows_a_second for one in some] for connector, some in seen.items()}
    for connector, some in seen.items():
        rate = rates[connector]
        ratio = f"{median(rate) / median(rates[SPARKS_OWN]):.2f}x" if SPARKS_OWN in rates else "-"
        cpu = " | ".join(f"{median(values):.2f}" for values in zip(*(one.cpu_us_a_row for one in some), strict=True))
        yield f"| {broker} | {connector} | {median(rate):,.0f} | {min(rate):,.0f}-{max(rate):,.0f} | {ratio} | {cpu} |"


def compare(
    title: str,
    arguments: argparse.Namespace,
    measured: Callable[["SparkSession", Broker, list[str]], Iterator[Measurement]],
) -> None:
    """Run `measured` on each cluster with the connectors to compare, and print the table."""
    connectors = [OURS] if arguments.alone else [OURS, SPARKS_OWN]
    spark = start_spark(arguments)
    lines = [title, "", TITLES, "|---" * (TITLES.count(" | ") + 1) + "|"]
    for name, cluster in clusters(arguments):
        with tempfile.TemporaryDirectory() as directory, cluster.running(Path(directory)) as broker:
            lines += table(name, measured(spark, broker, connectors))
    spark.stop()
    print("\n".join(lines))
