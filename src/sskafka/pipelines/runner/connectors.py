"""The connector of a run: which one it is, whether Spark has it, and what that means for topics that are written."""

from pyspark.sql import SparkSession

from sskafka.pipelines.connector.choosing import (
    JAR_SETTINGS,
    SPARKS_OWN,
    ConnectorMissingError,
    is_missing,
    reading_connector,
    writing_connector,
)
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.files.model import Pipeline, TopicSink
from sskafka.pipelines.runner.recovery import topic_sinks


def reader_of(spark: SparkSession, pipeline: Pipeline) -> str:
    return reading_connector(pipeline.connector, _jars(spark))


def writer_of(spark: SparkSession, pipeline: Pipeline, sink: TopicSink) -> str:
    return writing_connector(pipeline.connector, _jars(spark), sink.guarantee)


def check_connector(spark: SparkSession, pipeline: Pipeline) -> str:
    """What to tell of the connector, empty where it is ours; ConnectorMissingError where Spark has not got it."""
    if reader_of(spark, pipeline) != SPARKS_OWN:
        return ""
    source = spark.readStream.format(SPARKS_OWN).option(BOOTSTRAP, "localhost:9092").option("subscribe", "any")
    try:
        source.load().schema  # noqa: B018  Spark looks for the connector, and for no broker
    except Exception as error:
        if is_missing(error):
            raise ConnectorMissingError(_jars(spark)) from error
        raise
    return f"topics are read by Spark's own connector{_of_writing(spark, pipeline)}"


def _of_writing(spark: SparkSession, pipeline: Pipeline) -> str:
    by_it = [sink.topic for sink in topic_sinks(pipeline) if writer_of(spark, pipeline, sink) == SPARKS_OWN]
    return f", which writes at least once: {', '.join(by_it)} may hold records twice after a failure" if by_it else ""


def _jars(spark: SparkSession) -> dict[str, str]:
    """The jars that Spark was told of."""
    return {name: spark.conf.get(name, "") or "" for name in JAR_SETTINGS}
