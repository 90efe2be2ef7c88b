"""Writing a topic with Spark: rows a second of our connector, beside Spark's own.

    python -m benchmarks.spark_write [--records 5000000] [--brokers 3] [--alone]

Rows with a key and a value of 100 bytes that Spark makes up go to 12 partitions, replicated to all brokers, acks=all.
Our connector writes in transactions by default; Spark's own knows at-least-once only, so ours is measured that way too.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.brokers import Broker
from benchmarks.spark_comparison import OURS, SPARKS_OWN, Measurement, compare, parser_for, rounds
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.planning import ClusterSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "written"
PARTITIONS = 12
TASKS = 4
WARM_UP_RECORDS = 500_000
ROW = ("cast(id % 5000 as string) key", "lpad(cast(id as string), 100, '0') value")


def write(spark: "SparkSession", bootstrap: str, records: int, connector: str, options: dict[str, str]) -> float:
    """Seconds for `records`."""
    rows = spark.range(0, records, 1, TASKS).selectExpr(*ROW)
    writer = rows.write.format(connector).option(BOOTSTRAP, bootstrap).option("topic", TOPIC).options(**options)
    began = time.monotonic()
    writer.mode("append").save()
    return time.monotonic() - began


def measured(
    spark: "SparkSession", broker: Broker, connectors: list[str], records: int, count: int
) -> Iterator[Measurement]:
    with ClusterSession(broker.bootstrap, ConnectionConfig()) as session:
        topic = NewTopic(TOPIC, PARTITIONS, len(broker.replicas))
        created = session.run(Admin(session.cluster).create_topics([topic]))
        assert not isinstance(created[TOPIC], Exception), created
    started = partial(write, spark, broker.bootstrap)
    for connector in connectors:
        started(WARM_UP_RECORDS, connector, {})
    runs = {
        "sskafka, exactly once": partial(started, records, OURS, {"deliveryGuarantee": "exactly-once"}),
        "sskafka, at least once": partial(started, records, OURS, {"deliveryGuarantee": "at-least-once"}),
    }
    if SPARKS_OWN in connectors:
        runs[SPARKS_OWN] = partial(started, records, SPARKS_OWN, {"kafka.acks": "all"})
    yield from rounds(spark, broker, count, records, runs)


def main() -> None:
    parser = parser_for(__doc__)
    parser.set_defaults(records=5_000_000)
    arguments = parser.parse_args()
    compare("Writing: key and 100 B", arguments, partial(measured, records=arguments.records, count=arguments.rounds))


if __name__ == "__main__":
    main()
