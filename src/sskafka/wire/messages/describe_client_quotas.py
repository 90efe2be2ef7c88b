"""DescribeClientQuotas: list the quotas of users, client ids and IP addresses that match a filter."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Float64, Int8, Int16, Int32, String, message, request, response


@message
class ComponentData:
    entity_type: String = ""
    match_type: Int8 = 0
    match: String | None = ""


@message
class DescribeClientQuotasRequest:
    SCHEMA: ClassVar = request(48)

    components: list[ComponentData] = field(default_factory=list)
    strict: Bool = False


@message
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@message
class ValueData:
    key: String = ""
    value: Float64 = 0.0


@message
class EntryData:
    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


@message
class DescribeClientQuotasResponse:
    SCHEMA: ClassVar = response(48)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[EntryData] | None = field(default_factory=list)
