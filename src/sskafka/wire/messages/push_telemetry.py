"""PushTelemetry: a client sends its metrics."""

from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Bytes, Int8, Int16, Int32, Uuid, message, request, response


@message
class PushTelemetryRequest:
    SCHEMA: ClassVar = request(72)

    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    terminating: Bool = False
    compression_type: Int8 = 0
    metrics: Bytes = b""


@message
class PushTelemetryResponse:
    SCHEMA: ClassVar = response(72)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
