"""The delta between two images, for consumers of deltas that receive a snapshot instead."""

from collections.abc import Mapping
from typing import TypeVar

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage

K = TypeVar("K")


def changes_between(old: ClusterImage, new: ClusterImage) -> MetadataDelta:
    delta = MetadataDelta(
        topics_created=set(new.topics_by_id) - set(old.topics_by_id),
        topics_deleted={
            topic_id: topic for topic_id, topic in old.topics_by_id.items() if topic_id not in new.topics_by_id
        },
        configs_changed={
            resource
            for resource in {*old.config_resources(), *new.config_resources()}
            if old.configs(resource) != new.configs(resource)
        },
        brokers_changed=_different(old.brokers, new.brokers),
        features_changed=_different(old.features, new.features),
    )
    for topic in new.topics_by_id.values():
        _note_partitions(old.topics_by_id.get(topic.topic_id), topic, delta)
    return delta


def _note_partitions(old: TopicImage | None, new: TopicImage, delta: MetadataDelta) -> None:
    known = old.partitions if old is not None else {}
    for number, state in new.partitions.items():
        if known.get(number) != state:
            delta.partition_changed(new.topic_id, number)


def _different(old: Mapping[K, object], new: Mapping[K, object]) -> set[K]:
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}
