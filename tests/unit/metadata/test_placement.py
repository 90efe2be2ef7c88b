from collections import Counter

import pytest
from metadata_clusters import SETTINGS, cluster, decided, replayed

from sskafka.metadata.brokers.lifecycle import begin_controlled_shutdown, fence_brokers
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.placement import PlacementError, place_replicas, stripe
from sskafka.metadata.records import BrokerEndpoint, BrokerRegistrationChangeRecord, RegisterBrokerRecord


def place(image: ClusterImage, partitions: int, factor: int, start: int = 0) -> list[tuple[int, ...]]:
    return place_replicas(image.brokers.values(), range(partitions), factor, start)


def test_the_stripe_changes_rack_with_every_step_if_possible() -> None:
    image = cluster(6, ["a", "a", "a", "b", "b", "c"])
    assert [broker.id for broker in stripe(list(image.brokers.values()))] == [1, 4, 6, 2, 5, 3]


def test_replicas_are_spread_over_racks_first() -> None:
    image = cluster(6, ["a", "a", "b", "b", "c", "c"])
    racks = {broker.id: broker.rack for broker in image.brokers.values()}
    for replicas in place(image, 60, 3):
        assert len({racks[replica] for replica in replicas}) == 3


def test_replicas_are_spread_over_hosts_next() -> None:
    """Three machines with two brokers each in two racks: no two of three replicas are on one machine."""
    image = ClusterImage()
    hosts = {1: "h1", 1001: "h1", 2: "h2", 1002: "h2", 3: "h3", 1003: "h3"}
    for number, host in hosts.items():
        rack = "b" if host == "h3" else "a"
        endpoints = [BrokerEndpoint("PLAINTEXT", host, 9092, 0)]
        record = RegisterBrokerRecord(number, rack=rack, fenced=False, end_points=endpoints)
        replayed(image, [record])
    for replicas in place(image, 60, 3):
        assert {hosts[replica] for replica in replicas} == {"h1", "h2", "h3"}
    assert set(Counter(replicas[0] for replicas in place(image, 60, 3)).values()) == {10}


@pytest.mark.parametrize("start", [0, 1, 5, 65535])
def test_leaders_and_replicas_are_distributed_evenly(start: int) -> None:
    placed = place(cluster(5), 50, 3, start)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}
    assert set(Counter(replica for replicas in placed for replica in replicas).values()) == {30}
    assert all(len(set(replicas)) == 3 for replicas in placed)


def test_two_brokers_do_not_share_all_their_partitions() -> None:
    pairs = set(place(cluster(4), 12, 2))
    assert len(pairs) == 12


def test_the_random_start_moves_the_first_leader() -> None:
    assert {place(cluster(3), 1, 1, start)[0] for start in range(3)} == {(1,), (2,), (3,)}


def test_fenced_brokers_come_last_and_never_lead() -> None:
    image = cluster(3)
    image.brokers[1] = cluster(1, fenced=True).brokers[1]
    for replicas in place(image, 12, 3):
        assert replicas[0] != 1
        assert replicas[2] == 1
    assert all(1 not in replicas for replicas in place(image, 12, 2))


def test_too_few_brokers() -> None:
    with pytest.raises(PlacementError, match="replication factor of 3 cannot be reached because only 2 broker"):
        place(cluster(2), 1, 3)
    with pytest.raises(PlacementError, match="All brokers are currently fenced"):
        place(cluster(2, fenced=True), 1, 1)
    with pytest.raises(PlacementError, match="in controlled shutdown"):
        place(cluster(1, in_controlled_shutdown=True), 1, 1)


def test_a_broker_in_controlled_shutdown_gets_no_replicas() -> None:
    image = cluster(3)
    decided(image, begin_controlled_shutdown(image, 3, SETTINGS))
    assert all(3 not in replicas for replicas in place(image, 6, 2))
    with pytest.raises(PlacementError, match="replication factor of 3 cannot be reached because only 2 broker"):
        place(image, 1, 3)
    decided(image, fence_brokers(image, [3], SETTINGS))
    assert all(replicas[2] == 3 for replicas in place(image, 6, 3))
    assert all(3 not in replicas for replicas in place(image, 6, 2))


def test_a_broker_whose_directories_are_all_cordoned_gets_no_replicas() -> None:
    image = cluster(2)
    broker = image.brokers[2]
    replayed(image, [BrokerRegistrationChangeRecord(2, broker.epoch, cordoned_log_dirs=list(broker.directories))])
    assert set(place(image, 6, 1)) == {(1,)}
    with pytest.raises(PlacementError, match="only 1 broker"):
        place(image, 1, 2)
    replayed(image, [BrokerRegistrationChangeRecord(2, broker.epoch, cordoned_log_dirs=[])])
    assert set(place(image, 6, 1)) == {(1,), (2,)}
