"""AlterConfigs: replace all configs of a resource; IncrementalAlterConfigs changes single configs."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, message, request, response


@message
class AlterableConfig:
    name: String = ""
    value: String | None = ""


@message
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@message
class AlterConfigsRequest:
    SCHEMA: ClassVar = request(33)

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False


@message
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@message
class AlterConfigsResponse:
    SCHEMA: ClassVar = response(33)

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)
