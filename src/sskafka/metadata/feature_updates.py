"""UpdateFeatures: upgrade and downgrade the finalized feature levels of the cluster.

The updates of a request are applied together or not at all. A level must be supported by this software and by every
registered broker and controller. A downgrade must be requested explicitly; the metadata version is downgraded only to
one that loses no metadata.
"""

from collections.abc import Iterator
from enum import IntEnum

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_FORMAT_LEVELS,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    FeatureRange,
)
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

MIN_INSYNC = "min.insync.replicas"


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    image: ClusterImage, request: UpdateFeaturesRequest, settings: Settings
) -> ControllerResult[UpdateFeaturesResponse]:
    updates = request.feature_updates
    try:
        if len({update.feature for update in updates}) != len(updates):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names a feature more than once")
        levels = image.features | {update.feature: update.max_version_level for update in updates}
        for update in updates:
            _check(image, update, levels)
    except KafkaError as error:
        return ControllerResult((), UpdateFeaturesResponse(error_code=error.code, error_message=str(error)))
    records = [record for update in updates for record in _records_for(image, update, settings)]
    results = [UpdatableFeatureResult(update.feature, error_message=ErrorCode.NONE.name) for update in updates]
    response = UpdateFeaturesResponse(error_message=None, results=results)
    return ControllerResult([] if request.validate_only else records, response)


def _check(image: ClusterImage, update: FeatureUpdateKey, levels: dict[str, int]) -> None:
    name, level = update.feature, update.max_version_level
    current = image.features.get(name, 0)
    upgrade_type = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    if upgrade_type not in set(UpgradeType):
        raise _invalid(f"unknown upgrade type {upgrade_type}")
    if name == KRAFT_VERSION:
        raise _invalid(f"{name} cannot be changed by this request")
    if level < 0:
        raise _invalid(f"{level} is not a level of {name}")
    _check_support(image, name, level)
    if level < current:
        _check_downgrade(name, current, level, upgrade_type)
    if level > current and upgrade_type != UpgradeType.UPGRADE and not update.allow_downgrade:
        raise _invalid(f"level {level} of {name} is above {current}, which is not a downgrade")
    if levels.get(ELR_VERSION, 0) > 0 and levels.get(METADATA_VERSION, 0) < ELIGIBLE_LEADER_REPLICAS:
        raise _invalid(f"{ELR_VERSION} requires {METADATA_VERSION} {ELIGIBLE_LEADER_REPLICAS}")


def _check_support(image: ClusterImage, name: str, level: int) -> None:
    if level == 0 and name != METADATA_VERSION:
        return
    for who, ranges in _supported_ranges(image):
        if name not in ranges:
            raise _invalid(f"{who} does not know {name}")
        if not ranges[name].minimum <= level <= ranges[name].maximum:
            supported = f"{ranges[name].minimum} to {ranges[name].maximum}"
            raise _invalid(f"{who} does not support level {level} of {name}, only {supported}")


def _supported_ranges(image: ClusterImage) -> Iterator[tuple[str, dict[str, FeatureRange]]]:
    yield "the active controller", dict(SUPPORTED_FEATURES)
    for broker in image.brokers.values():
        yield f"broker {broker.id}", dict(broker.features)
    for controller in image.controllers.values():
        ranges = {
            item.name: FeatureRange(item.min_supported_version, item.max_supported_version)
            for item in controller.features
        }
        yield f"controller {controller.controller_id}", ranges


def _check_downgrade(name: str, current: int, level: int, upgrade_type: int) -> None:
    if upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(f"level {level} of {name} is below {current}; a downgrade must be requested explicitly")
    if name == METADATA_VERSION and any(level < needed <= current for needed in METADATA_FORMAT_LEVELS):
        raise _invalid(f"downgrading {name} from {current} to {level} could lose metadata")


def _records_for(image: ClusterImage, update: FeatureUpdateKey, settings: Settings) -> Iterator[MetadataRecord]:
    name, level = update.feature, update.max_version_level
    if level == image.features.get(name, 0):
        return
    yield FeatureLevelRecord(name, level)
    if name == ELR_VERSION and level == 0:
        yield from _restore_isrs(image)
    elif name == ELR_VERSION and not image.uses_eligible_leader_replicas:
        yield from shared_min_insync_records(image, settings)


def shared_min_insync_records(image: ClusterImage, settings: Settings) -> Iterator[ConfigRecord]:
    """Write min.insync.replicas as a cluster-wide config, so that all controllers compute the same eligible leaders."""
    if MIN_INSYNC not in image.broker_default_configs():
        yield ConfigRecord(RESOURCE_BROKER, "", MIN_INSYNC, str(settings[MIN_INSYNC]))
    for broker_id in image.brokers:
        if MIN_INSYNC in image.broker_configs(broker_id):
            yield ConfigRecord(RESOURCE_BROKER, str(broker_id), MIN_INSYNC, None)


def _restore_isrs(image: ClusterImage) -> Iterator[MetadataRecord]:
    """Restore ISRs: without eligible leader replicas no ISR may be empty, since a partition waits for its members."""
    for topic, number, state in image.partitions():
        if not state.isr:
            waited_for = state.eligible_leader_replicas or state.last_known_eligible_leader_replicas
            yield PartitionChangeRecord(number, topic.topic_id, isr=list(waited_for or state.replicas[:1]))
    yield ClearElrRecord("")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
