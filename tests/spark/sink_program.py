"""A streaming query from topic to topic, in a process that may be killed: arguments are the options as JSON."""

import json
import os
import sys

from sskafka.pipelines.runner.patience import start_patiently
from sskafka.pipelines.session import SessionSettings, start_session


def main() -> None:
    arguments = json.loads(sys.argv[1])
    spark = start_session(SessionSettings("sink", "local[2,3]", {"spark.sql.shuffle.partitions": "2"}))
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
    writer = (
        source.select("value")
        .writeStream.format(arguments["format"])
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("topic", arguments["sink"])
        .option("checkpointLocation", arguments["checkpoint"])
        .option("java", java)
        .option("driver", str(os.getpid()))
    )
    for name, value in arguments["options"].items():
        writer = writer.option(name, value)
    start_patiently(writer.trigger(availableNow=True).start).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
