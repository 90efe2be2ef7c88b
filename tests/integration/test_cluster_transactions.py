"""Transactions over three brokers: the coordinator, or a leader, dies between the first record and the end."""

import asyncio

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from transaction_clients import TIMEOUT_S, read, transactional, write
from waiting import wait_until

from sskafka.client.cluster import Cluster
from sskafka.client.transactions import list_transactions
from sskafka.coordination.internal_topics import partition_of
from sskafka.model.settings_table.profiles import FAST_FAILOVER
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest

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


def test_every_replica_describes_its_producers(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, SETTINGS)
    cluster.create_topic(TOPIC, 1)
    producer = transactional(cluster.bootstrap, "pay")
    producer.begin_transaction()
    write(producer, TOPIC, "open")
    asked = DescribeProducersRequest([TopicRequest(TOPIC, [0])])

    def starts(node_id: int) -> list[int]:
        (partition,) = cluster.ask(asked, 0, node_id).topics[0].partitions
        assert partition.error_code == 0, f"broker {node_id}: {partition}"
        return [producer.current_txn_start_offset for producer in partition.active_producers]

    for node_id in cluster.node_ids:
        wait_until(lambda at=node_id: starts(at) == [0], f"broker {node_id} knows the open transaction")
    producer.abort_transaction(TIMEOUT_S)
