"""More connections or files than the process has descriptors: the broker serves those it has and loses no directory."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from adr_connection import adr_address
from broker_process import BrokerProcess, StartBroker
from http_client import HttpClient
from waiting import wait_until
from wire_connection import Connection, values_batch

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

CONNECT_TIMEOUT_S = 10
MANY_WAIT = {"socket.listen.backlog.size": 2000}  # the system does not let the attacker wait
NO_MORE = "accepts no more connections"


def with_descriptors(count: int, kind: str = "-n") -> tuple[str, ...]:
    """A wrapper that runs the broker with at most `count` descriptors."""
    return ("sh", "-c", f'ulimit {kind} {count} && exec "$@"', "sh")


@contextmanager
def flood(broker: BrokerProcess, address: str, count: int) -> Iterator[None]:
    """Hold silent connections: `count`, or as many as the broker accepts."""
    host, port = address.rsplit(":", 1)
    with ExitStack() as cleanup:
        for number in range(count):
            cleanup.enter_context(socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S))
            if number % 10 == 0 and NO_MORE in broker.log:
                break
        wait_until(lambda: NO_MORE in broker.log, "the broker stops accepting")
        yield


def open_descriptors(broker: BrokerProcess) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


def is_served(broker: BrokerProcess) -> bool:
    try:
        with Connection(broker.bootstrap) as connection:
            connection.topic_metadata("before")
            return True
    except (AssertionError, OSError):
        return False


@pytest.mark.parametrize("limit", [64, 400, 1024])
def test_connections_leave_descriptors_for_files(start_broker: StartBroker, limit: int) -> None:
    broker = start_broker(MANY_WAIT, wrapper=with_descriptors(limit))
    with Connection(broker.bootstrap) as client:
        client.create_topic("before")
        with flood(broker, broker.bootstrap, limit + 50):
            assert open_descriptors(broker) < limit
            for n in range(3):
                client.create_topic(f"amid-{n}")
                assert client.produce(f"amid-{n}", values_batch(b"x")).error_code == 0
        wait_until(lambda: "accepts connections again" in broker.log, "the broker accepts again")
        assert is_served(broker)
        assert client.produce("before", values_batch(b"x")).error_code == 0
    assert broker.stop() == 0
    assert broker.log.count(NO_MORE) == 1
    assert "Traceback" not in broker.log
    assert "offline" not in broker.log


def test_connections_to_the_adr_port_leave_descriptors_for_files(start_broker: StartBroker) -> None:
    broker = start_broker({**MANY_WAIT, "adr.listener": "127.0.0.1:0"}, wrapper=with_descriptors(200))
    with Connection(broker.bootstrap) as client:
        with flood(broker, adr_address(broker), 250):
            assert "the ADR server accepts no more connections" in broker.log
            client.create_topic("amid")
            assert client.produce("amid", values_batch(b"x")).error_code == 0
        wait_until(lambda: is_served(broker), "there is room for a connection")
    assert broker.stop() == 0
    assert "Traceback" not in broker.log


def test_a_pause_is_in_the_metrics(start_broker: StartBroker) -> None:
    broker = start_broker({**MANY_WAIT, "http.listener": "127.0.0.1:0"}, wrapper=with_descriptors(200))
    http = HttpClient(broker.http)

    def paused() -> str:
        lines = http.http.get("/metrics").text.splitlines()
        (line,) = [line for line in lines if line.startswith('kafka_network_acceptor_paused{listener="PLAINTEXT"}')]
        return line.split()[1]

    assert float(paused()) == 0
    with flood(broker, broker.bootstrap, 250):
        wait_until(lambda: float(paused()) == 1, "the pause is counted")
    wait_until(lambda: float(paused()) == 0, "the pause is over")
    http.close()


def test_silent_connections_make_room_after_a_while(start_broker: StartBroker) -> None:
    broker = start_broker(MANY_WAIT, wrapper=with_descriptors(200))
    with Connection(broker.bootstrap) as client:
        client.create_topic("before")
        with flood(broker, broker.bootstrap, 250):
            wait_until(lambda: is_served(broker), "a client that speaks is served", timeout_s=30)
        assert client.produce("before", values_batch(b"x")).error_code == 0, "it has spoken and stays"


def test_partitions_without_descriptors_open_later(start_broker: StartBroker) -> None:
    broker = start_broker(wrapper=with_descriptors(160))
    with Connection(broker.bootstrap) as client:
        client.create_topic("first", partitions=60)
        wanted = CreatableTopic("second", num_partitions=100, replication_factor=1)
        (created,) = client.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        assert created.error_code == 0

        def errors(topic: str, partitions: int) -> set[int]:
            return {client.fetch(topic, partition=partition).error_code for partition in range(partitions)}

        assert errors("first", 60) == {0}
        assert errors("second", 100) == {0, ErrorCode.KAFKA_STORAGE_ERROR}
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="first")]), version=6)
        wait_until(lambda: errors("second", 100) == {0}, "every partition is open")
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
    assert "lacks descriptors or memory" in broker.log
    assert "is offline: log directory" not in broker.log


def test_the_soft_limit_is_raised(start_broker: StartBroker) -> None:
    broker = start_broker(wrapper=with_descriptors(256, kind="-Sn"))
    limits = Path(f"/proc/{broker.pid}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard != "256"
