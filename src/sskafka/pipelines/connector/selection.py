"""Selection of the connector that reads and writes topics: SSKafka's, or Spark's own if its jars are configured.

connector    topics are read by                         topics are written by
---------    ---------------------------------------    ---------------------------------------------------
sskafka      SSKafka's                                  SSKafka's
kafka        Spark's own                                Spark's own: at least once, without transactions
auto         Spark's own if its jar is configured,      SSKafka's if the guarantee is exactly-once,
             else SSKafka's                             else the connector that reads
"""

from collections.abc import Mapping
from enum import StrEnum

from sskafka.model.extras import install_extra
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.options import Guarantee

JAR_SETTINGS = ("spark.jars", "spark.jars.packages")

_JAR = "spark-sql-kafka-0-10"
_MISSING = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND")


class Connector(StrEnum):
    """The names that a pipeline file uses; except for `auto` they are also the formats that Spark knows."""

    AUTO = "auto"
    SSKAFKA = "sskafka"
    KAFKA = "kafka"


class ConnectorMissingError(ConnectorError):
    """The pipeline requires Spark's own connector, but Spark does not have it."""

    def __init__(self, jars: Mapping[str, str]) -> None:
        configured = ", ".join(f"{name}={value}" for name, value in jars.items() if value)
        super().__init__(
            f"connector: kafka needs Spark's own Kafka connector, and Spark does not find it "
            f"({f'although {configured}' if configured else 'no jar is configured'}). "
            f"Set its jars by `spark: {{spark.jars: ...}}` in the file, or by --conf spark.jars.packages="
            f"org.apache.spark:{_JAR}_2.13:VERSION; or use connector: sskafka, which needs none"
        )


class ServerLacksConnectorError(ConnectorError):
    """A Spark Connect server does not have SSKafka's connector."""

    def __init__(self) -> None:
        super().__init__(
            "the Spark Connect server does not know the connector sskafka: the Python that it runs (PYSPARK_PYTHON) "
            f"needs SSKafka: {install_extra('spark')}"
        )


def reading_connector(connector: str, jars: Mapping[str, str]) -> str:
    """Return the connector that reads topics; `jars` are the values of JAR_SETTINGS."""
    if connector != Connector.AUTO:
        return connector
    return Connector.KAFKA if any(_JAR in value for value in jars.values()) else Connector.SSKAFKA


def writing_connector(connector: str, jars: Mapping[str, str], guarantee: str) -> str:
    """Return the connector that writes topics with this guarantee."""
    if connector == Connector.AUTO and guarantee == Guarantee.EXACTLY_ONCE:
        return Connector.SSKAFKA
    return reading_connector(connector, jars)


def is_missing(error: Exception) -> bool:
    """Return whether Spark's error says that it does not have the connector."""
    return any(f"[{condition}]" in str(error) for condition in _MISSING)
