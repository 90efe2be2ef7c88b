"""Changing settings at run time: of topics, of groups, of one broker, of all brokers.

AlterConfigs states all settings of a resource; what it does not name is removed. IncrementalAlterConfigs changes single
ones. Either way the settings that result are checked as a whole, and records are written for what is new in them.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol, TypeVar

from sskafka.metadata.decision import Decision
from sskafka.metadata.delta import ConfigResource, MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.elections import changes_as_settings_move
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC, ConfigRecord, MetadataRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.group_configs import GroupConfigError, group_setting, validate_group_configs
from sskafka.model.setting import Setting, SettingError, Type, format_value, split_list
from sskafka.model.settings import (
    Settings,
    broker_setting,
    topic_setting,
    validate_dynamic_configs,
    validate_topic_configs,
)
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental

_OF_ELECTIONS = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class _Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=_Resource)


def alter_configs(
    image: ClusterImage, request: full.AlterConfigsRequest, settings: Settings
) -> Decision[full.AlterConfigsResponse]:
    effective = effective_settings(settings, image)
    records: list[MetadataRecord] = []
    responses = []
    for resource in request.resources:
        error: KafkaError | None = None
        try:
            _refuse_repeated(resource, request.resources, [config.name for config in resource.configs])
            records += _replace_all(image, resource, effective)
        except KafkaError as caught:
            error = caught
        responses.append(full.AlterConfigsResourceResponse(*_outcome(error, resource)))
    records += _consequences(image, records, settings)
    return Decision([] if request.validate_only else records, full.AlterConfigsResponse(responses=responses))


def incremental_alter_configs(
    image: ClusterImage, request: incremental.IncrementalAlterConfigsRequest, settings: Settings
) -> Decision[incremental.IncrementalAlterConfigsResponse]:
    effective = effective_settings(settings, image)
    records: list[MetadataRecord] = []
    responses = []
    for resource in request.resources:
        error: KafkaError | None = None
        try:
            _refuse_repeated(resource, request.resources, [config.name for config in resource.configs])
            records += _change_some(image, resource, effective)
        except KafkaError as caught:
            error = caught
        responses.append(incremental.AlterConfigsResourceResponse(*_outcome(error, resource)))
    records += _consequences(image, records, settings)
    response = incremental.IncrementalAlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else records, response)


def _consequences(image: ClusterImage, records: list[MetadataRecord], settings: Settings) -> list[MetadataRecord]:
    """Some settings decide who may lead; partitions follow them in the same breath."""
    if not any(isinstance(record, ConfigRecord) and record.name in _OF_ELECTIONS for record in records):
        return []
    draft = image.fork()
    for record in records:
        draft.replay(record, MetadataDelta())
    return list(changes_as_settings_move(ElectionRules(draft, settings)))


def _outcome(error: KafkaError | None, resource: _Resource) -> tuple[int, str | None, int, str]:
    code, message = (error.code, str(error)) if error else (ErrorCode.NONE, None)
    return code, message, resource.resource_type, resource.resource_name


def _refuse_repeated(resource: R, resources: Sequence[R], keys: list[str]) -> None:
    same = [other for other in resources if _key(other) == _key(resource)]
    if len(same) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names the resource more than once")
    if len(set(keys)) != len(keys):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names a setting more than once")


def _key(resource: _Resource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def _replace_all(image: ClusterImage, resource: full.AlterConfigsResource, settings: Settings) -> list[MetadataRecord]:
    target = _checked_target(image, _key(resource))
    wanted = {config.name: config.value for config in resource.configs}
    return _difference(target, image.configs(target), _validated(target, wanted, set(wanted), settings))


def _change_some(
    image: ClusterImage, resource: incremental.AlterConfigsResource, settings: Settings
) -> list[MetadataRecord]:
    target = _checked_target(image, _key(resource))
    current = image.configs(target)
    wanted: dict[str, str | None] = dict(current)
    for config in resource.configs:
        _apply(wanted, config, target, settings)
    changed = {config.name for config in resource.configs}
    return _difference(target, current, _validated(target, wanted, changed, settings))


def _checked_target(image: ClusterImage, target: ConfigResource) -> ConfigResource:
    if target.type == RESOURCE_TOPIC:
        if target.name not in image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {target.name!r}")
    elif target.type == RESOURCE_BROKER:
        if target.name and not (target.name.isdecimal() and int(target.name) in image.brokers):
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {target.name!r}")
    elif target.type == RESOURCE_GROUP:
        if not target.name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    else:
        message = f"settings of resources of type {target.type} are not supported"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return target


def _apply(
    wanted: dict[str, str | None], config: incremental.AlterableConfig, target: ConfigResource, settings: Settings
) -> None:
    match config.config_operation:
        case Operation.SET:
            wanted[config.name] = config.value
        case Operation.DELETE:
            wanted.pop(config.name, None)
        case Operation.APPEND | Operation.SUBTRACT:
            wanted[config.name] = _changed_list(wanted.get(config.name), config, target, settings)
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{config.config_operation} is no operation on settings")


def _changed_list(
    current: str | None, config: incremental.AlterableConfig, target: ConfigResource, settings: Settings
) -> str:
    setting = _setting(target, config.name)
    if setting.type is not Type.LIST:
        message = f"{config.name} is no list, so nothing can be appended to it or subtracted from it"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if current is None:
        current = format_value(_inherited(setting, target, settings)) or ""
    items, named = split_list(current), split_list(config.value or "")
    if config.config_operation == Operation.APPEND:
        return ",".join(dict.fromkeys((*items, *named)))
    return ",".join(item for item in items if item not in named)


def _inherited(setting: Setting, target: ConfigResource, settings: Settings) -> tuple[str, ...]:
    value = settings.topic_config()[setting.name] if target.type == RESOURCE_TOPIC else settings[setting.name]
    return tuple(value or ())


def _setting(target: ConfigResource, name: str) -> Setting:
    try:
        if target.type == RESOURCE_GROUP:
            return group_setting(name)
        return topic_setting(name) if target.type == RESOURCE_TOPIC else broker_setting(name)
    except (SettingError, GroupConfigError) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _validated(
    target: ConfigResource, wanted: Mapping[str, str | None], changed: set[str], settings: Settings
) -> dict[str, str]:
    """Unknown settings that an earlier or newer broker left behind stay; those named now must be right."""
    try:
        if target.type == RESOURCE_TOPIC:
            validate_topic_configs(wanted)
        elif target.type == RESOURCE_GROUP:
            validate_group_configs(_without_nulls(wanted), settings)
        else:
            named = {name: value for name, value in wanted.items() if name in changed}
            validate_dynamic_configs(named, all_brokers=not target.name)
    except (SettingError, GroupConfigError) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return {name: value for name, value in wanted.items() if value is not None}


def _without_nulls(wanted: Mapping[str, str | None]) -> dict[str, str]:
    for name, value in wanted.items():
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    return {name: value for name, value in wanted.items() if value is not None}


def _difference(target: ConfigResource, current: Mapping[str, str], wanted: Mapping[str, str]) -> list[MetadataRecord]:
    changed = (ConfigRecord(*target, name, value) for name, value in wanted.items() if current.get(name) != value)
    removed = (ConfigRecord(*target, name, None) for name in current if name not in wanted)
    return [*changed, *removed]
