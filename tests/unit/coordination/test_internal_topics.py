"""The settings with which internal topics are created."""

import pytest

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, internal_topic
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.image import ClusterImage
from sskafka.model.settings import Settings


def image_with(brokers: int) -> ClusterImage:
    image = ClusterImage()
    image.brokers = dict.fromkeys(range(brokers), BrokerRegistration.__new__(BrokerRegistration))
    return image


def settings(**overrides: str) -> Settings:
    return Settings.resolve(overrides={name.replace("_", "."): value for name, value in overrides.items()})


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_no_more_replicas_than_brokers(brokers: int, replicas: int) -> None:
    for name in (CONSUMER_OFFSETS, TRANSACTION_STATE):
        assert internal_topic(name, settings(), image_with(brokers)).replication_factor == replicas


def test_a_combined_quorum_that_is_not_all_there_yet_counts_in_full() -> None:
    voters = settings(controller_quorum_voters="1@a:1,2@b:1,3@c:1", node_id="1", process_roles="broker,controller")
    assert internal_topic(CONSUMER_OFFSETS, voters, image_with(1)).replication_factor == 3


def test_offsets_are_compacted() -> None:
    topic = internal_topic(CONSUMER_OFFSETS, settings(), image_with(3))
    configs = {config.name: config.value for config in topic.configs}
    assert (topic.name, topic.num_partitions) == (CONSUMER_OFFSETS, 50)
    assert configs == {"cleanup.policy": "compact", "segment.bytes": "104857600", "compression.type": "producer"}


def test_transactions_ask_for_replicas_in_sync_as_far_as_there_are_any() -> None:
    configs = {
        config.name: config.value for config in internal_topic(TRANSACTION_STATE, settings(), image_with(1)).configs
    }
    assert configs["min.insync.replicas"] == "1"
    assert configs["unclean.leader.election.enable"] == "false"
