"""A client whose addresses all refuse connections fails within a second: nobody has to wait for a wrong port."""

import socket
import time
from collections.abc import Callable

import pytest

import sskafka
from sskafka.client.errors import NobodyListensError


def refused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def produce(bootstrap: str) -> None:
    with sskafka.Producer(bootstrap) as producer:
        producer.send("orders", "key", "value")


def subscribe(bootstrap: str) -> None:
    with sskafka.Consumer(bootstrap) as consumer:
        consumer.subscribe("orders")
        consumer.poll(1)


@pytest.mark.parametrize("use", [produce, subscribe])
def test_a_refused_port_fails_soon(use: Callable[[str], None]) -> None:
    began = time.monotonic()
    with pytest.raises(NobodyListensError, match="connection refused"):
        use(f"127.0.0.1:{refused_port()}")
    assert time.monotonic() - began < 10, "the deadline of a call is 60 s"
