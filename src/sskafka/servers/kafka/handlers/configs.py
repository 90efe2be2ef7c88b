"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of topics, groups, brokers, loggers and client metrics.

The controller changes settings. Before it is asked, this node checks what only this node can check: whether the request
is addressed to this node, and whether its static settings allow the new ones. Levels of loggers are changed here and
are not stored anywhere.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import Any, Protocol, TypeVar

from sskafka.metadata import records
from sskafka.metadata.config_changes import AlterConfigOp, Repetitions, node_id_of
from sskafka.metadata.delta import ConfigResource
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from sskafka.model.acl import AclOperation
from sskafka.model.client_metrics import describe_client_metrics
from sskafka.model.config_description import (
    ConfigEntry,
    describe_broker,
    describe_broker_defaults,
    describe_group,
    describe_topic,
)
from sskafka.model.dynamic_configs import base_name, validate_against_current, validate_dynamic_configs
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import topic_name_problem
from sskafka.model.listeners import Endpoint
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.servers.broker_loggers import alter_loggers, describe_loggers
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.servers.kafka.request import Request
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

LISTED_TYPES = (RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP)

Resource = full.AlterConfigsResource | incremental.AlterConfigsResource
R = TypeVar("R", full.AlterConfigsResource, incremental.AlterConfigsResource)
Refusals = dict[int, KafkaError | None]
"""By position of the resource in the request: its error, or None if this node has changed it already."""


class ListenerPorts(Protocol):
    """Reserves the ports of new listeners while the controller decides about them."""

    async def check_security(self, current: Settings, wanted: Settings) -> None:
        """Raise SettingError if this node cannot use the certificates and logins of the new settings."""
        ...

    def reserve(self, listeners: Iterable[Endpoint]) -> list[Endpoint]:
        """Bind the ports of new listeners. Raise OSError if one cannot be bound."""
        ...

    def release(self, reserved: Iterable[Endpoint]) -> None:
        """Close reserved sockets that no listener uses."""
        ...

    async def settled(self) -> None:
        """Return when the listeners match the metadata."""
        ...


