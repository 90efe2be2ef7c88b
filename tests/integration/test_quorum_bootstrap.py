"""A broker that knows only addresses of controllers, not who the voters are."""

from pathlib import Path

from broker_process import StartBroker
from free_ports import free_ports
from wire_connection import Connection, values_batch, values_in

NAMES = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_a_broker_finds_the_quorum_by_its_bootstrap_servers(start_broker: StartBroker, tmp_path: Path) -> None:
    nobody, controller_port, kafka_port = free_ports(3)
    common = {"listener.security.protocol.map": NAMES, "controller.listener.names": "CONTROLLER"}
    controller = {
        **common,
        "process.roles": "controller",
        "node.id": 100,
        "listeners": f"CONTROLLER://127.0.0.1:{controller_port}",
        "controller.quorum.voters": f"100@127.0.0.1:{controller_port}",
    }
    broker = {
        **common,
        "process.roles": "broker",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{kafka_port}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{nobody},127.0.0.1:{controller_port}",
    }
    start_broker(controller, directory=tmp_path / "controller")
    with Connection(start_broker(broker, directory=tmp_path / "broker").bootstrap) as connection:
        connection.create_topic("t")
        assert connection.produce("t", values_batch(b"found")).error_code == 0
        assert values_in(connection.fetch("t")) == [b"found"]
