"""Check whether a broker is up, with raw bytes and without a client library.

    Metadata v1 request     size:4 key:2(3) version:2(1) correlation:4 client:2(-1) topics:4(0)
    Metadata v1 response    size:4 correlation:4 brokers:4 ...

A port may accept connections before its broker has joined the cluster, so two times are measured: until the first
connection, and until the first Metadata response that contains a broker.
"""

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

POLL_SECONDS = 0.002
ANSWER_SECONDS_MAX = 5.0
METADATA_REQUEST = struct.pack(">ihhihi", 14, 3, 1, 7, -1, 0)


class NotReadyError(Exception):
    """The broker exited, or was not ready in time."""


@dataclass(frozen=True, slots=True)
class Startup:
    """Seconds from the start of the process."""

    port_open_seconds: float
    ready_seconds: float


def wait_until_ready(
    host: str, port: int, started_at: float, alive: Callable[[], bool], seconds_max: float = 60.0, brokers: int = 1
) -> Startup:
    """Wait until the broker knows of `brokers` brokers; `started_at` is a time of the monotonic clock."""
    port_open_at: float | None = None
    while time.monotonic() < started_at + seconds_max:
        if not alive():
            raise NotReadyError("the broker exited during startup")
        if (connection := _connect(host, port)) is not None:
            port_open_at = port_open_at or time.monotonic()
            with connection:
                if _broker_count(connection) >= brokers:
                    return Startup(port_open_at - started_at, time.monotonic() - started_at)
        time.sleep(POLL_SECONDS)
    raise NotReadyError(f"{host}:{port} was not ready within {seconds_max} s")


def _connect(host: str, port: int) -> socket.socket | None:
    try:
        return socket.create_connection((host, port), timeout=ANSWER_SECONDS_MAX)
    except OSError:
        return None


def _broker_count(connection: socket.socket) -> int:
    """Return the number of brokers in the Metadata response, or 0 for any invalid response."""
    try:
        connection.sendall(METADATA_REQUEST)
        head = connection.recv(12, socket.MSG_WAITALL)
    except OSError:
        return 0
    return int(struct.unpack_from(">i", head, 8)[0]) if len(head) == 12 else 0
