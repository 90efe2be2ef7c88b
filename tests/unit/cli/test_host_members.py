from pathlib import Path

import pytest

from sskafka.cli.failures import CommandError
from sskafka.cli.host.members import Member, plan_members, voters_of
from sskafka.cli.host.supervisor import ready_line
from sskafka.cli.usage import UsageError
from sskafka.model.settings import Settings
from sskafka.storage.disk import OsDisk
from sskafka.storage.meta_properties import MetaProperties, write_meta_properties

PORTS = {"PLAINTEXT": 9092, "http.listener": 8080}


def machine(tmp_path: Path, **stated: str) -> Settings:
    defaults = {
        "node.id": "7",
        "listeners": "PLAINTEXT://localhost:9092",
        "http.listener": "localhost:8080",
        "log.dirs": str(tmp_path / "data"),
    }
    named = {name.replace("_", "."): text for name, text in stated.items()}
    return Settings.resolve({**defaults, **named}, host_name="fridge")


def members(tmp_path: Path, count: int = 2, **stated: str) -> list[Member]:
    return plan_members(machine(tmp_path, **stated), count, OsDisk())


def ports_of(member: Member) -> dict[str, int]:
    return {listener.name: listener.port for listener in member.listeners}


def test_ids_and_ports_count_on_from_those_of_the_machine(tmp_path: Path) -> None:
    found = members(tmp_path, 3)
    assert [member.node_id for member in found] == [7, 1007, 2007]
    assert [ports_of(member) for member in found] == [
        {"PLAINTEXT": 9092, "http.listener": 8080},
        {"PLAINTEXT": 9093, "http.listener": 8081},
        {"PLAINTEXT": 9094, "http.listener": 8082},
    ]


def test_the_first_broker_keeps_the_settings_of_the_machine(tmp_path: Path) -> None:
    first, second = members(tmp_path)
    assert first.settings.keys() == {"node.id", "cluster.id", "broker.rack"}
    assert second.settings["process.roles"] == "broker"
    assert second.settings["log.dirs"] == str(tmp_path / "data" / "brokers" / "1007")
    assert second.settings["cluster.id"] == first.settings["cluster.id"]
    resolved = Settings.resolve({}, {}, second.overrides({"PLAINTEXT": 5, "http.listener": 6}), host_name="fridge")
    assert resolved.listeners[0].port == 5
    assert resolved["http.listener"] == "localhost:6"


def test_all_brokers_of_a_machine_have_one_rack(tmp_path: Path) -> None:
    assert {member.settings["broker.rack"] for member in members(tmp_path)} == {"fridge"}
    assert {member.settings["broker.rack"] for member in members(tmp_path, broker_rack="b")} == {"b"}


def test_every_log_directory_has_a_subdirectory_for_each_broker(tmp_path: Path) -> None:
    _, second = members(tmp_path, log_dirs="/a,/b", metadata_log_dir="/m", cordoned_log_dirs="/b", audit_log="/x")
    assert second.settings["log.dirs"] == "/a/brokers/1007,/b/brokers/1007"
    assert second.settings["metadata.log.dir"] == "/m/brokers/1007"
    assert second.settings["cordoned.log.dirs"] == "/b/brokers/1007"
    assert second.settings["audit.log"] == "/x.1007"


def test_the_cluster_id_on_disk_is_that_of_all_brokers(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    write_meta_properties(OsDisk(), str(directory), MetaProperties("4L6g3nShT-eMCtK--X86sw", 7))
    assert {member.settings["cluster.id"] for member in members(tmp_path)} == {"4L6g3nShT-eMCtK--X86sw"}


def test_advertised_ports_count_on_too(tmp_path: Path) -> None:
    first, second = members(tmp_path, advertised_listeners="PLAINTEXT://broker.example:19092")
    assert first.settings["advertised.listeners"] == "PLAINTEXT://broker.example:19092"
    assert second.settings["advertised.listeners"] == "PLAINTEXT://broker.example:19093"


def test_only_the_first_broker_has_controller_listeners(tmp_path: Path) -> None:
    stated = {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9192",
        "controller_listener_names": "CONTROLLER",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    first, second = members(tmp_path, **stated)
    assert "CONTROLLER" in ports_of(first)
    assert "CONTROLLER" not in ports_of(second)
    voters = voters_of(machine(tmp_path, **stated), {"PLAINTEXT": 9092, "CONTROLLER": 9192})
    assert voters["controller.quorum.voters"] == "7@localhost:9192"


def test_the_first_broker_is_the_voter_unless_others_are_configured(tmp_path: Path) -> None:
    assert voters_of(machine(tmp_path), PORTS)["controller.quorum.voters"] == "7@localhost:9092"
    elsewhere = machine(tmp_path, controller_quorum_voters="7@localhost:9092,8@other:9092")
    assert voters_of(elsewhere, PORTS) == {}


def test_any_free_port_stays_any_free_port(tmp_path: Path) -> None:
    found = members(tmp_path, listeners="PLAINTEXT://localhost:0", http_listener="localhost:0")
    assert {port for member in found for port in ports_of(member).values()} == {0}


def test_listeners_too_close_for_a_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="PLAINTEXT has port 9092 and SSL port 9093") as refused:
        members(tmp_path, listeners="PLAINTEXT://:9092,SSL://:9093", ssl_keystore_location="x", ssl_keystore_type="PEM")
    assert "at least 1 ports free" in refused.value.hint


def test_ids_without_room_and_controllers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="leaves no ids"):
        members(tmp_path, node_id="1000")
    assert len(members(tmp_path, 1, node_id="1000")) == 1
    only_controller = {
        "process_roles": "controller",
        "listeners": "CONTROLLER://:9092",
        "controller_listener_names": "CONTROLLER",
        "controller_quorum_voters": "7@localhost:9092",
    }
    with pytest.raises(UsageError, match="only a controller"):
        members(tmp_path, **only_controller)


def test_the_ready_line_names_all_addresses() -> None:
    line = ready_line([{"bootstrap": "a:1", "http": "a:2"}, {"bootstrap": "a:3", "http": "a:4"}])
    assert line == "READY bootstrap=a:1,a:3 http=a:2,a:4"
