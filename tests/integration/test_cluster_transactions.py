"""Transactions over three brokers: the coordinator, or a leader, dies between the first record and the end."""

import asyncio

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from transaction_clients import TIMEOUT_S, read, transactional, write

from sskafka.client.cluster import Cluster
from sskafka.client.transactions import list_transactions
from sskafka.coordination.key_partition import partition_of
from sskafka.model.settings_table.profiles import FAST_FAILOVER

TOPIC = "orders"
PARTITIONS = 6
STATE_PARTITIONS = 3
SETTINGS = {
    **FAST_FAILOVER,
    "transaction.state.log.num.partitions": STATE_PARTITIONS,
    "offsets.topic.num.partitions": 3,
}


def coordinator_of(cluster: ClusterProcesses, transactional_id: str) -> int:
    return cluster.partitions("__transaction_state")[partition_of(transactional_id, STATE_PARTITIONS)].leader


def open_transactions(bootstrap: str) -> list[str]:
    async def ask() -> list[str]:
        async with Cluster(bootstrap) as cluster:
            return [one.transactional_id for one in await list_transactions(cluster, ["Ongoing"])]

    return asyncio.run(ask())


@pytest.mark.parametrize("ends_well", [True, False], ids=["commit", "abort"])
def test_the_coordinator_dies_in_the_midst_of_it(start_cluster: StartCluster, ends_well: bool) -> None:
    cluster = start_cluster(3, SETTINGS)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    producer = transactional(cluster.bootstrap, "pay")
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        write(producer, TOPIC, "before", partition=partition)
    cluster.kill(coordinator_of(cluster, "pay"))
    assert open_transactions(cluster.bootstrap) == ["pay"], "the dead broker is in the metadata yet"
    for partition in range(PARTITIONS):
        write(producer, TOPIC, "after", partition=partition)
    if ends_well:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)
    producer.begin_transaction()  # the markers of the one before are written before this one can begin
    write(producer, TOPIC, "next")
    producer.commit_transaction(TIMEOUT_S)
    found = read(cluster.bootstrap, TOPIC, partitions=PARTITIONS)
    expected = ["before", "after"] * PARTITIONS if ends_well else []
    assert sorted(found) == sorted([*expected, "next"])
