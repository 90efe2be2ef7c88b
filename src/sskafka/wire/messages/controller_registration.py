"""ControllerRegistration: a starting controller registers with the active controller."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int16, Int32, String, UInt16, Uuid, message, request, response


@message
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@message
class Feature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message
class ControllerRegistrationRequest:
    SCHEMA: ClassVar = request(70)

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: Bool = False
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)


@message
class ControllerRegistrationResponse:
    SCHEMA: ClassVar = response(70)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
