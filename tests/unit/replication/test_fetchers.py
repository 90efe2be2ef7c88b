"""The assignment of partitions to fetch connections."""

from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication import fetchers
from sskafka.replication.fetchers import Fetchers

LEADER = 2


class Fetcher:
    def __init__(self, *made_of: object) -> None:
        self.partitions: set[Any] = set()
        self.is_stopped = False

    def add(self, partition: Any) -> None:
        self.partitions.add(partition.topic_partition)

    def remove(self, partition: Any) -> None:
        self.partitions.remove(partition.topic_partition)

    @property
    def is_idle(self) -> bool:
        return not self.partitions

    def stop(self) -> None:
        self.is_stopped = True


class Follower(SimpleNamespace):
    __hash__ = object.__hash__


def test_partitions_go_over_to_new_connections_when_their_number_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetchers, "ReplicaFetcher", Fetcher)
    parts: Any = object()
    lanes = Fetchers(1, Settings.resolve(), parts, parts, parts, parts)
    partitions = [TopicPartition("t", number) for number in range(6)]
    for partition in partitions:
        followed: Any = Follower(topic_partition=partition, leadership=SimpleNamespace(leader_id=LEADER))
        lanes.follow(followed)

    def spread() -> list[int]:
        return sorted(len(fetcher.partitions) for fetcher in lanes._fetchers.values())  # type: ignore[attr-defined]

    assert spread() == [6]
    lanes.resize(3)
    assert spread() == [2, 2, 2]
    lanes.resize(1)
    assert spread() == [6]
