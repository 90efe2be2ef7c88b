"""Describe and change the dynamic configuration of topics, brokers and groups."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.errors import broker_error
from sskafka.model.config_description import ConfigSource
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_SET, _DELETE = 0, 1
RESOURCES_PER_REQUEST = 500


class ConfigResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Resource(NamedTuple):
    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "Resource":
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def group(cls, name: str) -> "Resource":
        return cls(ConfigResourceType.GROUP, name)

    @classmethod
    def broker(cls, node_id: int | None) -> "Resource":
        """The config resource of one broker, or, with None, the cluster-wide default of all brokers."""
        return cls(ConfigResourceType.BROKER, "" if node_id is None else str(node_id))


class DescribedConfig(NamedTuple):
    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None


async def describe_configs(
    cluster: Cluster, resource: Resource, names: Iterable[str] | None = None, *, documentation: bool = False
) -> list[DescribedConfig]:
    """Return the configs of `resource` (all, or those in `names`); raise KafkaError if it cannot be described."""
    wanted = None if names is None else list(names)

    async def attempt() -> DescribeConfigsResponse:
        connection = await _connection_for(cluster, resource)
        version = connection.version_for(DescribeConfigsRequest)
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource.type, resource.name, wanted)],
            include_documentation=documentation and version >= 3,
        )
        return await connection.request(request, DescribeConfigsResponse, version=version)

    response = await cluster.retrying(attempt)
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            raise broker_error(result.error_code, result.error_message)
    return [_entry(config) for result in response.results for config in result.configs]


async def describe_topic_setting(cluster: Cluster, topics: Iterable[str], name: str) -> dict[str, str]:
    """Return the value of one setting for each topic that can be described."""
    found: dict[str, str] = {}
    every = list(topics)
    for start in range(0, len(every), RESOURCES_PER_REQUEST):
        chosen = every[start : start + RESOURCES_PER_REQUEST]
        resources = [DescribeConfigsResource(ConfigResourceType.TOPIC, topic, [name]) for topic in chosen]
        request = DescribeConfigsRequest(resources=resources)

        async def attempt(request: DescribeConfigsRequest = request) -> DescribeConfigsResponse:
            connection = await cluster.any_connection()
            return await connection.request(request, DescribeConfigsResponse)

        for result in (await cluster.retrying(attempt)).results:
            for config in result.configs:
                found[result.resource_name] = config.value or ""
    return found


async def describe_topics_own_configs(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[DescribedConfig]]:
    """Return the settings that each topic overrides. Topics that cannot be described are left out."""
    resources = [DescribeConfigsResource(ConfigResourceType.TOPIC, topic, None) for topic in topics]
    if not resources:
        return {}

    async def attempt() -> DescribeConfigsResponse:
        connection = await cluster.any_connection()
        return await connection.request(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)

    return {
        result.resource_name: [
            _entry(config) for config in result.configs if config.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
        ]
        for result in (await cluster.retrying(attempt)).results
        if result.error_code == ErrorCode.NONE
    }


async def alter_configs(
    cluster: Cluster, changes: Mapping[Resource, Mapping[str, str | None]], *, validate_only: bool = False
) -> dict[Resource, KafkaError | None]:
    """Set each config to its value, or reset it to its default if the value is None; leave other configs unchanged."""
    outcomes: dict[Resource, KafkaError | None] = {}
    for resource, values in changes.items():
        outcomes[resource] = await _alter(cluster, resource, values, validate_only)
    return outcomes


async def _alter(
    cluster: Cluster, resource: Resource, values: Mapping[str, str | None], validate_only: bool
) -> KafkaError | None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource.type,
                resource.name,
                [AlterableConfig(name, _DELETE if value is None else _SET, value) for name, value in values.items()],
            )
        ],
        validate_only=validate_only,
    )

    async def attempt() -> IncrementalAlterConfigsResponse:
        connection = await _connection_for(cluster, resource)
        return await connection.request(request, IncrementalAlterConfigsResponse)

    for answer in (await cluster.retrying(attempt)).responses:
        if answer.error_code != ErrorCode.NONE:
            return broker_error(answer.error_code, answer.error_message)
    return None


async def _connection_for(cluster: Cluster, resource: Resource) -> BrokerConnection:
    """Return a connection to the broker itself for broker configs, since only it knows its static configuration.

    Any broker can answer for other resources."""
    if resource.type is ConfigResourceType.BROKER and resource.name:
        await cluster.refresh()
        return await cluster.connection_to(int(resource.name))
    return await cluster.any_connection()


def _entry(config: DescribeConfigsResourceResult) -> DescribedConfig:
    return DescribedConfig(
        config.name,
        config.value,
        config.config_source,
        config.read_only,
        config.is_sensitive,
        config.documentation or None,
    )
