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


def test_the_stock_file_of_apache_kafka_starts_a_broker(start_broker: StartBroker) -> None:
    """What config/server.properties of 4.3.1 sets, on other ports and in another directory."""
    kafka_port, controller_port = free_ports(2)
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    broker = start_broker(
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
            "listeners": f"PLAINTEXT://:{kafka_port},CONTROLLER://:{controller_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": f"PLAINTEXT://localhost:{kafka_port},CONTROLLER://localhost:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": protocols,
            "num.network.threads": 3,
            "num.io.threads": 8,
            "socket.send.buffer.bytes": 102400,
            "socket.receive.buffer.bytes": 102400,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "num.recovery.threads.per.data.dir": 1,
        }
    )
    assert broker.bootstrap == f"localhost:{kafka_port}"
    said = "num.network.threads=3 (from server.properties): accepted, has no effect here, because one event loop"
    assert said in broker.log
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("t")
        assert connection.produce("t", values_batch(b"stock")).error_code == 0
