"""The records of a snapshot, which recreate an image.

Replaying them in this order into an empty image gives an equal image. Features come first, because they determine the
versions of the other records; topics come before their partitions.
"""

from collections.abc import Iterator

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.features import METADATA_VERSION
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import (
    BrokerFeature,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from sskafka.model.ids import Uuid


def image_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    yield from _features(image)
    for broker in image.brokers.values():
        yield broker_record(broker)
    yield from image.controllers.values()
    for topic in image.topics_by_name.values():
        yield from _topic(topic)
    for resource in image.config_resources():
        for name, value in image.configs(resource).items():
            yield ConfigRecord(resource.type, resource.name, name, value)
    if image.next_producer_id:
        yield ProducerIdsRecord(next_producer_id=image.next_producer_id)
    yield from _security(image)


def _features(image: ClusterImage) -> Iterator[MetadataRecord]:
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name, image.features[name])


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=list(broker.endpoints),
        features=[BrokerFeature(name, levels.minimum, levels.maximum) for name, levels in broker.features.items()],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=list(broker.cordoned) or None,
    )


def _topic(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(topic.name, topic.topic_id)
    for number, state in topic.partitions.items():
        yield _partition(topic.topic_id, number, state)


def _partition(topic_id: Uuid, number: int, state: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing_replicas),
        adding_replicas=list(state.adding_replicas),
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        eligible_leader_replicas=list(state.eligible_leader_replicas) or None,
        last_known_elr=list(state.last_known_eligible_leader_replicas) or None,
    )


def _security(image: ClusterImage) -> Iterator[MetadataRecord]:
    for entity, quotas in image.client_quotas.items():
        named = [EntityData(kind, name) for kind, name in entity]
        for key, value in quotas.items():
            yield ClientQuotaRecord(named, key, value)
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()
    yield from image.access_control.values()
