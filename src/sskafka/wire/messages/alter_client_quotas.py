"""AlterClientQuotas: set or remove quotas of users, client ids and IP addresses."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Float64, Int16, Int32, String, message, request, response


@message
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@message
class OpData:
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@message
class RequestEntryData:
    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@message
class AlterClientQuotasRequest:
    SCHEMA: ClassVar = request(49)

    entries: list[RequestEntryData] = field(default_factory=list)
    validate_only: Bool = False


@message
class ResponseEntryData:
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityData] = field(default_factory=list)


@message
class AlterClientQuotasResponse:
    SCHEMA: ClassVar = response(49)

    throttle_time_ms: Int32 = 0
    entries: list[ResponseEntryData] = field(default_factory=list)
