"""AlterClientQuotas: set or remove quotas of users, client ids and addresses."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import Bool, Float64, Int16, Int32, String, request, response


@dataclass(slots=True)
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@dataclass(slots=True)
class OpData:
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@dataclass(slots=True)
class RequestEntryData:
    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@dataclass(slots=True)
class AlterClientQuotasRequest:
    SCHEMA: ClassVar = request(49, versions=(0, 1), flexible_from=1)

    entries: list[RequestEntryData] = field(default_factory=list)
    validate_only: Bool = False


@dataclass(slots=True)
class ResponseEntryData:
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityData] = field(default_factory=list)


@dataclass(slots=True)
class AlterClientQuotasResponse:
    SCHEMA: ClassVar = response(49, versions=(0, 1), flexible_from=1)

    throttle_time_ms: Int32 = 0
    entries: list[ResponseEntryData] = field(default_factory=list)
