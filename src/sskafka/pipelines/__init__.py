"""Data pipelines on Spark: the connector, pipelines as files, their runner, and the pipelines that come with SSKafka.

Needs the extra `spark`. Pipelines are clients of a cluster, ours or Apache Kafka: nothing here knows a broker.
"""
