"""A streaming job without SSKafka: Spark's own connector in a session with Spark's own defaults.

    python -m benchmarks.spark_job BOOTSTRAP INPUT OUTPUT CHECKPOINT TRIGGER JARS

It copies the values of one topic to another until it receives SIGTERM.
"""

import os
import signal
import sys
import threading

from pyspark.sql import SparkSession

from sskafka.pipelines.java import find_java


def main(bootstrap: str, source: str, target: str, checkpoint: str, trigger: str, jars: str) -> None:
    stopped = threading.Event()
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[*]").appName("benchmark").config("spark.jars", jars).getOrCreate()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    brokers = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.readStream.format("kafka").options(**brokers, subscribe=source, startingOffsets="earliest").load()
    writer = rows.select("value").writeStream.format("kafka").options(**brokers, topic=target)
    query = writer.option("checkpointLocation", checkpoint).trigger(processingTime=trigger).start()
    while query.isActive and not stopped.wait(0.2):
        pass
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
