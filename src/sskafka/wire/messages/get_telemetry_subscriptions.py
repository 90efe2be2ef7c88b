"""GetTelemetrySubscriptions: which metrics a client should push, and how often."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, message, request, response


@message
class GetTelemetrySubscriptionsRequest:
    SCHEMA: ClassVar = request(71)

    client_instance_id: Uuid = ZERO_UUID


@message
class GetTelemetrySubscriptionsResponse:
    SCHEMA: ClassVar = response(71)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: list[Int8] = field(default_factory=list)
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    requested_metrics: list[String] = field(default_factory=list)
