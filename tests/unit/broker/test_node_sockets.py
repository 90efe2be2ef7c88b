import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sskafka.broker.sockets import HTTP_LISTENER, NodeSockets
from sskafka.client.connection import Address
from sskafka.model.settings import Settings


@contextmanager
def bound(settings: dict[str, str], **inherited: socket.socket) -> Iterator[NodeSockets]:
    sockets = NodeSockets(Settings.resolve({"node.id": "1", **settings}, host_name="machine"), inherited)
    try:
        sockets.bind_listeners()
        yield sockets
    finally:
        sockets.close()


def test_clients_are_told_the_port_that_was_free() -> None:
    with bound({"listeners": "PLAINTEXT://127.0.0.1:0"}) as sockets:
        port = sockets["PLAINTEXT"].getsockname()[1]
        assert port > 0
        assert sockets.bootstrap_servers == f"127.0.0.1:{port}"
        assert sockets.own_kafka_address == Address("127.0.0.1", port)


def test_a_node_that_listens_everywhere_is_reached_by_its_machines_name() -> None:
    with bound({"listeners": "PLAINTEXT://0.0.0.0:0"}) as sockets:
        port = sockets["PLAINTEXT"].getsockname()[1]
        assert sockets.bootstrap_servers == f"machine:{port}"
        assert sockets.own_kafka_address == Address("localhost", port)


def test_sockets_that_were_bound_before_are_taken_over_and_closed() -> None:
    earlier = socket.create_server(("127.0.0.1", 0))
    with bound({"listeners": "PLAINTEXT://127.0.0.1:0"}, PLAINTEXT=earlier) as sockets:
        assert sockets["PLAINTEXT"] is earlier
    assert earlier.fileno() == -1


def test_a_listener_that_is_not_configured_is_not_opened() -> None:
    with bound({"listeners": "PLAINTEXT://127.0.0.1:0"}) as sockets:
        assert sockets.server_socket(HTTP_LISTENER) is None


def test_what_was_bound_is_given_back_when_a_later_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        listeners = f"A://127.0.0.1:0,B://127.0.0.1:{taken}"
        names = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT", "inter.broker.listener.name": "A"}
        sockets = NodeSockets(Settings.resolve({"node.id": "1", "listeners": listeners, **names}), {})
        with pytest.raises(OSError, match=f"port {taken} is taken"):
            sockets.bind_listeners()
        first = sockets["A"]
        sockets.close()
        assert first.fileno() == -1
