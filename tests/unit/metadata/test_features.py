import pytest

from sskafka.metadata.features import ACCEPTED_FEATURES, SUPPORTED_FEATURES, new_cluster_levels, parse_metadata_version


@pytest.mark.parametrize(
    ("text", "level"), [("3.3-IV3", 7), ("3.8-IV0", 20), ("4.0", 25), ("4.3", 30), ("4.3-IV0", 30)]
)
def test_releases_have_levels(text: str, level: int) -> None:
    assert parse_metadata_version(text) == level


def test_an_unknown_release_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"known are 3\.3-IV3 to 4\.3-IV0"):
        parse_metadata_version("9.9")


def test_a_new_cluster_finalizes_kafka_4_3_features_except_share_and_streams() -> None:
    assert new_cluster_levels() == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert new_cluster_levels(20) == {"metadata.version": 20}


def test_finalized_levels_of_a_new_cluster_are_supported() -> None:
    for name, level in new_cluster_levels().items():
        assert SUPPORTED_FEATURES[name].minimum <= level <= SUPPORTED_FEATURES[name].maximum


@pytest.mark.parametrize("name", ["share.version", "streams.version"])
def test_clusters_with_unsupported_group_features_are_accepted(name: str) -> None:
    assert SUPPORTED_FEATURES[name] == (0, 0)
    assert ACCEPTED_FEATURES[name] == (0, 1)
