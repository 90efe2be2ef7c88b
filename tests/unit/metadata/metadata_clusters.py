"""Images of clusters for tests, built by replaying records as a controller does."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, TypeVar

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import new_cluster_levels
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import FeatureLevelRecord, MetadataRecord, RegisterBrokerRecord
from sskafka.metadata.topics import create_topics
from sskafka.model.settings import Settings
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

R = TypeVar("R")
SETTINGS = Settings.resolve()


def replayed(image: ClusterImage, records: Iterable[MetadataRecord]) -> MetadataDelta:
    delta = MetadataDelta()
    for record in records:
        image.replay(record, delta)
    return delta


def decided(image: ClusterImage, decision: ControllerResult[R]) -> R:
    """Replay the records into the image and return the response."""
    replayed(image, decision.records)
    return decision.response


def cluster(brokers: int = 1, racks: Sequence[str | None] = (), *, elr: bool = True, **fields: Any) -> ClusterImage:
    """Return an image with brokers 1 to n, unfenced, each with one directory."""
    image = ClusterImage()
    levels = {name: level for name, level in new_cluster_levels().items() if elr or not name.startswith("eligible")}
    replayed(image, [FeatureLevelRecord(name, level) for name, level in levels.items()])
    for number in range(1, brokers + 1):
        rack = racks[number - 1] if racks else None
        directories = [bytes(15) + bytes([100 + number])]
        registration = RegisterBrokerRecord(
            number, broker_epoch=image.next_offset, rack=rack, fenced=False, log_dirs=directories
        )
        for name, value in fields.items():
            setattr(registration, name, value)
        replayed(image, [registration])
    return image


def seeded(seed: int = 7) -> Any:
    return Random(seed).randbytes


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    given = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return CreatableTopic(name, partitions, replicas, configs=given)


def with_topic(image: ClusterImage, name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> ClusterImage:
    request = CreateTopicsRequest([new_topic(name, partitions, replicas, **configs)])
    response = decided(image, create_topics(image, request, SETTINGS, seeded(len(image.topics_by_name))))
    assert response.topics[0].error_code == 0, response.topics[0].error_message
    return image
