"""The connectors of a run: which of them read and write, and whether Spark has them."""

from pyspark.sql import SparkSession

from sskafka.pipelines.connector.client_properties import not_for_java
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.selection import (
    JAR_SETTINGS,
    Connector,
    ConnectorMissingError,
    ServerLacksConnectorError,
    is_missing,
    reading_connector,
    writing_connector,
)
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import TopicSink
from sskafka.pipelines.runner.recovery import topic_sinks
from sskafka.pipelines.runner.retries import with_retries


def reader_of(spark: SparkSession, pipeline: Pipeline) -> str:
    return reading_connector(pipeline.connector, _jars(spark))


def writer_of(spark: SparkSession, pipeline: Pipeline, sink: TopicSink) -> str:
    return writing_connector(pipeline.connector, _jars(spark), sink.guarantee)


def check_connector(spark: SparkSession, pipeline: Pipeline) -> str:
    """Return a notice about the connector, empty for SSKafka's; raises ConnectorError if Spark does not have it."""
    connector = reader_of(spark, pipeline)
    if connector == Connector.SSKAFKA and not is_connect(spark):
        return ""  # it is installed in this Python
    try:
        _look_for(spark, connector)
    except Exception as error:
        if not is_missing(error):
            raise
        lacking = ConnectorMissingError(_jars(spark)) if connector == Connector.KAFKA else ServerLacksConnectorError()
        raise lacking from error
    if connector == Connector.SSKAFKA:
        return ""
    for name, java in not_for_java(pipeline.kafka).items():
        raise OptionError(f"kafka.{name}", f"Java's clients do not have it; Spark's own connector needs {java}")
    return f"topics are read by Spark's own connector{_of_writing(spark, pipeline)}"


def _look_for(spark: SparkSession, connector: str) -> None:
    """Make Spark look for the connector without connecting to a broker."""
    source = spark.readStream.format(connector).option(BOOTSTRAP, "localhost:9092").option("subscribe", "any")
    with_retries(lambda: source.load().schema)


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _of_writing(spark: SparkSession, pipeline: Pipeline) -> str:
    by_it = [sink.topic for sink in topic_sinks(pipeline) if writer_of(spark, pipeline, sink) == Connector.KAFKA]
    return f", which writes at least once: {', '.join(by_it)} may contain duplicates after a failure" if by_it else ""


def _jars(spark: SparkSession) -> dict[str, str]:
    """Return the jars that are configured in Spark."""
    return {name: spark.conf.get(name, "") or "" for name in JAR_SETTINGS}
