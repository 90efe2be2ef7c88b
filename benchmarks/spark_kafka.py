"""Spark's own Kafka connector, for comparison: its jars, resolved by Maven from the pom in this directory."""

from pathlib import Path

from benchmarks.maven import ROOT, resolve_jars

POM = Path(__file__).with_name("spark-kafka.pom.xml")
CACHE = ROOT / "build" / "spark-kafka"


def resolve_spark_kafka_jars() -> Path:
    """Return the directory with the connector and its dependencies; raise UnavailableError with the reason."""
    return resolve_jars(POM, CACHE)


def spark_jars(directory: Path) -> str:
    """Return the value of `spark.jars` that adds all jars of a directory to Spark's class path."""
    return ",".join(str(jar) for jar in sorted(directory.glob("*.jar")))
