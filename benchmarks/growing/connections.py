"""Idle connections to one broker: what one costs, and what requests cost beside them."""

import socket
import struct
import time
from pathlib import Path

from benchmarks.brokers import Broker, BrokerKind
from benchmarks.growing.figures import Row, cpu_s, descriptors, idle_percent, rss_mb, seconds_of
from benchmarks.probe import METADATA_REQUEST
from sskafka.runtime.descriptors import raise_limit

REQUESTS = 3000
SETTLE_S = 1.0
TIMEOUT_S = 60.0


def measure(kind: BrokerKind, directory: Path, count: int) -> Row:
    raise_limit()
    with kind.running(directory, {"max.connections": "100000"}) as broker:
        warm = [connect(broker) for _ in range(10)]
        ask_all(warm, REQUESTS)
        rss_before, descriptors_before, cpu_before = rss_mb(broker), descriptors(broker), cpu_s(broker)
        opened: list[socket.socket] = []
        took = seconds_of(lambda: opened.extend(connect(broker) for _ in range(count)))
        cpu_of_opening = cpu_s(broker) - cpu_before
        time.sleep(SETTLE_S)
        row = {
            "open s (CPU us each)": f"{took:.2f} ({cpu_of_opening / count * 1e6:.0f})",
            "RSS KB a connection": f"{1000 * (rss_mb(broker) - rss_before) / count:.1f}",
            "descriptors a connection": f"{(descriptors(broker) - descriptors_before) / count:.2f}",
            "idle CPU %": f"{idle_percent(broker):.1f}",
            "CPU us a request beside them": f"{cpu_a_request(broker, warm):.0f}",
        }
        for one in (*warm, *opened):
            one.close()
    return row


def connect(broker: Broker) -> socket.socket:
    """Open a connection that has sent a request: a broker may keep less for a connection that never spoke."""
    connection = socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)
    ask(connection)
    return connection


def ask(connection: socket.socket) -> None:
    connection.sendall(METADATA_REQUEST)
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    connection.recv(size, socket.MSG_WAITALL)


def ask_all(connections: list[socket.socket], requests: int) -> None:
    for number in range(requests):
        ask(connections[number % len(connections)])


def cpu_a_request(broker: Broker, connections: list[socket.socket]) -> float:
    before = cpu_s(broker)
    ask_all(connections, REQUESTS)
    return (cpu_s(broker) - before) / REQUESTS * 1e6
