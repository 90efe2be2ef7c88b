"""Read a topic with Spark: rows per second of SSKafka's connector, compared with Spark's own.

    python -m benchmarks.spark_read [--records 10000000] [--brokers 3] [--varied] [--alone]

Records of 100 bytes, in batches of about 900 KB, over 12 partitions, are read into Spark's no-op sink. With --varied
they have keys and 60 to 140 bytes each, in batches of 16 KB, like those of a producer with default settings. The first
read of each connector does not count: it starts the workers and lets the JVM compile. `alone` is the same reading and
decoding in one Python process without Spark.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.brokers import Broker
from benchmarks.spark_comparison import Measurement, compare, parser_for, rounds
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "read"
PARTITIONS = 12
WARM_UP_RECORDS = 1_000_000


class Shape(NamedTuple):
    """The format of the records."""

    name: str
    records_a_batch: int
    row: Callable[[int, Random], Row]

    @property
    def turn(self) -> int:
        """Number of records in one batch for every partition."""
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
        (payload,) = payloads([shape.row(number, random) for number in range(shape.records_a_batch)], 1 << 30)
        batch = framed(payload, timestamp=session.cluster.clock.now_ms())
        everywhere = {TopicPartition(TOPIC, number): batch for number in range(PARTITIONS)}
        for _ in range(records // shape.turn):
            session.run(deliver(session.cluster, everywhere, None))


def read_alone(bootstrap: str, records: int) -> float:
    """Read all partitions one after another in this process; return the seconds."""
    options = source_options({BOOTSTRAP: bootstrap, "subscribe": TOPIC}, streaming=False)
    began = time.monotonic()
    for number in range(PARTITIONS):
        part = OffsetRange(TopicPartition(TOPIC, number), 0, records // PARTITIONS)
        assert sum(batch.num_rows for batch in read_ranges(options, [part])) == part.size
    return time.monotonic() - began


def read_with_spark(spark: "SparkSession", connector: str, bootstrap: str, records: int) -> float:
    """Read `records` into the no-op sink; return the seconds."""
    ends = ", ".join(f'"{number}": {records // PARTITIONS}' for number in range(PARTITIONS))
    reader = spark.read.format(connector).option(BOOTSTRAP, bootstrap).option("subscribe", TOPIC)
    rows = reader.option("endingOffsets", f'{{"{TOPIC}": {{{ends}}}}}').load()
    began = time.monotonic()
    rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def measured(
    spark: "SparkSession", broker: Broker, connectors: list[str], shape: Shape, arguments: argparse.Namespace
) -> Iterator[Measurement]:
    records = max(arguments.records // shape.turn, 1) * shape.turn
    fill(broker.bootstrap, shape, records)
    for connector in connectors:
        read_with_spark(spark, connector, broker.bootstrap, min(records, WARM_UP_RECORDS))
    runs = {name: partial(read_with_spark, spark, name, broker.bootstrap, records) for name in connectors}
    yield from rounds(spark, broker, arguments.rounds, records, runs)
    yield Measurement("alone", records / read_alone(broker.bootstrap, records))


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--varied", action="store_true", help="records with keys and of different lengths")
    arguments = parser.parse_args()
    shape = VARIED if arguments.varied else UNIFORM
    compare(f"Reading: {shape.name}", arguments, partial(measured, shape=shape, arguments=arguments))


if __name__ == "__main__":
    main()
