"""ADR-0011 in a cluster: a client may connect to any broker, whichever leads."""

import threading

import pytest
from adr_connection import adr_address_in
from cluster_processes import ClusterProcesses, StartCluster
from replica_files import stored_batches

from sskafka.client.adr import AdrClient, AdrError
from sskafka.model.settings_table.profiles import FAST_FAILOVER
from sskafka.records.partitioner import partition_for_key

PARTITIONS = 3


def clients_of(cluster: ClusterProcesses) -> list[AdrClient]:
    return [AdrClient(adr_address_in(cluster, node_id)) for node_id in cluster.running()]


def close(clients: list[AdrClient]) -> None:
    for client in clients:
        client.close()


def spread(client: AdrClient, topic: str) -> list[int]:
    return [len(client.consume(topic, partition, 0, 10_000).messages) for partition in range(PARTITIONS)]


def test_every_adr_listener_reaches_every_partition_and_all_share_one_balance(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, FAST_FAILOVER, "--adr")
    for replicas, topic in ((1, "single"), (3, "replicated")):
        cluster.create_topic(topic, PARTITIONS, replicas)
        assert len({state.leader for state in cluster.partitions(topic).values()}) == PARTITIONS
        keyed_load_is_passed_on(cluster, topic)
        balance_is_shared(cluster, topic)
    flush_reaches_every_disk(cluster)
    doors_go_on_with_the_new_leader(cluster)


def keyed_load_is_passed_on(cluster: ClusterProcesses, topic: str) -> None:
    clients = clients_of(cluster)
    partition = partition_for_key(b"hot", PARTITIONS)
    places = [client.produce(topic, b"%d" % number, key="hot") for number, client in enumerate(clients * 4)]
    assert [place.partition for place in places] == [partition] * 12
    assert [place.offset for place in places] == list(range(12))
    for client in clients:
        with pytest.raises(AdrError, match=r"max\.message\.bytes"):
            client.produce(topic, b"x" * 2_000_000, key="hot")
        found = client.consume(topic, partition, 0, 100)
        assert [message.data for message in found.messages] == [b"%d" % number for number in range(12)]
        assert found.next_offset == 12
        assert client.consume(topic, partition, 500, 100) == (500, [])
    close(clients)


def balance_is_shared(cluster: ClusterProcesses, topic: str) -> None:
    """12 are in one partition already."""

    def produce(client: AdrClient) -> None:
        for _ in range(29):
            client.produce(topic, b"x")

    clients = clients_of(cluster)
    threads = [threading.Thread(target=produce, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [spread(client, topic) for client in clients] == [[33, 33, 33]] * 3
    close(clients)


def flush_reaches_every_disk(cluster: ClusterProcesses) -> None:
    clients = clients_of(cluster)
    clients[0].flush()
    for node_id in cluster.node_ids:
        assert stored_batches(cluster.home(node_id) / "data", "replicated", 0)
    close(clients)


def doors_go_on_with_the_new_leader(cluster: ClusterProcesses) -> None:
    """The decider of the topic dies; the other brokers find the new one."""
    decider = cluster.partitions("replicated")[0].leader
    cluster.kill(decider)
    cluster.wait_for_new_leader("replicated", 0, decider)
    clients = clients_of(cluster)
    for client in clients * 3:
        client.produce("replicated", b"x")
    assert sum(spread(clients[0], "replicated")) == 105
    close(clients)
