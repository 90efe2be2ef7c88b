"""Makes `format("sskafka")` known to Spark, which looks for modules named `pyspark_*` with a `DefaultSource`."""

from sskafka.pipelines.connector.datasource import SSKafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
