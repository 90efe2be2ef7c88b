"""Change dynamic configs: of topics, groups, single nodes, all brokers, and client metrics subscriptions.

AlterConfigs replaces all configs of a resource, and configs that it does not name are removed. IncrementalAlterConfigs
changes single configs. In both cases the resulting configs are validated as a whole, and records are written for
the differences.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import Protocol, TypeVar

from sskafka.metadata import records
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import ConfigResource, MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.elections import changes_when_settings_change
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import ConfigRecord, MetadataRecord
from sskafka.model.client_metrics import validate_client_metrics
from sskafka.model.dynamic_configs import validate_dynamic_configs
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.group_configs import GroupConfigError, group_setting, validate_group_configs
from sskafka.model.ids import topic_name_problem
from sskafka.model.setting import Setting, SettingError, Type, format_value, split_list
from sskafka.model.settings import Settings, topic_setting, validate_topic_configs
from sskafka.model.settings_table import BROKER_SETTINGS
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental

_OF_ELECTIONS = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})


class AlterConfigOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class _Resource(Protocol):
    resource_type: int
    resource_name: str


class Repetitions:
    """How often a request names its resources."""

    def __init__(self, resources: Iterable[_Resource]) -> None:
        self._times = Counter(_key(resource) for resource in resources)

    def refuse(self, resource: _Resource) -> None:
        """Raise KafkaError if the request names the resource more than once."""
        if self._times[_key(resource)] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


R = TypeVar("R", full.AlterConfigsResource, incremental.AlterConfigsResource)


def alter_configs(
    image: ClusterImage, request: full.AlterConfigsRequest, settings: Settings
) -> ControllerResult[full.AlterConfigsResponse]:
    written, outcomes = _alter_each(image, request.resources, settings, _replace_all)
    response = full.AlterConfigsResponse(responses=[full.AlterConfigsResourceResponse(*one) for one in outcomes])
    return ControllerResult([] if request.validate_only else written, response)


def incremental_alter_configs(
    image: ClusterImage, request: incremental.IncrementalAlterConfigsRequest, settings: Settings
) -> ControllerResult[incremental.IncrementalAlterConfigsResponse]:
    written, outcomes = _alter_each(image, request.resources, settings, _change_some)
    response = incremental.IncrementalAlterConfigsResponse(
        responses=[incremental.AlterConfigsResourceResponse(*one) for one in outcomes]
    )
    return ControllerResult([] if request.validate_only else written, response)


def _alter_each(
    image: ClusterImage,
    resources: list[R],
    settings: Settings,
    alter: Callable[[ClusterImage, R, Settings], list[MetadataRecord]],
) -> tuple[list[MetadataRecord], list[tuple[int, str | None, int, str]]]:
    """Return the records of all resources that can be altered, and the outcome of each resource."""
    effective = effective_settings(settings, image)
    written: list[MetadataRecord] = []
    outcomes = []
    repetitions = Repetitions(resources)
    for resource in resources:
        error: KafkaError | None = None
        try:
            repetitions.refuse(resource)
            _refuse_repeated_keys([config.name for config in resource.configs])
            written += alter(image, resource, effective)
        except KafkaError as caught:
            error = caught
        outcomes.append(_outcome(error, resource))
    return written + _partition_changes(image, written, settings), outcomes


def _partition_changes(image: ClusterImage, records: list[MetadataRecord], settings: Settings) -> list[MetadataRecord]:
    """Return the partition changes that follow from configs that affect who may lead; written with the same request."""
    if not any(isinstance(record, ConfigRecord) and record.name in _OF_ELECTIONS for record in records):
        return []
    draft = image.fork()
    for record in records:
        draft.replay(record, MetadataDelta())
    return list(changes_when_settings_change(ElectionRules(draft, settings)))


def _outcome(error: KafkaError | None, resource: _Resource) -> tuple[int, str | None, int, str]:
    code, message = (error.code, str(error)) if error else (ErrorCode.NONE, None)
    return code, message, resource.resource_type, resource.resource_name


def _refuse_repeated_keys(keys: list[str]) -> None:
    if len(set(keys)) != len(keys):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _key(resource: _Resource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def _replace_all(image: ClusterImage, resource: full.AlterConfigsResource, settings: Settings) -> list[MetadataRecord]:
    target = _checked_target(image, _key(resource), settings)
    wanted = _without_null({config.name: config.value for config in resource.configs})
    current = image.configs(target)
    changed = {name for name in {*current, *wanted} if current.get(name) != wanted.get(name)}
    _keep_min_insync_replicas(image, target, wanted, changed)
    return _difference(target, current, _validated(image, target, wanted, set(wanted), settings))


def _change_some(
    image: ClusterImage, resource: incremental.AlterConfigsResource, settings: Settings
) -> list[MetadataRecord]:
    target = _checked_target(image, _key(resource), settings)
    current = image.configs(target)
    _without_null({item.name: item.value for item in resource.configs if item.config_operation != AlterConfigOp.DELETE})
    wanted = dict(current)
    for config in resource.configs:
        _apply(wanted, config, target, settings)
    changed = {config.name for config in resource.configs}
    _keep_min_insync_replicas(image, target, wanted, changed)
    return _difference(target, current, _validated(image, target, wanted, changed & set(wanted), settings))


def _without_null(configs: Mapping[str, str | None]) -> dict[str, str]:
    null = [name for name, value in configs.items() if value is None]
    if null:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")
    return {name: value for name, value in configs.items() if value is not None}


def _checked_target(image: ClusterImage, target: ConfigResource, settings: Settings) -> ConfigResource:
    match target.type:
        case records.RESOURCE_TOPIC:
            _check_topic_name(target.name)
        case records.RESOURCE_BROKER:
            _check_node(image, target.name, settings)
        case records.RESOURCE_CLIENT_METRICS:
            if not target.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        case records.RESOURCE_GROUP:
            if not target.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {target.type}")
    return target


def _check_topic_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _check_topic_exists(image: ClusterImage, name: str) -> None:
    """Check that the topic exists. As in Apache Kafka, this happens after its configs are validated."""
    if name not in image.topics_by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_node(image: ClusterImage, name: str, settings: Settings) -> None:
    """Check a node id. The empty name means all brokers; controllers have configs as brokers do."""
    if not name:
        return
    node_id = node_id_of(name)
    controllers = {settings["node.id"], *(voter.id for voter in settings.voters)}
    if node_id not in image.brokers and node_id not in image.controllers and node_id not in controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def node_id_of(name: str) -> int:
    """Return the node id in the name of a config resource; raise KafkaError if the name is not a number."""
    try:
        return int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None


def _keep_min_insync_replicas(
    image: ClusterImage, target: ConfigResource, wanted: Mapping[str, str], changed: set[str]
) -> None:
    """Reject changes that ELR forbids: eligible leader replicas depend on one min.insync.replicas for all brokers."""
    if target.type != records.RESOURCE_BROKER or "min.insync.replicas" not in changed:
        return
    if not image.uses_eligible_leader_replicas:
        return
    if target.name:
        text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    if "min.insync.replicas" not in wanted:
        text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def _apply(
    wanted: dict[str, str], config: incremental.AlterableConfig, target: ConfigResource, settings: Settings
) -> None:
    match config.config_operation:
        case AlterConfigOp.SET:
            wanted[config.name] = config.value or ""
        case AlterConfigOp.DELETE:
            wanted.pop(config.name, None)
        case AlterConfigOp.APPEND | AlterConfigOp.SUBTRACT:
            wanted[config.name] = _changed_list(wanted.get(config.name), config, target, settings)
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}")


def _changed_list(
    current: str | None, config: incremental.AlterableConfig, target: ConfigResource, settings: Settings
) -> str:
    setting = _list_setting(target, config)
    if current is None:
        current = format_value(_inherited(setting, target, settings)) or ""
    items, named = split_list(current), split_list(config.value or "")
    if config.config_operation == AlterConfigOp.APPEND:
        return ",".join(dict.fromkeys((*items, *named)))
    removed = set(named)
    return ",".join(item for item in items if item not in removed)


def _list_setting(target: ConfigResource, config: incremental.AlterableConfig) -> Setting:
    """Return the config to append to or subtract from; raise KafkaError if its type is not LIST."""
    operation = AlterConfigOp(config.config_operation).name
    if target.type == records.RESOURCE_TOPIC:
        try:
            setting: Setting | None = topic_setting(config.name)
        except SettingError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, error.kafka_text) from error
    elif target.type == records.RESOURCE_BROKER:
        setting = BROKER_SETTINGS.get(config.name)
        if setting is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {config.name}")
    elif target.type == records.RESOURCE_GROUP:
        try:
            setting = group_setting(config.name)
        except GroupConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    else:
        setting = None
    if setting is None or setting.type is not Type.LIST:
        text = f"Can't {operation} to key {config.name} because its type is not LIST."
        if target.type == records.RESOURCE_BROKER:
            text = f"Config value {operation.lower()} is not allowed for config key: {config.name}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    return setting


def _inherited(setting: Setting, target: ConfigResource, settings: Settings) -> tuple[str, ...]:
    is_topic = target.type == records.RESOURCE_TOPIC
    value = settings.topic_config()[setting.name] if is_topic else settings[setting.name]
    assert value is None or isinstance(value, tuple), f"{setting.name} is not a list"
    return value or ()


def _validated(
    image: ClusterImage, target: ConfigResource, wanted: Mapping[str, str], changed: set[str], settings: Settings
) -> Mapping[str, str]:
    """Validate the configs named in the request; keep unknown ones that an older or newer broker may have written."""
    match target.type:
        case records.RESOURCE_TOPIC:
            _check_with_code(ErrorCode.INVALID_CONFIG, lambda: validate_topic_configs(wanted))
            _check_topic_exists(image, target.name)
        case records.RESOURCE_BROKER:
            named = {name: value for name, value in wanted.items() if name in changed}
            check = partial(validate_dynamic_configs, named, all_brokers=not target.name)
            _check_with_code(ErrorCode.INVALID_REQUEST, check)
        case records.RESOURCE_CLIENT_METRICS:
            validate_client_metrics(wanted)
        case records.RESOURCE_GROUP:
            _check_with_code(ErrorCode.INVALID_CONFIG, lambda: validate_group_configs(wanted, settings))
        case _:
            raise AssertionError(target)
    return wanted


def _check_with_code(code: ErrorCode, check: Callable[[], object]) -> None:
    try:
        check()
    except SettingError as error:
        raise KafkaError(code, error.kafka_text) from error
    except GroupConfigError as error:
        raise KafkaError(code, str(error)) from error


def _difference(target: ConfigResource, current: Mapping[str, str], wanted: Mapping[str, str]) -> list[MetadataRecord]:
    changed = (ConfigRecord(*target, name, value) for name, value in wanted.items() if current.get(name) != value)
    removed = (ConfigRecord(*target, name, None) for name in current if name not in wanted)
    return [*changed, *removed]
