"""A program as people write it, with a session of Spark's own; arguments: how it prepares, the brokers, a topic."""

import sys

from pyspark.sql import SparkSession

from sskafka.pipelines.python_workers import WorkerPythonError, register, use_this_python


def main(preparation: str, bootstrap: str, topic: str) -> None:
    if preparation == "use_this_python":
        use_this_python()
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    if preparation == "register":
        try:
            register(spark)
        except WorkerPythonError as error:
            sys.stdout.write(f"refused: {error}\n")
            return
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    rows = spark.read.format("sskafka").options(**options).load().collect()
    values = sorted(bytes(row["value"]).decode() for row in rows)
    sys.stdout.write(f"values: {' '.join(values)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
