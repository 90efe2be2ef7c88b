"""The changes of a sequence of metadata records, for their consumers: the replica manager, coordinators, the journal.

The image that accompanies a delta is the one after the changes; the delta keeps what was removed from it.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from sskafka.model.ids import Uuid
from sskafka.model.values import structure

if TYPE_CHECKING:
    from sskafka.metadata.image import ClusterImage, TopicImage


class ConfigResource(NamedTuple):
    """A resource with configs: a topic by name, a broker by id, or, with an empty name, all brokers."""

    type: int
    name: str


@structure
class MetadataDelta:
    topics_created: set[Uuid] = field(default_factory=set)
    topics_deleted: "dict[Uuid, TopicImage]" = field(default_factory=dict)
    partitions_changed: dict[Uuid, set[int]] = field(default_factory=dict)
    """New and changed partitions by topic id, without those of deleted topics."""
    configs_changed: set[ConfigResource] = field(default_factory=set)
    brokers_changed: set[int] = field(default_factory=set)
    features_changed: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)
    """Records of types that this software does not know."""

    @classmethod
    def from_empty(cls, image: "ClusterImage") -> "MetadataDelta":
        """Return the delta from an empty image to `image`."""
        return cls(
            topics_created=set(image.topics_by_id),
            partitions_changed={topic.topic_id: set(topic.partitions) for topic in image.topics_by_id.values()},
            configs_changed=set(image.config_resources()),
            brokers_changed=set(image.brokers),
            features_changed=set(image.features),
        )

    def partition_changed(self, topic_id: Uuid, partition: int) -> None:
        self.partitions_changed.setdefault(topic_id, set()).add(partition)

    def topic_deleted(self, topic: "TopicImage") -> None:
        self.partitions_changed.pop(topic.topic_id, None)
        if topic.topic_id in self.topics_created:
            self.topics_created.discard(topic.topic_id)  # created and deleted within one delta: no net change
        else:
            self.topics_deleted[topic.topic_id] = topic

    def changed_partitions(self) -> Iterator[tuple[Uuid, int]]:
        for topic_id, partitions in self.partitions_changed.items():
            for partition in sorted(partitions):
                yield topic_id, partition
