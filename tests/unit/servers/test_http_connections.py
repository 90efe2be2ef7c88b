"""When HTTP connections are closed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.http import connections as bounds
from sskafka.servers.http.connections import HttpConnections


class FakeProtocol:
    """As uvicorn's: a request begins with a whole line, a body ends with a full stop."""

    def __init__(self) -> None:
        self.cycle: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None: ...

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"POST\n"):
            self.cycle = SimpleNamespace(response_complete=False, more_body=True)
        elif data.startswith(b"GET\n"):
            self.cycle = SimpleNamespace(response_complete=False, more_body=False)
        elif data.endswith(b"."):
            self.cycle.more_body = False

    def on_response_complete(self) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class FakeTransport:
    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


class Lab:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.descriptors = ConnectionDescriptors(1000)
        self.connections = HttpConnections(self.descriptors, lambda: self.now_s)
        self._protocol = self.connections.bounded(FakeProtocol)

    def connect(self, *received: bytes) -> Any:
        protocol = self._protocol()
        self.descriptors.took_one()
        protocol.connection_made(FakeTransport())
        for data in received:
            protocol.data_received(data)
        return protocol

    def is_closed_after(self, protocol: Any, seconds: float) -> bool:
        self.now_s += seconds
        self.connections.close_overdue()
        return bool(protocol.transport.is_aborted)


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.mark.parametrize(
    ("received", "limit_s"),
    [
        ((), bounds.HEADERS_TIMEOUT_S),
        ((b"GE",), bounds.HEADERS_TIMEOUT_S),
        ((b"POST\n",), bounds.BODY_PAUSE_S_MAX),
        ((b"POST\n", b"{"), bounds.BODY_PAUSE_S_MAX),
    ],
)
def test_a_request_has_to_arrive_in_time(lab: Lab, received: tuple[bytes, ...], limit_s: float) -> None:
    protocol = lab.connect(*received)
    assert not lab.is_closed_after(protocol, limit_s)
    assert lab.is_closed_after(protocol, 1)


def test_headers_that_trickle_are_late_too(lab: Lab) -> None:
    protocol = lab.connect()
    for _ in range(int(bounds.HEADERS_TIMEOUT_S)):
        protocol.data_received(b"x")
        assert not lab.is_closed_after(protocol, 1)
    protocol.data_received(b"x")
    assert lab.is_closed_after(protocol, 1)


def test_a_body_that_trickles_is_late_in_the_end(lab: Lab) -> None:
    protocol = lab.connect(b"POST\n")
    for _ in range(int(bounds.BODY_TIMEOUT_S)):
        protocol.data_received(b"x")
        assert not lab.is_closed_after(protocol, 1)
    protocol.data_received(b"x")
    assert lab.is_closed_after(protocol, 1)


def test_a_route_may_take_its_time(lab: Lab) -> None:
    assert not lab.is_closed_after(lab.connect(b"GET\n"), 1000)
    assert not lab.is_closed_after(lab.connect(b"POST\n", b"{}."), 1000)


def test_an_answer_that_nobody_takes_ends_the_connection(lab: Lab) -> None:
    protocol = lab.connect(b"GET\n")
    protocol.pause_writing()
    assert not lab.is_closed_after(protocol, bounds.ANSWER_PAUSE_S_MAX)
    protocol.resume_writing()
    protocol.pause_writing()
    assert not lab.is_closed_after(protocol, bounds.ANSWER_PAUSE_S_MAX)
    assert lab.is_closed_after(protocol, 1)


def test_a_kept_connection_may_be_idle_between_requests(lab: Lab) -> None:
    protocol = lab.connect(b"GET\n")
    protocol.cycle.response_complete = True
    protocol.on_response_complete()
    assert not lab.is_closed_after(protocol, 60), "uvicorn's keep-alive timeout ends it"
    protocol.data_received(b"GE")
    assert not lab.is_closed_after(protocol, bounds.HEADERS_TIMEOUT_S)
    assert lab.is_closed_after(protocol, 1)


def test_headers_are_bounded(lab: Lab) -> None:
    protocol = lab.connect(b"x" * bounds.HEADERS_BYTES_MAX)
    assert not protocol.transport.is_aborted
    protocol.data_received(b"x")
    assert protocol.transport.is_aborted


def test_the_oldest_without_a_complete_request_make_room(lab: Lab) -> None:
    running = [lab.connect(b"GET\n"), lab.connect(b"POST\n", b".")]
    old = []
    for _ in range(bounds.CLOSED_AT_ONCE):
        lab.now_s += 0.1
        old.append(lab.connect())
    lab.now_s += 0.1
    new = lab.connect()
    assert lab.connections.close_unfinished()
    assert all(protocol.transport.is_aborted for protocol in old)
    assert not any(protocol.transport.is_aborted for protocol in [*running, new])


def test_nothing_is_closed_where_every_request_is_complete(lab: Lab) -> None:
    lab.connect(b"GET\n")
    assert not lab.connections.close_unfinished()


def test_health_checks_run_beside_too_many_requests(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "REQUESTS_MAX", 2)

    async def scenario() -> list[int]:
        release = asyncio.Event()
        statuses: list[int] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                await release.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        limited = lab.connections.limited(app)

        async def ask(path: str) -> None:
            await limited({"type": "http", "path": path, "method": "GET", "headers": []}, None, send)  # type: ignore[arg-type]

        slow = [asyncio.create_task(ask("/slow")) for _ in range(2)]
        await asyncio.sleep(0)
        await ask("/metrics")
        await ask("/livez")
        release.set()
        await asyncio.gather(*slow)
        await ask("/metrics")
        return statuses

    assert asyncio.run(scenario()) == [503, 200, 200, 200, 200]