class ConfigHandlers:
    def __init__(
        self,
        node_id: int,
        controller: Controller,
        settings: Settings,
        listeners: ListenerPorts | None = None,
        *,
        for_all_nodes: bool = False,
    ) -> None:
        """`for_all_nodes`: this node is a controller, which changes the settings of any node."""
        self._listeners = listeners
        self._node_id = node_id
        self._controller = controller
        self._settings = settings
        self._for_all_nodes = for_all_nodes

    # -- showing

    def describe_configs(self, message: DescribeConfigsRequest, request: Request) -> DescribeConfigsResponse:
        unknown = [resource for resource in message.resources if resource.resource_type not in LISTED_TYPES]
        if unknown:
            return _description_refused(message, unknown[0])
        return DescribeConfigsResponse(
            results=[self._describe(resource, message, request) for resource in message.resources]
        )

    def _describe(
        self, resource: DescribeConfigsResource, message: DescribeConfigsRequest, request: Request
    ) -> DescribeConfigsResult:
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            entries = self._entries(resource, request)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
            return result
        result.configs = [_shown(entry, message) for entry in entries]
        return result

    def _entries(self, resource: DescribeConfigsResource, request: Request) -> list[ConfigEntry]:
        names, name = resource.configuration_keys or None, resource.resource_name
        image = self._controller.image
        if resource.resource_type == RESOURCE_TOPIC:
            return self._topic_entries(name, names, request)
        if resource.resource_type == RESOURCE_GROUP:
            if not request.may_on_group(AclOperation.DESCRIBE_CONFIGS, name):
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return describe_group(self._effective(), image.configs(ConfigResource(RESOURCE_GROUP, name)), names)
        if not request.may_on_cluster(AclOperation.DESCRIBE_CONFIGS):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        match resource.resource_type:
            case records.RESOURCE_BROKER:
                return self._broker_entries(name, names)
            case records.RESOURCE_BROKER_LOGGER:
                self._check_described_node(name, "Broker id must not be empty", "expected {} but received {}")
                return describe_loggers(names)
            case records.RESOURCE_CLIENT_METRICS:
                if not name:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
                return describe_client_metrics(image.configs(ConfigResource(RESOURCE_CLIENT_METRICS, name)), names)
            case unknown:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {unknown} have no settings")

    def _topic_entries(self, name: str, names: list[str] | None, request: Request) -> list[ConfigEntry]:
        image = self._controller.image
        if not request.may_on_topic(AclOperation.DESCRIBE_CONFIGS, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if (problem := topic_name_problem(name)) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(self._effective(), image.topic_configs(name), names)

    def _broker_entries(self, name: str, names: list[str] | None) -> list[ConfigEntry]:
        if not name:
            return describe_broker_defaults(self._effective(), names)
        self._check_described_node(name, "", "expected {} or empty string, but received {}")
        return describe_broker(self._effective(), names)

    def _check_described_node(self, name: str, empty: str, other: str) -> None:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, empty)
        try:
            node_id = int(name)
        except ValueError:
            text = f"Broker id must be an integer, but it is: {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text) from None
        if node_id != self._node_id:
            text = f"Unexpected broker id, {other.format(self._node_id, name)}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)

    def _effective(self) -> Settings:
        return effective_settings(self._settings, self._controller.image)

    # -- changing

    async def alter_configs(self, message: full.AlterConfigsRequest, request: Request) -> full.AlterConfigsResponse:
        reserved: list[Endpoint] = []

        async def judge(resource: full.AlterConfigsResource) -> bool:
            if resource.resource_type == RESOURCE_BROKER_LOGGER:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
            changed = {config.name: config.value for config in resource.configs if config.value is not None}
            stored = self._controller.image.configs(ConfigResource(RESOURCE_BROKER, resource.resource_name))
            await self._check_broker(resource, changed, stored, reserved)
            return False

        resources = message.resources
        async with self._reserved(reserved):
            refusals, message.resources = await _split_by_handler(resources, request, judge)
            responses = await self._ask_controller(
                message, request, full.AlterConfigsResponse, full.AlterConfigsResourceResponse
            )
        outcomes = _in_order(resources, refusals, responses, full.AlterConfigsResourceResponse)
        return full.AlterConfigsResponse(responses=outcomes)

    async def incremental_alter_configs(
        self, message: incremental.IncrementalAlterConfigsRequest, request: Request
    ) -> incremental.IncrementalAlterConfigsResponse:
        reserved: list[Endpoint] = []

        async def judge(resource: incremental.AlterConfigsResource) -> bool:
            if resource.resource_type == RESOURCE_BROKER_LOGGER:
                self._alter_loggers(resource, validate_only=message.validate_only)
                return True
            await self._check_broker(resource, *_changes(resource), reserved)
            return False

        response_class = incremental.AlterConfigsResourceResponse
        resources = message.resources
        async with self._reserved(reserved):
            refusals, message.resources = await _split_by_handler(resources, request, judge)
            responses = await self._ask_controller(
                message, request, incremental.IncrementalAlterConfigsResponse, response_class
            )
        outcomes = _in_order(resources, refusals, responses, response_class)
        return incremental.IncrementalAlterConfigsResponse(responses=outcomes)

    async def _ask_controller(
        self, message: Any, request: Request, response_class: Callable[..., Any], outcome: Callable[..., Any]
    ) -> list[Any]:
        if not message.resources:
            return []

        def unchanged(code: ErrorCode, text: str | None) -> Any:
            return response_class(
                responses=[outcome(code, text, item.resource_type, item.resource_name) for item in message.resources]
            )

        responses: list[Any] = (await ask(self._controller, message, unchanged, request.caller)).responses
        return responses

    def _alter_loggers(self, resource: incremental.AlterConfigsResource, *, validate_only: bool) -> None:
        null = [item.name for item in resource.configs if item.value is None and item.config_operation == 0]
        if null:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")
        if node_id_of(resource.resource_name) != self._node_id:
            text = f"Unexpected node id. Expected {self._node_id}, but received {resource.resource_name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        alter_loggers(resource.configs, validate_only=validate_only)

    @asynccontextmanager
    async def _reserved(self, reserved: list[Endpoint]) -> AsyncIterator[None]:
        """Ports that are bound for new listeners until it is decided whether they may be opened."""
        try:
            yield
            if self._listeners is not None:
                await self._listeners.settled()
        finally:
            if self._listeners is not None:
                self._listeners.release(reserved)

    def _reserve(self, wanted: Settings, reserved: list[Endpoint]) -> None:
        if self._listeners is None:
            return
        try:
            reserved += self._listeners.reserve(wanted.listeners)
        except OSError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.strerror or str(error)) from error

    async def _check_broker(
        self, resource: Resource, changed: dict[str, str], removed: Iterable[str], reserved: list[Endpoint]
    ) -> None:
        """Check whether this node can apply the settings that are meant for it, or for all brokers.

        Bind the ports of new listeners and add them to `reserved`."""
        if resource.resource_type != RESOURCE_BROKER or self._for_all_nodes:
            return
        name = resource.resource_name
        if name and node_id_of(name) != self._node_id:
            text = f"Unexpected broker id, expected {self._node_id}, but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        image = self._controller.image
        stored = image.configs(ConfigResource(RESOURCE_BROKER, name))
        removed = set(removed)
        wanted = {key: value for key, value in stored.items() if key not in removed} | changed
        for_one = wanted if name else image.broker_configs(self._node_id)
        for_all = image.broker_default_configs() if name else wanted
        try:
            validate_dynamic_configs(changed, all_brokers=not name)
            current, becoming = self._effective(), self._settings.with_dynamic(for_one, for_all)
            validate_against_current(changed, current, becoming)
            if self._listeners is not None and any(_is_security(key) for key in (*changed, *removed)):
                await self._listeners.check_security(current, becoming)
        except SettingError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.kafka_text) from error
        if becoming["listeners"] != current["listeners"]:
            self._reserve(becoming, reserved)


