"""The connector of a run: which one it is, whether Spark has it, and what that means for topics that are written."""

from pyspark.sql import SparkSession

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
from sskafka.pipelines.runner.patience import patiently
from sskafka.pipelines.runner.recovery import topic_sinks


def reader_of(spark: SparkSession, pipeline: Pipeline) -> str:
    return reading_connector(pipeline.connector, _jars(spark))


def writer_of(spark: SparkSession, pipeline: Pipeline, sink: TopicSink) -> str:
    return writing_connector(pipeline.connector, _jars(spark), sink.guarantee)


def check_connector(spark: SparkSession, pipeline: Pipeline) -> str:
    """What to tell of the connector, empty where it is ours; a ConnectorError where Spark has not got it."""
    connector = reader_of(spark, pipeline)
    if connector == Connector.SSKAFKA and not is_connect(spark):
        return ""  # it is in this very Python
    try:
        _look_for(spark, connector)
    except Exception as error:
        if not is_missing(error):
            raise
        lacking = ConnectorMissingError(_jars(spark)) if connector == Connector.KAFKA else ServerLacksConnectorError()
        raise lacking from error
    if connector == Connector.SSKAFKA:
        return ""
    return f"topics are read by Spark's own connector{_of_writing(spark, pipeline)}"


def _look_for(spark: SparkSession, connector: str) -> None:
    """Makes Spark look for the connector, and for no broker."""
    source = spark.readStream.format(connector).option(BOOTSTRAP, "localhost:9092").option("subscribe", "any")
    patiently(lambda: source.load().schema)


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _of_writing(spark: SparkSession, pipeline: Pipeline) -> str:
    by_it = [sink.topic for sink in topic_sinks(pipeline) if writer_of(spark, pipeline, sink) == Connector.KAFKA]
    return f", which writes at least once: {', '.join(by_it)} may hold records twice after a failure" if by_it else ""


def _jars(spark: SparkSession) -> dict[str, str]:
    """The jars that Spark was told of."""
    return {name: spark.conf.get(name, "") or "" for name in JAR_SETTINGS}
