"""Which connector a pipeline runs on: ours, or Spark's own where its jars are configured.

connector    topics are read by                          topics are written by
---------    ----------------------------------------    -----------------------------------------------
sskafka      ours                                        ours
kafka        Spark's own                                 Spark's own: at least once, without transactions
auto         Spark's own where its jar is configured,    ours where a topic is to hold each record once,
             else ours                                   else as topics are read
"""

from collections.abc import Mapping

from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.options import Guarantee

AUTO, OURS, SPARKS_OWN = "auto", "sskafka", "kafka"
JAR_SETTINGS = ("spark.jars", "spark.jars.packages")

_JAR = "spark-sql-kafka-0-10"
_NOT_THERE = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND")


class ConnectorMissingError(ConnectorError):
    """Spark's own connector is asked for, and Spark does not have it."""

    def __init__(self, jars: Mapping[str, str]) -> None:
        given = ", ".join(f"{name}={value}" for name, value in jars.items() if value)
        super().__init__(
            f"connector: kafka needs Spark's own Kafka connector, and Spark does not find it "
            f"({f'although {given}' if given else 'no jar is configured'}). "
            f"Give its jars by `spark: {{spark.jars: ...}}` in the file, or by --conf spark.jars.packages="
            f"org.apache.spark:{_JAR}_2.13:VERSION; or use connector: sskafka, which needs none"
        )


class ServerLacksConnectorError(ConnectorError):
    """A Spark Connect server has no connector of ours."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark Connect server does not know the connector sskafka: the Python that it runs (PYSPARK_PYTHON) "
            "needs `pip install 'sskafka[spark]'`"
        )


def reading_connector(wanted: str, jars: Mapping[str, str]) -> str:
    """`jars` are the values of JAR_SETTINGS."""
    if wanted != AUTO:
        return wanted
    return SPARKS_OWN if any(_JAR in value for value in jars.values()) else OURS


def writing_connector(wanted: str, jars: Mapping[str, str], guarantee: str) -> str:
    if wanted == AUTO and guarantee == Guarantee.EXACTLY_ONCE:
        return OURS
    return reading_connector(wanted, jars)


def is_missing(error: Exception) -> bool:
    """Whether Spark's error says that it has no such connector."""
    return any(f"[{condition}]" in str(error) for condition in _NOT_THERE)
