"""Clients that announce large requests and do not send them: what is announced takes nothing from others."""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from adr_connection import AdrConnection, adr_address
from scene import MEGABYTE, Scene
from waiting import wait_until
from wire_connection import Connection, values_batch

from sskafka.wire.adr import Failure, Produce, Produced

CLAIM_BYTES = 100_000_000
PRODUCE_S_MAX = 5.0


@contextmanager
def claims(address: str, count: int, beginning: bytes) -> Iterator[list[socket.socket]]:
    """Connections that send the beginning of a request of 100 MB, and then nothing."""
    host, port = address.rsplit(":", 1)
    with ExitStack() as sockets:
        made = [sockets.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(count)]
        for item in made:
            item.sendall(beginning)
        yield made


def produce_s(scene: Scene, size_bytes: int) -> float:
    with scene.connect() as connection:
        began = time.perf_counter()
        assert connection.produce("polite", values_batch(bytes(size_bytes))).error_code == 0
        return time.perf_counter() - began


def is_closed(item: socket.socket) -> bool:
    item.setblocking(False)
    try:
        return item.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("arrived_bytes", [0, 10, 20_000, 200_000])
def test_silent_claims_keep_nobody_waiting(start_scene: Callable[..., Scene], arrived_bytes: int) -> None:
    scene = start_scene({"socket.request.arrival.timeout.ms": 3000})
    beginning = struct.pack(">ihhi", CLAIM_BYTES, 0, 9, 1)[: 4 + arrived_bytes] + bytes(max(0, arrived_bytes - 8))
    with claims(scene.bootstrap, 21, beginning) as sockets:
        assert produce_s(scene, 200_000) < PRODUCE_S_MAX
        wait_until(lambda: all(map(is_closed, sockets)), "the claims are closed")
        scene.check(rss_growth_bytes_max=30 * MEGABYTE)


def test_claims_that_stop_halfway_are_closed_when_others_need_the_memory(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene({"queued.max.request.bytes": 64 * MEGABYTE})
    beginning = struct.pack(">ihhi", CLAIM_BYTES, 0, 9, 1) + bytes(22 * MEGABYTE)
    with claims(scene.bootstrap, 3, beginning):
        assert produce_s(scene, 800_000) < PRODUCE_S_MAX, "small requests use the reserve"
        with scene.connect() as greedy:
            wait_until(lambda: produce_large(greedy), "a large request gets through", timeout_s=20)
        scene.check(rss_growth_bytes_max=150 * MEGABYTE)


def produce_large(connection: Connection) -> bool:
    """A request of 50 MB, which is refused for its size, but only after all of it has arrived."""
    answer = connection.produce("polite", values_batch(bytes(50 * MEGABYTE)))
    return answer.error_code != 0


def test_silent_claims_on_the_adr_port(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene({"adr.listener": "127.0.0.1:0", "socket.request.arrival.timeout.ms": 3000})
    address = adr_address(scene.broker)
    frame = struct.pack(">iB", CLAIM_BYTES, 1)
    with claims(address, 21, frame) as sockets, AdrConnection(address) as connection:
        began = time.perf_counter()
        assert isinstance(connection.ask(Produce("polite", b"k", bytes(900_000))), Produced)
        assert isinstance(connection.ask(Produce("polite", b"k", bytes(2 * MEGABYTE))), Failure), "max.message.bytes"
        assert time.perf_counter() - began < PRODUCE_S_MAX
        wait_until(lambda: all(map(is_closed, sockets)), "the claims are closed")
        scene.check(rss_growth_bytes_max=30 * MEGABYTE)
