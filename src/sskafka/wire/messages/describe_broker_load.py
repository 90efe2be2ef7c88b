"""DescribeBrokerLoad, an SSKafka API: counters of one broker since its start, from which clients compute rates."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DescribeBrokerLoadRequest:
    """Null means all topics. The totals of the broker count every topic, whichever are asked for."""

    SCHEMA: ClassVar = request(20006)

    topics: list[String] | None = field(default_factory=list)


@message
class RequestLoad:
    name: String = ""
    requests: Int64 = 0
    errors: Int64 = 0
    latency_buckets: list[Int64] = field(default_factory=list)
    """Responses by latency: bucket n has those of less than 2**n microseconds, and not less than half of that."""


@message
class TopicLoad:
    name: String = ""
    messages_in: Int64 = 0
    bytes_in: Int64 = 0
    bytes_out: Int64 = 0
    log_bytes: Int64 = 0
    """Size of the replicas on this broker."""


@message
class DescribeBrokerLoadResponse:
    SCHEMA: ClassVar = response(20006)

    error_code: Int16 = 0
    version: String = ""
    cores: Int32 = 0
    """Processor cores that the broker may use."""
    uptime_ms: Int64 = 0
    cpu_ms: Int64 = 0
    memory_bytes: Int64 = 0
    connections: Int32 = 0
    messages_in: Int64 = 0
    bytes_in: Int64 = 0
    bytes_out: Int64 = 0
    """Bytes of records sent to clients; those sent to followers are in `replication_bytes_out`."""
    replication_bytes_in: Int64 = 0
    replication_bytes_out: Int64 = 0
    requests: list[RequestLoad] = field(default_factory=list)
    topics: list[TopicLoad] = field(default_factory=list)
