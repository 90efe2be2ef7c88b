"""Settings of topics, groups and brokers: shown with their sources, changed through the controller."""

from sskafka.metadata.delta import ConfigResource
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from sskafka.model.config_description import (
    ConfigEntry,
    describe_broker,
    describe_broker_defaults,
    describe_group,
    describe_topic,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import Operation, divided
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental
from sskafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

Resource = full.AlterConfigsResource | incremental.AlterConfigsResource


class ConfigHandlers:
    def __init__(self, broker_id: int, controller: Controller, settings: Settings) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._settings = settings

    def register(self, registry: Registry) -> None:
        registry.add_message(ApiKey.DESCRIBE_CONFIGS, self.describe_configs)
        registry.add_message(ApiKey.ALTER_CONFIGS, self.alter_configs)
        registry.add_message(ApiKey.INCREMENTAL_ALTER_CONFIGS, self.incremental_alter_configs)

    def describe_configs(self, message: DescribeConfigsRequest, request: Request) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[self._describe(resource, message, request) for resource in message.resources]
        )

    async def alter_configs(self, message: full.AlterConfigsRequest, request: Request) -> full.AlterConfigsResponse:
        allowed, refused = divided(message.resources, lambda resource: _may_alter(request, resource))
        message.resources = allowed

        def unchanged(
            resource: Resource, code: ErrorCode, text: str | None = None
        ) -> full.AlterConfigsResourceResponse:
            return full.AlterConfigsResourceResponse(code, text, resource.resource_type, resource.resource_name)

        response = await ask(
            self._controller,
            message,
            lambda code, text: full.AlterConfigsResponse(responses=[unchanged(item, code, text) for item in allowed]),
        )
        response.responses += [unchanged(resource, _refusal(resource)) for resource in refused]
        return response

    async def incremental_alter_configs(
        self, message: incremental.IncrementalAlterConfigsRequest, request: Request
    ) -> incremental.IncrementalAlterConfigsResponse:
        allowed, refused = divided(message.resources, lambda resource: _may_alter(request, resource))
        message.resources = allowed

        def unchanged(
            resource: Resource, code: ErrorCode, text: str | None = None
        ) -> incremental.AlterConfigsResourceResponse:
            return incremental.AlterConfigsResourceResponse(code, text, resource.resource_type, resource.resource_name)

        response = await ask(
            self._controller,
            message,
            lambda code, text: incremental.IncrementalAlterConfigsResponse(
                responses=[unchanged(item, code, text) for item in allowed]
            ),
        )
        response.responses += [unchanged(resource, _refusal(resource)) for resource in refused]
        return response

    def _describe(
        self, resource: DescribeConfigsResource, message: DescribeConfigsRequest, request: Request
    ) -> DescribeConfigsResult:
        result = DescribeConfigsResult(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            entries = self._entries(resource, request)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message or None
            return result
        result.configs = [_shown(entry, message) for entry in entries]
        return result

    def _entries(self, resource: DescribeConfigsResource, request: Request) -> list[ConfigEntry]:
        names = resource.configuration_keys or None
        image = self._controller.image
        settings = effective_settings(self._settings, image)
        if resource.resource_type == RESOURCE_TOPIC:
            if not request.may_on_topic(Operation.DESCRIBE_CONFIGS, resource.resource_name):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if resource.resource_name not in image.topics_by_name:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic(settings, image.topic_configs(resource.resource_name), names)
        if resource.resource_type == RESOURCE_GROUP:
            if not request.may_on_group(Operation.DESCRIBE_CONFIGS, resource.resource_name):
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            if not resource.resource_name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            overrides = image.configs(ConfigResource(RESOURCE_GROUP, resource.resource_name))
            return describe_group(settings, overrides, names)
        if resource.resource_type != RESOURCE_BROKER:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings")
        if not request.may_on_cluster(Operation.DESCRIBE_CONFIGS):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not resource.resource_name:
            return describe_broker_defaults(settings, names)
        if resource.resource_name != str(self._broker_id):
            text = f"this is broker {self._broker_id}: ask broker {resource.resource_name} for its settings"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        return describe_broker(settings, names)


def _may_alter(request: Request, resource: Resource) -> bool:
    if resource.resource_type == RESOURCE_TOPIC:
        return request.may_on_topic(Operation.ALTER_CONFIGS, resource.resource_name)
    if resource.resource_type == RESOURCE_GROUP:
        return request.may_on_group(Operation.ALTER_CONFIGS, resource.resource_name)
    return request.may_on_cluster(Operation.ALTER_CONFIGS)


def _refusal(resource: Resource) -> ErrorCode:
    if resource.resource_type == RESOURCE_TOPIC:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource.resource_type == RESOURCE_GROUP:
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _shown(entry: ConfigEntry, message: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        entry.name,
        entry.value,
        entry.read_only,
        entry.source,
        entry.sensitive,
        [DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms] if message.include_synonyms else [],
        entry.type,
        entry.documentation if message.include_documentation else None,
    )
