import pytest
from metadata_clusters import SETTINGS, decided, replayed
from partition_changes import fence, partition, replicated

from sskafka.metadata.feature_updates import update_features
from sskafka.metadata.features import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    SUPPORTED_FEATURES,
)
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import BrokerFeature, FeatureLevelRecord, RegisterBrokerRecord
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def supporting(image: ClusterImage, **maximum: int) -> ClusterImage:
    """Register all brokers again with this software's features, or with `metadata=level` as their maximum."""
    for broker in list(image.brokers.values()):
        features = [BrokerFeature(name, *levels) for name, levels in SUPPORTED_FEATURES.items()]
        features[0].max_supported_version = maximum.get("metadata", features[0].max_supported_version)
        record = RegisterBrokerRecord(
            broker.id, broker_epoch=broker.epoch, features=features, fenced=False, log_dirs=list(broker.directories)
        )
        replayed(image, [record])
    return image


def update(image: ClusterImage, *updates: tuple[str, int, int], dry: bool = False) -> UpdateFeaturesResponse:
    keys = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in updates]
    return decided(
        image, update_features(image, UpdateFeaturesRequest(feature_updates=keys, validate_only=dry), SETTINGS)
    )


def test_levels_are_upgraded_and_explicitly_downgraded() -> None:
    image = supporting(replicated())
    assert update(image, (GROUP_VERSION, 0, UPGRADE)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(image, (GROUP_VERSION, 0, SAFE), dry=True).error_code == 0
    assert image.features[GROUP_VERSION] == 1
    assert update(image, (GROUP_VERSION, 0, SAFE)).error_code == 0
    assert GROUP_VERSION not in image.features
    assert update(image, (GROUP_VERSION, 1, SAFE)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    raised = update(image, (GROUP_VERSION, 1, UPGRADE))
    assert (raised.error_code, [result.error_message for result in raised.results]) == (0, ["NONE"])
    assert image.features[GROUP_VERSION] == 1


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (METADATA_VERSION, 99, UPGRADE),
        (METADATA_VERSION, 0, UNSAFE),
        (METADATA_VERSION, 22, SAFE),
        (METADATA_VERSION, 29, UNSAFE),
        (GROUP_VERSION, -1, SAFE),
        (KRAFT_VERSION, 1, UPGRADE),
        ("no.such.version", 1, UPGRADE),
    ],
)
def test_invalid_levels_are_rejected(name: str, level: int, kind: int) -> None:
    image = supporting(replicated())
    before = dict(image.features)
    response = update(image, (SHARE_VERSION, 0, SAFE), (name, level, kind))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert image.features == before


def test_upgrade_types_and_duplicates() -> None:
    image = supporting(replicated())
    assert update(image, (GROUP_VERSION, 1, 0)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    twice = update(image, (GROUP_VERSION, 1, 1), (GROUP_VERSION, 0, 2))
    assert (twice.error_code, twice.results) == (ErrorCode.INVALID_REQUEST, [])


def test_every_broker_must_support_a_level() -> None:
    image = supporting(replicated(), metadata=25)
    replayed(image, [FeatureLevelRecord(METADATA_VERSION, 24)])
    assert update(image, (METADATA_VERSION, 25, UPGRADE)).error_code == 0
    response = update(image, (METADATA_VERSION, 26, UPGRADE))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "broker 1 does not support level 26" in (response.error_message or "")
    assert update(image, (METADATA_VERSION, 24, SAFE)).error_code == 0


def test_elr_requires_a_metadata_version() -> None:
    image = supporting(replicated(elr=False))
    replayed(image, [FeatureLevelRecord(METADATA_VERSION, 22)])
    assert update(image, (ELR_VERSION, 1, UPGRADE)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(image, (METADATA_VERSION, 25, UPGRADE), (ELR_VERSION, 1, UPGRADE)).error_code == 0
    assert image.broker_default_configs()["min.insync.replicas"] == "1"


def test_without_eligible_leaders_partitions_wait_for_their_isr() -> None:
    image = supporting(replicated(2))
    fence(image, 2)
    fence(image, 1)
    assert (partition(image).isr, partition(image).eligible_leader_replicas) == ((), (1,))
    assert update(image, (ELR_VERSION, 0, SAFE)).error_code == 0
    state = partition(image)
    assert (state.isr, state.eligible_leader_replicas, state.last_known_eligible_leader_replicas) == ((1,), (), ())
