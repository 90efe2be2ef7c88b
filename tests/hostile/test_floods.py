"""Clients that send thousands of requests without waiting for answers: others get their turn in between."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Self

import pytest
from scene import MEGABYTE, Scene

from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

FLOOD_BYTES = 2 * MEGABYTE
NEWCOMER_S_MAX = 1.0


def framed(message: object, version: int) -> bytes:
    content = encode_request_header(message.SCHEMA.key, version, 7, "flood") + encode(message, version)
    return struct.pack(">i", len(content)) + content


METADATA = framed(MetadataRequest(topics=[MetadataRequestTopic(name="polite")] * 5), 12)
API_VERSIONS = framed(ApiVersionsRequest(), 3)


class Flood:
    """Connections that write the same request again and again and throw the answers away, until they are closed."""

    def __init__(self, bootstrap: str, request: bytes, connections: int) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._blob = request * (FLOOD_BYTES // len(request))
        self._sockets = [socket.create_connection((host, int(port))) for _ in range(connections)]
        work = [(target, item) for item in self._sockets for target in (self._write, self._read)]
        self._threads = [threading.Thread(target=target, args=(item,)) for target, item in work]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for item in self._sockets:
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for item in self._sockets:
            item.close()

    def _write(self, item: socket.socket) -> None:
        with suppress(OSError):
            while True:
                item.sendall(self._blob)

    def _read(self, item: socket.socket) -> None:
        room = bytearray(256 * 1024)
        with suppress(OSError):
            while item.recv_into(room):
                pass


def newcomer_s(scene: Scene) -> float:
    """How long a client that connects now waits for its first answer."""
    began = time.perf_counter()
    with scene.connect() as connection:
        connection.call(ApiVersionsRequest(), 3)
    return time.perf_counter() - began


@pytest.mark.parametrize("connections", [1, 20])
@pytest.mark.parametrize("request_frame", [METADATA, API_VERSIONS], ids=["metadata", "api-versions"])
def test_a_flood_of_requests_leaves_room_for_others(
    start_scene: Callable[..., Scene], request_frame: bytes, connections: int
) -> None:
    scene = start_scene()
    with Flood(scene.bootstrap, request_frame, connections):
        time.sleep(1)  # the flood runs meanwhile: there is nothing to wait for
        waits = [newcomer_s(scene) for _ in range(5)]
        scene.check(rss_growth_bytes_max=100 * MEGABYTE)
    assert max(waits) < NEWCOMER_S_MAX


@pytest.mark.long_attack
def test_a_hundred_floods_of_a_minute(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with ExitStack() as floods:
        for request in (METADATA, API_VERSIONS):
            floods.enter_context(Flood(scene.bootstrap, request, 50))
        waits = []
        stop = time.monotonic() + 60
        while time.monotonic() < stop:
            waits.append(newcomer_s(scene))
            time.sleep(0.5)
        scene.check(rss_growth_bytes_max=200 * MEGABYTE)
    assert max(waits) < 2 * NEWCOMER_S_MAX
