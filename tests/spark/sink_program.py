"""A streaming query from topic to topic, in a process that may be killed: arguments are the options as JSON."""

import json
import os
import sys

import standalone_cluster
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark_killing import KillingBatches

from sskafka.pipelines.connector.topic_batches import TopicBatches
from sskafka.pipelines.java import find_java
from sskafka.pipelines.runner.retries import start_with_retries
from sskafka.pipelines.session import SessionSettings, prepare_environment, start_session

CONF = {"spark.sql.shuffle.partitions": "2"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.interval": "200ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.python.task.killTimeout": "10min",
}
"""Attempts that were replaced are not killed at once, so that they go on late."""


def session_with_speculation(master: str) -> SparkSession:
    """`start_session` would refuse it. It takes a cluster: local masters do not speculate."""
    settings = SessionSettings("sink", master, {**CONF, **standalone_cluster.CONF, **SPECULATION})
    prepare_environment(find_java(), settings)
    builder = SparkSession.builder.master(settings.master)
    for key, value in settings.all_conf().items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def counted(numbers: DataFrame) -> DataFrame:
    """How many numbers each of ten windows has had so far: every batch updates all of them."""
    moments = numbers.selectExpr("timestamp_seconds(cast(cast(value as string) as long) % 100) as at")
    counts = moments.withWatermark("at", "1 hour").groupBy(sf.window("at", "10 seconds")).count()
    return counts.selectExpr("concat_ws(' ', unix_seconds(window.start), count) as value")


def main() -> None:
    arguments = json.loads(sys.argv[1])
    own = SessionSettings("sink", "local[2,3]", CONF)
    cluster = arguments["speculating_cluster"]
    spark = session_with_speculation(cluster) if cluster else start_session(own)
    java = str(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    source = (
        spark.readStream.format("sskafka")
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("subscribe", arguments["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", arguments["per_batch"])
        .option("recordsPerTask", "0")
        .load()
    )
    options = {
        "kafka.bootstrap.servers": arguments["bootstrap"],
        "topic": arguments["sink"],
        "checkpointLocation": arguments["checkpoint"],
        "java": java,
        "driver": str(os.getpid()),
        **arguments["options"],
    }
    if arguments["mode"] == "update":
        batches = KillingBatches if arguments["format"] == "killing" else TopicBatches
        writer = counted(source).writeStream.outputMode("update").foreachBatch(batches(options))
        writer = writer.option("checkpointLocation", arguments["checkpoint"])
    else:
        writer = source.select("value").writeStream.format(arguments["format"]).options(**options)
    start_with_retries(writer.trigger(availableNow=True).start).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
