"""The human-readable journal of topics: `__cluster_metadata.log`, one line per change.

    offset epoch type {json}

    0 1 create-topic {"topic_name":"t","partition_count":1,"partitions":[{"id":"t-1","replica_brokers":["1","2"]}]}
    1 2 delete-topic {"topic_name":"t"}

Offsets are consecutive and belong to the journal. The epoch is that of the quorum leader that wrote the change. The
metadata log is authoritative: the journal contains neither internal topics nor other changes of topics.
Partitions are numbered from 1 here, and nowhere else in this package.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.ids import INTERNAL_TOPICS

CREATE_TOPIC = "create-topic"
DELETE_TOPIC = "delete-topic"


class JournalEntry(NamedTuple):
    offset: int
    epoch: int
    type: str
    payload: Mapping[str, Any]

    def line(self) -> str:
        return f"{self.offset} {self.epoch} {self.type} {json.dumps(self.payload, separators=(',', ':'))}\n"


def journal_entries(delta: MetadataDelta, image: ClusterImage, epoch: int, next_offset: int) -> Iterator[JournalEntry]:
    """Return the lines that `delta`, which led to `image`, adds to a journal that ends before `next_offset`."""
    for offset, (kind, payload) in enumerate(_changes(delta, image), next_offset):
        yield JournalEntry(offset, epoch, kind, payload)


def parse_line(line: str) -> JournalEntry:
    """Parse one line; raise ValueError if it is incomplete or invalid."""
    if not line.endswith("\n"):
        raise ValueError(f"the line {line!r} is incomplete")
    offset, epoch, kind, payload = line.rstrip("\n").split(" ", 3)
    return JournalEntry(int(offset), int(epoch), kind, json.loads(payload))


def topic_description(topic: TopicImage) -> dict[str, Any]:
    """Return a topic in the format of the lab's listings."""
    partitions = [
        {"id": f"{topic.name}-{number + 1}", "replica_brokers": [str(replica) for replica in sorted(state.replicas)]}
        for number, state in sorted(topic.partitions.items())
    ]
    return {"topic_name": topic.name, "partition_count": len(partitions), "partitions": partitions}


def _changes(delta: MetadataDelta, image: ClusterImage) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield deletions before creations, so that a recreated topic exists at the end; otherwise in log order."""
    for topic in delta.topics_deleted.values():
        if topic.name not in INTERNAL_TOPICS:
            yield DELETE_TOPIC, {"topic_name": topic.name}
    for topic in image.topics_by_id.values():
        if topic.topic_id in delta.topics_created and topic.name not in INTERNAL_TOPICS:
            yield CREATE_TOPIC, topic_description(topic)
