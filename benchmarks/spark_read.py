"""Reading a topic with Spark: rows a second of our connector, beside Spark's own where its jars can be had.

    python -m benchmarks.spark_read [--records 10000000] [--brokers 3] [--kafka] [--official-jars DIRECTORY]

Records of 100 bytes, in batches of about 900 KB, over 12 partitions, are read into Spark's no-op sink. The first, small
read of each connector is not counted: it starts the workers. `alone` is the same reading and decoding in one Python
process without Spark: what lies between the two is Spark's.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.clusters import ClusterKind
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
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
VALUE_BYTES = 100
RECORDS_A_BATCH = 8_000


def fill(bootstrap: str, records: int) -> None:
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        created = session.run(Admin(session.cluster).create_topics([NewTopic(TOPIC, PARTITIONS, 1)]))
        assert not isinstance(created[TOPIC], Exception), created
        rows = [Row(None, b"%0*d" % (VALUE_BYTES, number)) for number in range(RECORDS_A_BATCH)]
        (payload,) = payloads(rows, bytes_max=1 << 30)
        batch = framed(
            payload,
            timestamp=session.cluster.clock.now_ms(),
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            codec=Compression.NONE,
            transactional=False,
        )
        everywhere = {TopicPartition(TOPIC, number): batch for number in range(PARTITIONS)}
        for _ in range(records // (RECORDS_A_BATCH * PARTITIONS)):
            session.run(deliver(session.cluster, everywhere, None))


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


def measured(
    kind: BrokerKind, arguments: argparse.Namespace, spark: "SparkSession", connectors: list[str]
) -> Iterator[str]:
    whole = RECORDS_A_BATCH * PARTITIONS
    records = max(arguments.records // whole, 1) * whole
    with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory)) as broker:
        fill(broker.bootstrap, records)
        for connector in connectors:
            read_with_spark(spark, connector, broker.bootstrap, PARTITIONS * 100)
        for _ in range(arguments.rounds):
            for connector in connectors:
                seconds = read_with_spark(spark, connector, broker.bootstrap, records)
                yield f"{kind.name:14} {connector:8} {records / seconds:12,.0f} rows/s"
        yield f"{kind.name:14} {'alone':8} {records / read_alone(broker.bootstrap, records):12,.0f} rows/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka as well")
    parser.add_argument("--official-jars", type=Path, help="directory with spark-sql-kafka-0-10 and what it needs")
    arguments = parser.parse_args()
    jars = ",".join(map(str, arguments.official_jars.glob("*.jar"))) if arguments.official_jars else ""
    spark = start_session(SessionSettings("benchmark", conf={"spark.jars": jars} if jars else {}), print)
    kinds = [sskafka_kind(), *([apache_kafka_kind(resolve_kafka_libs())] if arguments.kafka else [])]
    for kind in kinds:
        cluster = kind if arguments.brokers == 1 else ClusterKind(kind, arguments.brokers)
        for line in measured(cluster, arguments, spark, ["sskafka", *(["kafka"] if jars else [])]):
            print(line, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
