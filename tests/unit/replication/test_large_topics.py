"""Topics with many partitions: settings and checks of followers take several turns of the event loop."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from replica_cluster import TOPIC, ReplicaCluster

from sskafka.metadata.records import RESOURCE_BROKER, ConfigRecord, PartitionRecord, TopicRecord
from sskafka.model.settings import Settings
from sskafka.replication import replica_manager
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.runtime import work_queue
from sskafka.runtime.work_queue import WorkQueue

PARTITIONS = 6
TOPIC_CONFIG = 2


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ReplicaCluster:
    """Two partitions fit into a turn."""
    monkeypatch.setattr(replica_manager, "CONFIGURED_AT_ONCE", 2)
    monkeypatch.setattr(replica_manager, "CHECKED_PER_TURN", 2)
    monkeypatch.setattr(work_queue, "TURN_MS", 0)
    made = ReplicaCluster()
    made.controller.create_topic([[1, 2, 3]] * PARTITIONS)
    made.time.run_for(300)
    return made


def retentions(cluster: ReplicaCluster) -> list[int]:
    replicas = cluster.brokers[1].replicas
    return [replicas.find(TOPIC, index).config.retention_ms for index in range(PARTITIONS)]


def configure(cluster: ReplicaCluster, retention_ms: int) -> None:
    cluster.controller.commit(ConfigRecord(TOPIC_CONFIG, TOPIC, "retention.ms", str(retention_ms)))


def test_settings_are_applied_some_partitions_at_a_time_and_in_order(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 partitions once took 50 ms in one turn."""
    seen: list[list[int]] = []
    run_turn = WorkQueue._run_turn

    def noting(queue: WorkQueue) -> None:
        run_turn(queue)
        seen.append(retentions(cluster))

    monkeypatch.setattr(WorkQueue, "_run_turn", noting)
    configure(cluster, 70_000)
    configure(cluster, 80_000)
    cluster.time.run_for(300)
    assert [70_000] * 2 in [some[:2] for some in seen if some[2:] != [70_000] * 4], "a part of them"
    assert [80_000] * 2 in [some[:2] for some in seen if some[2:] == [70_000] * 4], "the second change comes second"
    assert retentions(cluster) == [80_000] * PARTITIONS


def create_topics(cluster: ReplicaCluster, *overrides: dict[str, str]) -> None:
    for number, configs in enumerate(overrides):
        topic_id = number.to_bytes(16, "big")
        cluster.controller.commit(
            TopicRecord(f"topic-{number}", topic_id),
            *(ConfigRecord(TOPIC_CONFIG, f"topic-{number}", name, value) for name, value in configs.items()),
            PartitionRecord(0, topic_id, [1], [1], leader=1, leader_epoch=0, partition_epoch=0),
        )
    cluster.time.run_for(300)


def topic_configs_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many were computed in each turn."""
    turns = [0]
    topic_config, run_turn = Settings.topic_config, WorkQueue._run_turn

    def noting(settings: Settings, overrides: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        turns[-1] += 1
        return topic_config(settings, overrides)

    def noting_turns(queue: WorkQueue) -> None:
        turns.append(0)
        run_turn(queue)

    monkeypatch.setattr(Settings, "topic_config", noting)
    monkeypatch.setattr(WorkQueue, "_run_turn", noting_turns)
    return turns


def test_a_changed_broker_default_is_applied_to_some_topics_at_a_time(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 topics once took 1.4 s in one turn."""
    create_topics(cluster, *({"retention.ms": str(number)} for number in range(1, 7)))
    turns = topic_configs_computed(monkeypatch)
    cluster.controller.commit(ConfigRecord(RESOURCE_BROKER, "", "log.segment.bytes", "2000000"))
    cluster.time.run_for(300)
    configs = [cluster.brokers[1].replicas.find(f"topic-{number}", 0).config for number in range(6)]
    assert [(config.retention_ms, config.segment_bytes) for config in configs] == [(i, 2_000_000) for i in range(1, 7)]
    assert max(turns) <= 2


def test_topics_without_settings_of_their_own_share_those_of_the_broker(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(cluster, *({} for _ in range(6)))
    turns = topic_configs_computed(monkeypatch)
    cluster.controller.commit(ConfigRecord(RESOURCE_BROKER, "", "log.segment.bytes", "2000000"))
    cluster.time.run_for(300)
    assert sum(turns) == len(cluster.brokers), "each broker once"


def test_the_settings_of_a_topic_are_computed_once_for_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ReplicaCluster()
    turns = topic_configs_computed(monkeypatch)
    made.controller.create_topic([[1, 2, 3]] * PARTITIONS)
    made.time.run_for(300)
    assert sum(turns) == len(made.brokers), "each broker once"


def test_the_followers_of_all_partitions_are_checked_in_several_turns(cluster: ReplicaCluster) -> None:
    """10,000 partitions once took 35 ms in one turn, every few seconds."""
    later: list[tuple[float, Callable[[], None]]] = []
    links = ClusterLinks(
        cast(Any, None), cast(Any, None), lambda delay_s, call: later.append((delay_s, call)), lambda: 0
    )
    replicas = cluster.brokers[1].replicas
    replicas._check_lag(links)
    delays_s = [later[0][0]]
    while delays_s[-1] == 0:
        later.pop()[1]()
        delays_s.append(later[0][0])
    assert delays_s == [0, 0, replicas.lag_max_ms / 2000]
