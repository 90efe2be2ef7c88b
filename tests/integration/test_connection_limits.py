"""Limits of connections: idle ones end, too many are refused, slow readers do not fill the broker's memory."""

import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from waiting import wait_until
from wire_connection import Connection, fetch_request, values_batch, values_in

from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sskafka.wire.messages.metadata import MetadataRequest

MEGABYTE = 1 << 20
RSS_GROWTH_MAX = 60 * MEGABYTE


def rss_bytes(broker: BrokerProcess) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def open_sockets(broker: BrokerProcess) -> int:
    """A client that does not read learns nothing of the end of its connection; the broker's own table tells."""
    descriptors = Path(f"/proc/{broker.pid}/fd").iterdir()
    return sum(str(path.readlink()).startswith("socket:") for path in descriptors if path.is_symlink())


def is_served(connection: Connection) -> bool:
    return bool(connection.call(MetadataRequest(topics=[]), version=12).brokers)


def is_admitted(broker: BrokerProcess) -> bool:
    with Connection(broker.bootstrap) as connection:
        connection.send(MetadataRequest(topics=[]), version=12)
        return connection.receive_frame() is not None


def test_idle_connections_are_closed(start_broker: StartBroker) -> None:
    broker = start_broker({"connections.max.idle.ms": 1000})
    with Connection(broker.bootstrap) as idle, Connection(broker.bootstrap) as waiting:
        waiting.create_topic("quiet")
        assert is_served(idle)
        waiting.send(fetch_request("quiet", max_wait_ms=4000), version=12)
        began = time.monotonic()
        assert idle.is_closed_by_broker()
        assert time.monotonic() - began > 0.5
        assert values_in(waiting.receive()[1].responses[0].partitions[0]) == []  # waiting is not idling


def test_a_client_that_takes_no_answers_is_idle_too(start_broker: StartBroker) -> None:
    broker = start_broker({"connections.max.idle.ms": 1000})
    with Connection(broker.bootstrap) as stuck:
        stuck.create_topic("large")
        stuck.produce("large", values_batch(bytes(MEGABYTE - 1000)))
        for _ in range(20):
            stuck.send(fetch_request("large", partition_max_bytes=2 * MEGABYTE), version=12)
        before = open_sockets(broker)
        wait_until(lambda: open_sockets(broker) < before, "the broker lets it go")


def test_connections_of_one_address_are_counted(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connections.per.ip": 2})
    with Connection(broker.bootstrap) as first, Connection(broker.bootstrap) as second:
        assert is_served(first)
        assert is_served(second)
        with Connection(broker.bootstrap) as third:
            assert third.is_closed_by_broker()
        first.socket.close()
        wait_until(lambda: is_admitted(broker), "there is room for another one")


def test_requests_above_the_limit_are_refused_unread(start_broker: StartBroker) -> None:
    broker = start_broker({"socket.request.max.bytes": 100_000})
    with Connection(broker.bootstrap) as greedy, Connection(broker.bootstrap) as modest:
        greedy.socket.sendall(struct.pack(">i", 100_001))
        assert greedy.is_closed_by_broker()
        modest.create_topic("small")
        assert modest.produce("small", values_batch(bytes(90_000))).error_code == 0


def test_a_slow_reader_does_not_fill_the_memory(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as slow, Connection(broker.bootstrap) as other:
        slow.create_topic("large")
        for _ in range(2):
            slow.produce("large", values_batch(bytes(MEGABYTE - 1000)))
        before = rss_bytes(broker)
        request = fetch_request("large", partition_max_bytes=2 * MEGABYTE)
        sent = [slow.send(request, version=12) for _ in range(200)]
        for _ in range(20):
            assert is_served(other)
        assert rss_bytes(broker) - before < RSS_GROWTH_MAX
        for correlation_id in sent:
            answered, response = slow.receive()
            assert answered == correlation_id
            assert len(values_in(response.responses[0].partitions[0])) == 2


def test_many_connections(start_broker: StartBroker) -> None:
    broker = start_broker()
    connections = [Connection(broker.bootstrap) for _ in range(300)]
    try:
        for connection in connections:
            connection.send(MetadataRequest(topics=[]), version=12)
        assert all(connection.receive()[1].brokers for connection in connections)
        assert rss_bytes(broker) < 150 * MEGABYTE
    finally:
        for connection in connections:
            connection.socket.close()


def alter_broker(connection: Connection, name: str, value: str, broker: str = "1") -> None:
    resource = AlterConfigsResource(4, broker, [AlterableConfig(name, 0, value)])
    (outcome,) = connection.call(IncrementalAlterConfigsRequest([resource]), version=1).responses
    assert outcome.error_code == 0, outcome.error_message


def test_limits_change_while_the_broker_runs(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as admin:
        alter_broker(admin, "listener.name.plaintext.max.connections", "1")
        wait_until(lambda: not is_admitted(broker), "the listener has no room")
        alter_broker(admin, "listener.name.plaintext.max.connections", "2")
        wait_until(lambda: is_admitted(broker), "the listener has room")
        alter_broker(admin, "max.connections.per.ip.overrides", "127.0.0.1:1")
        wait_until(lambda: not is_admitted(broker), "the address has no room")


@pytest.mark.parametrize("name", ["max.connections.per.ip", "max.connections"])
@pytest.mark.parametrize("entity", ["1", ""], ids=["this broker", "all brokers"])
def test_a_limit_that_was_set_at_run_time_holds_also_after_a_restart(
    start_broker: StartBroker, name: str, entity: str
) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as admin:
        alter_broker(admin, name, "1", entity)
        wait_until(lambda: not is_admitted(broker), "there is room for one connection")
    broker.restart()
    with Connection(broker.bootstrap) as only:
        assert is_served(only)
        assert not is_admitted(broker)
        alter_broker(only, name, "3", entity)
        wait_until(lambda: is_admitted(broker), "there is room for another")


def test_new_connections_beyond_the_rate_wait(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connection.creation.rate": 2})
    began = time.monotonic()
    for _ in range(6):
        assert is_admitted(broker)
    assert time.monotonic() - began > 1  # the first two at once, the others half a second apart


def test_all_listeners_share_the_memory_of_large_requests(tmp_path: Path) -> None:
    """Two requests whose rest does not come use it up together, each at another listener: the older one is closed."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        "queued.max.request.bytes": 3 * MEGABYTE,
        "socket.request.arrival.timeout.ms": 120_000,
    }
    broker = BrokerProcess(tmp_path / "broker", settings)
    try:
        addresses = broker.start().bootstrap.split(",")
        with ExitStack() as stack:
            for address in addresses:
                host, port = address.rsplit(":", 1)
                client = stack.enter_context(socket.create_connection((host, int(port))))
                client.sendall(struct.pack(">ihhih", 4 * MEGABYTE, 0, 9, 1, -1) + bytes(2 * MEGABYTE))
            said = "the memory for requests is used up, and the oldest request arrives too slowly"
            wait_until(lambda: said in broker.log, "the end of the older request")
    finally:
        broker.close()
