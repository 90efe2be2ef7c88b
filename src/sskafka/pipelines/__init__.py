"""Data pipelines on Spark: the connector, pipeline files, their runner, and bundled pipelines.

Requires the extra `spark`. Pipelines are clients of a cluster, which may be SSKafka or Apache Kafka; nothing here
depends on the broker.
"""
