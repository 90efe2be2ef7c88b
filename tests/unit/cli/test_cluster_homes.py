from pathlib import Path

import pytest

from sskafka.cli.cluster.homes import LocalCluster, find_cluster, wanted_ports, write_settings
from sskafka.cli.cluster.ports import HTTP, KAFKA, PortOption, Ports
from sskafka.cli.failures import CommandError
from sskafka.model.setting import SettingError

AS_IT_WAS = {KAFKA: PortOption(), HTTP: PortOption()}


def kafka_ports(*ports: int) -> list[Ports]:
    return [{KAFKA: port} for port in ports]


def new_cluster(directory: Path, count: int = 3) -> LocalCluster:
    return find_cluster(directory, count, default_count=3)


def properties_of(cluster: LocalCluster) -> list[dict[str, str]]:
    return [home.read_properties() for home in cluster.homes]


def test_brokers_are_counted_from_one(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    assert cluster.is_new
    assert [home.path for home in cluster.homes] == [tmp_path / f"broker-{number}" for number in (1, 2, 3)]
    assert wanted_ports(cluster, {KAFKA: PortOption()}) == kafka_ports(9092, 9093, 9094)
    assert wanted_ports(cluster, {KAFKA: PortOption(19092)}) == kafka_ports(19092, 19093, 19094)
    assert wanted_ports(cluster, {KAFKA: PortOption(0)}) == kafka_ports(0, 0, 0)
    assert wanted_ports(cluster, AS_IT_WAS)[2] == {KAFKA: 9094, HTTP: 8003}
    assert list(tmp_path.iterdir()) == []


def test_a_disabled_listener_stays_disabled_until_it_is_enabled(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, 1)
    ports = wanted_ports(cluster, {KAFKA: PortOption(), HTTP: PortOption(is_open=False)})
    assert ports == kafka_ports(9092)
    write_settings(cluster, ports, {}, lab=False)
    assert properties_of(cluster)[0]["http.listener"] == ""
    again = find_cluster(tmp_path, None, default_count=1)
    assert wanted_ports(again, AS_IT_WAS) == kafka_ports(9092)
    ports = wanted_ports(again, {KAFKA: PortOption(), HTTP: PortOption(8001)})
    assert ports == [{KAFKA: 9092, HTTP: 8001}]
    write_settings(again, ports, {}, lab=False)
    assert properties_of(again)[0]["http.listener"] == "localhost:8001"
    assert wanted_ports(again, AS_IT_WAS) == ports


def test_settings_make_one_cluster_of_several_brokers(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    warnings = write_settings(cluster, kafka_ports(9092, 9093, 9094), {"num.partitions": "5"}, lab=False)
    assert warnings == []
    first, second, third = properties_of(cluster)
    assert first["controller.quorum.voters"] == "1@localhost:9092,2@localhost:9093,3@localhost:9094"
    for shared in ("cluster.id", "controller.quorum.voters", "num.partitions", "process.roles"):
        assert first[shared] == second[shared] == third[shared]
    assert [KAFKA.port_in(stated) for stated in (first, second, third)] == [9092, 9093, 9094]
    assert second["node.id"] == "2"
    assert second["log.dirs"] == str(tmp_path / "broker-2" / "data")
    assert second["metadata.log.dir"] == str(tmp_path / "broker-2" / "metadata")


def test_a_directory_with_a_cluster_is_taken_as_it_is(tmp_path: Path) -> None:
    write_settings(new_cluster(tmp_path), kafka_ports(7001, 7002, 7003), {"num.partitions": "5"}, lab=False)
    before = properties_of(new_cluster(tmp_path))
    again = find_cluster(tmp_path, None, default_count=1)
    assert not again.is_new
    ports = wanted_ports(again, AS_IT_WAS)
    assert ports == kafka_ports(7001, 7002, 7003)
    write_settings(again, ports, {}, lab=False)
    assert properties_of(again) == before


def test_what_is_asked_for_anew_changes(tmp_path: Path) -> None:
    write_settings(new_cluster(tmp_path), kafka_ports(7001, 7002, 7003), {"num.partitions": "5"}, lab=False)
    again = find_cluster(tmp_path, None, default_count=3)
    cluster_id = properties_of(again)[0]["cluster.id"]
    write_settings(again, wanted_ports(again, {KAFKA: PortOption(8001)}), {"num.partitions": "6"}, lab=False)
    stated = properties_of(again)[2]
    assert stated["cluster.id"] == cluster_id
    assert stated["num.partitions"] == "6"
    assert stated["controller.quorum.voters"] == "1@localhost:8001,2@localhost:8002,3@localhost:8003"


def test_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    write_settings(new_cluster(tmp_path, 5), kafka_ports(*range(7001, 7006)), {}, lab=False)
    with pytest.raises(CommandError, match="holds a cluster of 5 brokers"):
        find_cluster(tmp_path, 3, default_count=3)


def test_the_lab_gets_its_settings(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    write_settings(cluster, kafka_ports(7001, 7002, 7003), {}, lab=True)
    stated = properties_of(cluster)
    assert {text["log.dir.partition.base"] for text in stated} == {"1"}
    assert {text["lab.api"] for text in stated} == {"true"}


def test_broker_1_waits_shortest_before_the_first_election(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    write_settings(cluster, kafka_ports(7001, 7002, 7003), {}, lab=False)
    stated = properties_of(cluster)
    delays = [int(text["controller.quorum.first.election.delay.ms"]) for text in stated]
    assert delays[0] < delays[1] < delays[2]


def test_a_bad_setting_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"num\.partitions"):
        write_settings(new_cluster(tmp_path), kafka_ports(7001, 7002, 7003), {"num.partitions": "few"}, lab=False)
    assert list(tmp_path.iterdir()) == []


def test_several_brokers_per_host(tmp_path: Path) -> None:
    cluster = find_cluster(tmp_path, 2, default_count=3, brokers_per_host=2)
    assert cluster.node_ids == [1, 2, 1001, 1002]
    assert wanted_ports(cluster, {KAFKA: PortOption()}) == kafka_ports(9092, 9093, 9094, 9095)
    write_settings(cluster, kafka_ports(7001, 7002, 7003, 7004), {}, lab=False)
    stated = properties_of(cluster)
    assert {text["controller.quorum.voters"] for text in stated} == {"1@localhost:7001,2@localhost:7002"}
    assert [text["process.roles"] for text in stated] == ["broker,controller"] * 2 + ["broker"] * 2
    assert [text["broker.rack"] for text in stated] == ["host-1", "host-2", "host-1", "host-2"]
    again = find_cluster(tmp_path, 2, default_count=3)
    assert again.node_ids == cluster.node_ids


def test_a_cluster_grows_to_several_brokers_per_host_and_back(tmp_path: Path) -> None:
    write_settings(new_cluster(tmp_path, 1), kafka_ports(7001), {"num.partitions": "5"}, lab=False)
    grown = find_cluster(tmp_path, None, default_count=3, brokers_per_host=2)
    assert not grown.is_new
    ports = wanted_ports(grown, AS_IT_WAS)
    assert ports == kafka_ports(7001, 7002)
    write_settings(grown, ports, {}, lab=False)
    first, second = properties_of(grown)
    assert second["cluster.id"] == first["cluster.id"]
    assert second["num.partitions"] == "5"
    assert second["log.dirs"] == str(tmp_path / "broker-1001" / "data")
    assert find_cluster(tmp_path, None, 3, brokers_per_host=1).node_ids == [1]
    (tmp_path / "broker-1001" / "data" / "orders-0").mkdir(parents=True)
    with pytest.raises(CommandError, match="broker 1001 holds 1 partitions") as refused:
        find_cluster(tmp_path, None, 3, brokers_per_host=1)
    assert "sskafka broker decommission 1001 --wait 0" in refused.value.hint
