"""BrokerRegistration: a starting broker registers with the controller."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    UInt16,
    Uuid,
    ignorable,
    message,
    request,
    response,
    since,
)


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
class BrokerRegistrationRequest:
    SCHEMA: ClassVar = request(62)

    broker_id: Int32 = 0
    cluster_id: String = ""
    incarnation_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    rack: String | None = ""
    is_migrating_zk_broker: Annotated[Bool, since(1)] = False
    log_dirs: Annotated[list[Uuid], since(2), ignorable] = field(default_factory=list)
    previous_broker_epoch: Annotated[Int64, since(3), ignorable] = -1


@message
class BrokerRegistrationResponse:
    SCHEMA: ClassVar = response(62)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
