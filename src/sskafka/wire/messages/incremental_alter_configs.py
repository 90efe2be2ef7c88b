"""IncrementalAlterConfigs: set, delete, append to or subtract from single settings."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, request, response


@dataclass(slots=True)
class AlterableConfig:
    name: String = ""
    config_operation: Int8 = 0
    value: String | None = ""


@dataclass(slots=True)
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True)
class IncrementalAlterConfigsRequest:
    SCHEMA: ClassVar = request(44, versions=(0, 1), flexible_from=1)

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False


@dataclass(slots=True)
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@dataclass(slots=True)
class IncrementalAlterConfigsResponse:
    SCHEMA: ClassVar = response(44, versions=(0, 1), flexible_from=1)

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)
