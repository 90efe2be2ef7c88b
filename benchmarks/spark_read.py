"""Reading a topic with Spark: rows a second of our connector, beside Spark's own where its jars can be had.

    python -m benchmarks.spark_read [--records 10000000] [--brokers 3] [--varied] [--kafka] [--official-jars DIRECTORY]

Records of 100 bytes, in batches of about 900 KB, over 12 partitions, are read into Spark's no-op sink; with --varied
they have keys and 60 to 140 bytes each, in batches of 16 KB, as a producer with default settings writes them. The first
read of each connector is not counted: it starts the workers and lets the JVM compile. `alone` is the same reading and
decoding in one Python process without Spark. CPU time is told by who spent it: brokers, Spark's JVM, Python workers.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import Broker, BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.processes import children_of, read_cpu
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.session import SessionSettings, start_session
from sskafka.records.compression import Compression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "read"
PARTITIONS = 12
WARM_UP_RECORDS = 1_000_000


class Shape(NamedTuple):
    """What the records look like."""

    name: str
    records_a_batch: int
    row: Callable[[int, Random], Row]

    @property
    def turn(self) -> int:
        """Records in one batch for every partition."""
        return self.records_a_batch * PARTITIONS


UNIFORM = Shape("100 B, batches of 900 KB", 8_000, lambda number, _: Row(None, b"%0100d" % number))
VARIED = Shape(
    "keys, 60-140 B, batches of 16 KB",
    140,
    lambda number, random: Row(b"user-%d" % (number % 5_000), b"v" * random.randint(60, 140)),
)


def fill(bootstrap: str, shape: Shape, records: int) -> None:
    random = Random(1)
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        created = session.run(Admin(session.cluster).create_topics([NewTopic(TOPIC, PARTITIONS, 1)]))
        assert not isinstance(created[TOPIC], Exception), created
        batch = _batch(session.cluster.clock.now_ms(), [shape.row(n, random) for n in range(shape.records_a_batch)])
        everywhere = {TopicPartition(TOPIC, number): batch for number in range(PARTITIONS)}
        for _ in range(records // shape.turn):
            session.run(deliver(session.cluster, everywhere, None))


def _batch(timestamp: int, rows: list[Row]) -> Buffer:
    (payload,) = payloads(rows, bytes_max=1 << 30)
    return framed(
        payload,
        timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        codec=Compression.NONE,
        transactional=False,
    )


def read_alone(bootstrap: str, records: int) -> float:
    """Seconds for all partitions, one behind the other, in this process."""
    options = source_options({BOOTSTRAP: bootstrap, "subscribe": TOPIC}, streaming=False)
    began = time.monotonic()
    for number in range(PARTITIONS):
        part = OffsetRange(TopicPartition(TOPIC, number), 0, records // PARTITIONS)
        assert sum(batch.num_rows for batch in read_ranges(options, [part])) == part.size
    return time.monotonic() - began


def read_with_spark(spark: "SparkSession", connector: str, bootstrap: str, records: int) -> float:
    """Seconds to read `records` into the no-op sink."""
    ends = ", ".join(f'"{number}": {records // PARTITIONS}' for number in range(PARTITIONS))
    reader = spark.read.format(connector).option(BOOTSTRAP, bootstrap).option("subscribe", TOPIC)
    rows = reader.option("endingOffsets", f'{{"{TOPIC}": {{{ends}}}}}').load()
    began = time.monotonic()
    rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


class Cpu(NamedTuple):
    """CPU seconds of everybody who has a part in reading."""

    brokers: float
    jvm: float
    workers: float

    @classmethod
    def read(cls, broker: Broker, jvm_pid: int) -> "Cpu":
        brokers = sum(read_cpu(pid).seconds for pid in (broker.pid, *broker.follower_pids))
        workers = sum(read_cpu(pid).seconds for pid in children_of(jvm_pid))
        return cls(brokers, read_cpu(jvm_pid).seconds - workers, workers)


class Measurement(NamedTuple):
    connector: str
    rows_a_second: float
    cpu_us_a_row: Cpu


def measured(
    kind: BrokerKind, shape: Shape, arguments: argparse.Namespace, spark: "SparkSession", connectors: list[str]
) -> Iterator[Measurement]:
    """Round by round."""
    records = max(arguments.records // shape.turn, 1) * shape.turn
    jvm_pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory)) as broker:
        fill(broker.bootstrap, shape, records)
        for connector in connectors:
            read_with_spark(spark, connector, broker.bootstrap, min(records, WARM_UP_RECORDS))
        for _, connector in product(range(arguments.rounds), connectors):
            before = Cpu.read(broker, jvm_pid)
            seconds = read_with_spark(spark, connector, broker.bootstrap, records)
            spent = zip(before, Cpu.read(broker, jvm_pid), strict=True)
            yield Measurement(connector, records / seconds, Cpu(*((new - old) / records * 1e6 for old, new in spent)))
        yield Measurement("alone", records / read_alone(broker.bootstrap, records), Cpu(0, 0, 0))


def table(broker: str, measurements: Iterable[Measurement]) -> Iterator[str]:
    """A line a connector: its median, its range, how it compares with Spark's own, and what the CPU did."""
    seen: dict[str, list[Measurement]] = {}
    for one in measurements:
        print(f"{broker:14} {one.connector:8} {one.rows_a_second:12,.0f} rows/s", flush=True)
        seen.setdefault(one.connector, []).append(one)
    rates = {connector: [one.rows_a_second for one in some] for connector, some in seen.items()}
    for connector, some in seen.items():
        rate = rates[connector]
        ratio = f"{median(rate) / median(rates['kafka']):.2f}x" if "kafka" in rates else "-"
        cpu = " | ".join(f"{median(values):.2f}" for values in zip(*(one.cpu_us_a_row for one in some), strict=True))
        yield f"| {broker} | {connector} | {median(rate):,.0f} | {min(rate):,.0f}-{max(rate):,.0f} | {ratio} | {cpu} |"


TITLES = "| broker | connector | rows/s | range | of Spark's own | CPU us/row: brokers | JVM | Python |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--varied", action="store_true", help="records with keys and of different lengths")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka as well")
    parser.add_argument("--official-jars", type=Path, help="directory with spark-sql-kafka-0-10 and what it needs")
    arguments = parser.parse_args()
    shape = VARIED if arguments.varied else UNIFORM
    jars = ",".join(map(str, arguments.official_jars.glob("*.jar"))) if arguments.official_jars else ""
    spark = start_session(SessionSettings("benchmark", conf={"spark.jars": jars} if jars else {}), print)
    lines = [shape.name, "", TITLES, "|---" * TITLES.count(" | ") + "|---|"]
    for kind in [sskafka_kind(), *([apache_kafka_kind(resolve_kafka_libs())] if arguments.kafka else [])]:
        cluster = kind if arguments.brokers == 1 else ClusterKind(kind, arguments.brokers)
        lines += table(kind.name, measured(cluster, shape, arguments, spark, ["sskafka", *(["kafka"] if jars else [])]))
    spark.stop()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