def _description_refused(message: DescribeConfigsRequest, unknown: DescribeConfigsResource) -> DescribeConfigsResponse:
    """Refuse all resources if one has a type without settings, as Apache Kafka does."""
    text = f"Unexpected resource type {unknown.resource_type} for resource {unknown.resource_name}"
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(ErrorCode.INVALID_REQUEST, text, resource.resource_type, resource.resource_name)
            for resource in message.resources
        ]
    )


def _changes(resource: incremental.AlterConfigsResource) -> tuple[dict[str, str], set[str]]:
    """Return settings that are set and names that are deleted. Only the controller can check appends to lists."""
    changed: dict[str, str] = {}
    removed: set[str] = set()
    for config in resource.configs:
        if config.config_operation == AlterConfigOp.SET and config.value is not None:
            changed[config.name] = config.value
        elif config.config_operation == AlterConfigOp.DELETE:
            removed.add(config.name)
    return changed, removed


def _is_security(name: str) -> bool:
    return base_name(name).startswith(("ssl.", "sasl."))


async def _split_by_handler(
    resources: list[R], request: Request, judge: Callable[[R], Awaitable[bool]]
) -> tuple[Refusals, list[R]]:
    """Return the resources that this node answers for by itself, and those to send to the controller.

    To judge a resource of a broker takes 0.1 ms, so other work may come in between."""
    refusals: Refusals = {}
    repetitions = Repetitions(resources)
    over_ns = perf_counter_ns() + SLICE_NS
    for position, resource in enumerate(resources):
        if perf_counter_ns() >= over_ns:
            await asyncio.sleep(0)
            over_ns = perf_counter_ns() + SLICE_NS
        try:
            repetitions.refuse(resource)
            if not _may_alter(request, resource):
                raise KafkaError(_refusal(resource))
            if await judge(resource):
                refusals[position] = None
        except KafkaError as error:
            refusals[position] = error
    return refusals, [resource for position, resource in enumerate(resources) if position not in refusals]


def _in_order(
    resources: Iterable[Resource], refusals: Refusals, responses: list[Any], outcome: Callable[..., Any]
) -> list[Any]:
    """Return one response for each resource, in the order of the request."""
    requested = iter(responses)
    answers = []
    for position, resource in enumerate(resources):
        if position not in refusals:
            answers.append(next(requested))
            continue
        error = refusals[position]
        code, text = (error.code, error.message or None) if error else (ErrorCode.NONE, None)
        answers.append(outcome(code, text, resource.resource_type, resource.resource_name))
    return answers


def _may_alter(request: Request, resource: Resource) -> bool:
    if resource.resource_type == RESOURCE_TOPIC:
        return request.may_on_topic(AclOperation.ALTER_CONFIGS, resource.resource_name)
    if resource.resource_type == RESOURCE_GROUP:
        return request.may_on_group(AclOperation.ALTER_CONFIGS, resource.resource_name)
    return request.may_on_cluster(AclOperation.ALTER_CONFIGS)


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
