"""AlterConfigs: replace all settings of a resource. IncrementalAlterConfigs is the gentler way."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, request, response


@dataclass(slots=True)
class AlterableConfig:
    name: String = ""
    value: String | None = ""


@dataclass(slots=True)
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True)
class AlterConfigsRequest:
    SCHEMA: ClassVar = request(33, versions=(0, 2), flexible_from=2)

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False


@dataclass(slots=True)
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@dataclass(slots=True)
class AlterConfigsResponse:
    SCHEMA: ClassVar = response(33, versions=(0, 2), flexible_from=2)

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)
