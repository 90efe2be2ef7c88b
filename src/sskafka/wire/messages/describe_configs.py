"""DescribeConfigs: configs of topics and brokers, with their sources and synonyms."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, ignorable, message, request, response, since


@message
class DescribeConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = field(default_factory=list)


@message
class DescribeConfigsRequest:
    SCHEMA: ClassVar = request(32)

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, since(3)] = False


@message
class DescribeConfigsSynonym:
    name: String = ""
    value: String | None = ""
    source: Int8 = 0


@message
class DescribeConfigsResourceResult:
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    config_type: Annotated[Int8, since(3), ignorable] = 0
    documentation: Annotated[String | None, since(3), ignorable] = ""


@message
class DescribeConfigsResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)


@message
class DescribeConfigsResponse:
    SCHEMA: ClassVar = response(32)

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)
