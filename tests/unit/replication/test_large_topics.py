"""Topics with many partitions: settings and checks of followers take several turns of the event loop."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from replica_cluster import TOPIC, ReplicaCluster

from sskafka.metadata.records import ConfigRecord
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
