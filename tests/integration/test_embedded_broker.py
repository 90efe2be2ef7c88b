"""`sskafka.Broker` inside of a program, and the pytest plugin made of it."""

import socket
import time
from pathlib import Path

import pytest
from clients import CLIENTS, Client, Message
from wire_connection import Connection, values_batch, values_in

import sskafka
from sskafka.client.adr import AdrClient

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("_ours")

READY_LIMIT_S = 3  # far above the half second that is promised: test machines are busy


def test_ready_when_entered(tmp_path: Path) -> None:
    began = time.monotonic()
    with sskafka.Broker() as broker:
        assert time.monotonic() - began < READY_LIMIT_S
        with Connection(broker.bootstrap_servers) as connection:
            connection.create_topic("topic")
            connection.produce("topic", values_batch(b"value"))
            assert values_in(connection.fetch("topic")) == [b"value"]


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_clients_in_the_same_process(client: Client) -> None:
    with sskafka.Broker() as broker:
        messages = [Message(b"%d" % n, key=b"key") for n in range(100)]
        client.write(broker.bootstrap_servers, "topic", messages, "gzip")
        received = client.read(broker.bootstrap_servers, "topic", 0, 100)
        assert [message.value for message in received] == [message.value for message in messages]


def test_several_in_one_process() -> None:
    with sskafka.Broker() as one, sskafka.Broker() as two:
        assert one.bootstrap_servers != two.bootstrap_servers
        for broker, name in ((one, "first"), (two, "second")):
            with Connection(broker.bootstrap_servers) as connection:
                connection.create_topic(name)
        with Connection(one.bootstrap_servers) as connection:
            assert connection.topic_metadata("second").error_code == 3


def test_settings() -> None:
    with (
        sskafka.Broker({"num.partitions": 4, "auto.create.topics.enable": True}) as broker,
        Connection(broker.bootstrap_servers) as connection,
    ):
        assert len(connection.auto_create_topic("topic").partitions) == 4


def test_the_door_for_adr_0011() -> None:
    with sskafka.Broker({"adr.listener": "127.0.0.1:0", "num.partitions": 2}) as broker:
        assert broker.adr_address is not None
        with AdrClient(broker.adr_address) as client:
            assert [client.produce("topic", b"x").partition for _ in range(3)] == [0, 1, 0]
            assert client.consume("topic", 0).next_offset == 2
    with sskafka.Broker() as broker:
        assert broker.adr_address is None


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broker = sskafka.Broker({"num.partitions": "many"})
    with pytest.raises(Exception, match=r"num\.partitions"):
        broker.start()
    assert list(tmp_path.iterdir()) == []
    broker.stop()  # as a `finally` would do


def test_a_directory_is_kept(tmp_path: Path) -> None:
    for round_ in range(3):
        with sskafka.Broker(directory=str(tmp_path)) as broker, Connection(broker.bootstrap_servers) as connection:
            if round_ == 0:
                connection.create_topic("kept")
            assert connection.produce("kept", values_batch(b"value")).base_offset == round_
    assert (tmp_path / "kept-0").is_dir()


def test_stopping_frees_port_and_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broker = sskafka.Broker()
    broker.start()
    port = int(broker.bootstrap_servers.rsplit(":", 1)[1])
    (directory,) = tmp_path.iterdir()
    assert (directory / "meta.properties").exists()
    broker.stop()
    broker.stop()  # a second time does no harm
    assert list(tmp_path.iterdir()) == []
    with socket.create_server(("127.0.0.1", port)):
        pass
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap_servers


def test_a_port_of_ones_choice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        with pytest.raises(OSError, match=str(port)):
            sskafka.Broker(port=port).start()
    with sskafka.Broker(port=port) as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"


def test_plugin_fixture(sskafka_broker: sskafka.Broker) -> None:
    with Connection(sskafka_broker.bootstrap_servers) as connection:
        connection.create_topic("topic")
        assert connection.produce("topic", values_batch(b"value")).base_offset == 0


def test_plugin_in_a_project_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        import pytest


        @pytest.fixture
        def sskafka_settings():
            return {"num.partitions": 3}


        def test_broker(sskafka_broker):
            host, port = sskafka_broker.bootstrap_servers.split(":")
            socket.create_connection((host, int(port))).close()


        def test_session_broker(sskafka_session_broker):
            assert sskafka_session_broker.bootstrap_servers
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-W", "error").assert_outcomes(passed=2)
