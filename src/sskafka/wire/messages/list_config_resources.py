"""ListConfigResources: list the resources of some types that have configs."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, ignorable, message, request, response, since


@message
class ListConfigResourcesRequest:
    SCHEMA: ClassVar = request(74)

    resource_types: Annotated[list[Int8], since(1)] = field(default_factory=list)


@message
class ConfigResource:
    resource_name: String = ""
    resource_type: Annotated[Int8, since(1), ignorable] = 16


@message
class ListConfigResourcesResponse:
    SCHEMA: ClassVar = response(74)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = field(default_factory=list)
