import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from sskafka.model.counters import ConnectionCounters
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas, CreationRate
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.request_memory import RequestMemory


def quotas(**settings: str) -> ConnectionQuotas:
    return ConnectionQuotas(Settings.resolve({name.replace("_", "."): value for name, value in settings.items()}))


def admitted(quotas: ConnectionQuotas, listener: str, address: str, now_s: float = 0.0) -> bool:
    if quotas.refusal(listener, address) is not None:
        return False
    quotas.admit(listener, address, now_s)
    return True


def test_the_limit_counts_the_connections_of_all_listeners() -> None:
    limited = quotas(max_connections="2")
    assert [admitted(limited, name, "1.1.1.1") for name in ("A", "B", "A")] == [True, True, False]
    limited.forget("B", "1.1.1.1")
    assert admitted(limited, "A", "1.1.1.1")


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    limited = ConnectionQuotas(Settings.resolve({"listener.name.clients.max.connections": "1"}))
    assert [admitted(limited, "CLIENTS", address) for address in ("1.1.1.1", "2.2.2.2")] == [True, False]
    assert admitted(limited, "OTHERS", "1.1.1.1")


def test_single_addresses_may_have_other_limits() -> None:
    limited = quotas(max_connections_per_ip="1", max_connections_per_ip_overrides="2.2.2.2:2,localhost:3")
    assert [admitted(limited, "A", "1.1.1.1") for _ in range(2)] == [True, False]
    assert [admitted(limited, "A", "2.2.2.2") for _ in range(3)] == [True, True, False]
    assert [admitted(limited, "A", "127.0.0.1") for _ in range(4)] == [True, True, True, False]


def test_limits_change_at_run_time() -> None:
    settings = Settings.resolve()
    limited = ConnectionQuotas(settings)
    assert admitted(limited, "A", "1.1.1.1")
    limited.apply(settings.with_dynamic({}, {"max.connections": "1"}))
    assert limited.refusal("A", "1.1.1.1") == "max.connections of 1 is reached"
    limited.apply(settings.with_dynamic({"listener.name.a.max.connections": "1"}, {}))
    assert limited.refusal("A", "1.1.1.1") == "max.connections of 1 is reached on the listener A"
    limited.apply(settings)
    assert limited.refusal("A", "1.1.1.1") is None


def test_connections_beyond_the_rate_wait_for_their_turn() -> None:
    rate = CreationRate()
    assert [rate.wait_s(2, 10.0) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]
    assert rate.wait_s(2, 12.5) == 0.0
    limited = quotas(max_connection_creation_rate="1")
    assert [limited.admit("A", "1.1.1.1", 0.0), limited.admit("B", "1.1.1.1", 0.0)] == [0.0, 1.0]


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", ":5"])
def test_pairs_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match="host:count pairs"):
        Settings.resolve({"max.connections.per.ip.overrides": text})


async def accepted_buffers(limits: ConnectionLimits) -> tuple[int, int]:
    """Send and receive buffer of a socket that a listener with these limits has accepted."""
    with ThreadPoolExecutor(1) as executor:
        shared = RequestMemory(1000), ConnectionCounters(), executor, ConnectionDescriptors(1000)
        listener = Listener("L", {}, AllowAll(), limits, quotas(), *shared)
        bound = socket.create_server(("127.0.0.1", 0))
        await listener.start(bound, 10)
        _, writer = await asyncio.open_connection(*bound.getsockname())
        async with asyncio.timeout(5):
            while not listener.connection_count:  # noqa: ASYNC110
                await asyncio.sleep(0)
        (connection,) = listener._connections
        assert connection._transport is not None
        accepted = connection._transport.get_extra_info("socket")
        assert isinstance(accepted, socket.socket)
        sizes = [accepted.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        writer.close()
        await writer.wait_closed()
        await listener.stop()
        return sizes[0], sizes[1]


def test_sockets_get_the_buffers_that_are_set() -> None:
    """Linux doubles what it is asked for."""
    limits = ConnectionLimits(1000, 1000, 10, send_buffer_bytes=20_000, receive_buffer_bytes=30_000)
    assert asyncio.run(accepted_buffers(limits)) in {(40_000, 60_000), (20_000, 30_000)}
