"""Spark's own Kafka connector, for comparison: its jars, by Maven, from the pom beside this file."""

from pathlib import Path

from benchmarks.maven import ROOT, resolve_jars

POM = Path(__file__).with_name("spark-kafka.pom.xml")
CACHE = ROOT / "build" / "spark-kafka"


def resolve_spark_kafka_jars() -> Path:
    """The directory with the connector and what Spark itself lacks of it; raises UnavailableError with the reason."""
    return resolve_jars(POM, CACHE)


def spark_jars(directory: Path) -> str:
    """The value of `spark.jars` that puts every jar of a directory on Spark's class path."""
    return ",".join(str(jar) for jar in sorted(directory.glob("*.jar")))
