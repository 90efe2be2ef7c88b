"""Silent, slow and unread HTTP connections: health checks are answered beside them, and they end by themselves."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from broker_process import BrokerProcess, StartBroker
from waiting import wait_until

HTTP = {"http.listener": "127.0.0.1:0"}
CONNECTIONS = 2100  # more than the HTTP server keeps
LIVEZ_S_MAX = 30.0  # machines that test are busy; without the bounds it fails for more than a minute

SILENT = b""
HEADERS_BEGUN = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY_BEGUN = b"POST /admin/v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


@contextmanager
def slow_connections(broker: BrokerProcess, count: int, beginning: bytes) -> Iterator[list[socket.socket]]:
    host, port = broker.http.rsplit(":", 1)
    with ExitStack() as cleanup:
        opened = []
        for _ in range(count):
            opened.append(cleanup.enter_context(socket.create_connection((host, int(port)), 10)))
            opened[-1].sendall(beginning)
        yield opened


def livez_seconds(broker: BrokerProcess) -> float:
    began = time.monotonic()
    assert httpx.get(f"http://{broker.http}/livez", trust_env=False, timeout=2 * LIVEZ_S_MAX).json() == {
        "status": "alive"
    }
    return time.monotonic() - began


@pytest.mark.parametrize("beginning", [SILENT, HEADERS_BEGUN, BODY_BEGUN], ids=["silent", "headers", "body"])
def test_health_is_answered_beside_many_slow_connections(start_broker: StartBroker, beginning: bytes) -> None:
    broker = start_broker(HTTP)
    with slow_connections(broker, CONNECTIONS, beginning):
        for _ in range(2):
            assert livez_seconds(broker) < LIVEZ_S_MAX
    assert livez_seconds(broker) < LIVEZ_S_MAX


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_connections_without_a_request_are_closed(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    with slow_connections(broker, 3, SILENT) as silent, slow_connections(broker, 3, HEADERS_BEGUN) as slow:
        wait_until(lambda: all(map(is_closed, [*silent, *slow])), "the server closes them", timeout_s=30)


def test_headers_are_bounded(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    with slow_connections(broker, 1, HEADERS_BEGUN) as (connection,):

        def is_refused() -> bool:
            try:
                connection.sendall(b"x" * 1000 + b"\r\nX-More: ")
            except ConnectionError:
                return True
            return False

        wait_until(is_refused, "the server closes the connection")
    assert livez_seconds(broker) < LIVEZ_S_MAX


def test_bodies_with_millions_of_elements_are_refused(start_broker: StartBroker) -> None:
    """To parse one of them took seconds, in which no health check was answered."""
    broker = start_broker(HTTP)
    body = b"[" + b"[]," * 5_000_000 + b"1]"
    answer = httpx.post(f"http://{broker.http}/data/v1/produce", content=body, trust_env=False, timeout=60)
    assert answer.status_code == 413
    assert "elements" in answer.json()["detail"]
