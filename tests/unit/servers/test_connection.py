"""One connection with a transport made of lists: framing, order of responses, back-pressure, how connections end."""

import asyncio
import gc
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import pytest

from sskafka.model.acl import AclOperation, AuthorizerNotReadyError, ResourceType
from sskafka.model.counters import ConnectionCounters, RequestCounters
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.runtime.selector import Selector
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.connection import LARGE_FRAME_BEGINNING_BYTES, LARGE_FRAME_BYTES, Connection
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.servers.kafka.listener import RECEIVE_BUFFER_BYTES, ConnectionLimits, Listener
from sskafka.servers.kafka.outgoing import WRITE_CHUNK_BYTES
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.wire.apis import Api, ApiKey, Listeners
from sskafka.wire.codec import decode
from sskafka.wire.header import decode_response_header
from sskafka.wire.messages.describe_cluster import DescribeClusterResponse

ECHO, PARK, ASK = 0, 1, 60


@pytest.fixture(autouse=True)
def _no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine any request may take longer than a slice."""
    monkeypatch.setattr("sskafka.servers.kafka.connection.SLICE_NS", 10**12)


class FakeTransport(asyncio.Transport):
    def __init__(self, peer: object = ("127.0.0.1", 5)) -> None:
        super().__init__()
        self.peer = peer
        self.written = bytearray()
        self.writes = 0
        self.reading = True
        self.closed = False
        self.on_write: Callable[[], None] | None = None

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self.peer if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.writes += 1
        if self.on_write is not None:
            self.on_write()

    def writelines(self, list_of_data: object) -> None:
        self.write(b"".join(list_of_data))  # type: ignore[call-overload]

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


class Harness:
    """A listener with two APIs: one echoes its body, the other parks until the test completes it."""

    def __init__(
        self,
        *,
        parked_max: int = 100,
        memory_bytes: int = 10_000_000,
        authorizer: object = None,
        idle_ms_max: int = 1000,
    ) -> None:
        self.parked: list[tuple[ResponseSlot, bytes]] = []
        apis = {
            ECHO: _api(ECHO, "Echo", self._echo),
            PARK: _api(PARK, "Park", self._park),
            ASK: _api(ASK, "Ask", self._echo, AclOperation.DESCRIBE),
        }
        limits = ConnectionLimits(2_000_000, idle_ms_max, parked_max)
        self.loop = _InstantLoop()
        self.memory = RequestMemory(memory_bytes)
        self.listener = Listener(
            "L",
            apis,
            authorizer or AllowAll(),  # type: ignore[arg-type]
            limits,
            ConnectionQuotas(Settings.resolve({"max.connections": "10", "max.connections.per.ip": "10"})),
            self.memory,
            ConnectionCounters(),
            ThreadPoolExecutor(1),
            ConnectionDescriptors(1000),
            selector=Selector(self.loop, uses_epoll=False),  # type: ignore[arg-type]
        )
        self.listener._loop = self.loop  # type: ignore[assignment]
        self.listener.turns.start(self.loop)  # type: ignore[arg-type]

    def connect(self) -> tuple[Connection, FakeTransport]:
        connection, transport = Connection(self.listener), FakeTransport()
        connection.connection_made(transport)
        return connection, transport

    def _echo(self, request: Request) -> Response:
        body = bytes(request.frame[request.position :])
        return struct.pack(">ii", 4 + len(body), request.correlation_id) + body

    def _park(self, request: Request) -> None:
        body = bytes(request.frame[request.position :])
        answer = struct.pack(">ii", 4 + len(body), request.correlation_id) + body
        self.parked.append((request.park(), answer))

    def complete(self, number: int) -> None:
        slot, answer = self.parked[number]
        slot.complete(answer)


class _InstantLoop:
    """The next turn comes at once, but not in the middle of one, and not while `is_held`."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_turning = False
        self.is_held = False
        self.turns = 0

    def time(self) -> float:
        return 0.0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._due.append(callback)
        if not self._is_turning and not self.is_held:
            self.run()

    def run(self, turns: int = 1000) -> None:
        """Take turns until nothing is left to do."""
        while self._due and turns:
            turns -= 1
            self.turns += 1
            callback = self._due.popleft()
            with self.turn():
                callback()

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._is_turning = True
        yield
        self._is_turning = False

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        pass  # seconds go by when the test says so


def _api(
    key: int, name: str, handle: Callable[[Request], Response | None], operation: AclOperation | None = None
) -> ServedApi:
    api = Api(ApiKey(key), 0, 5, 100, Listeners.BROKER, "", operation)
    return ServedApi(api, handle, RequestCounters(name))


def frame(key: int, correlation_id: int, body: bytes = b"", version: int = 0) -> bytes:
    content = struct.pack(">hhih", key, version, correlation_id, 2) + b"me" + body
    return struct.pack(">i", len(content)) + content


def answer(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def feed(connection: Connection, data: bytes) -> None:
    """As a transport does: ask for room, fill it, say how much."""
    loop = connection._listener._loop
    assert isinstance(loop, _InstantLoop)
    while data and not connection.closed:
        room = connection.get_buffer(-1)
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        data = data[taken:]
        with loop.turn():
            connection.buffer_updated(taken)
        if not loop.is_held:
            loop.run()


def test_every_frame_in_the_buffer_is_answered_in_one_write() -> None:
    connection, transport = Harness().connect()
    feed(connection, frame(ECHO, 1, b"a") + frame(ECHO, 2, b"b") + frame(ECHO, 3))
    assert bytes(transport.written) == answer(1, b"a") + answer(2, b"b") + answer(3)
    assert transport.writes == 1


def test_the_time_that_a_request_is_parked_is_counted_apart() -> None:
    harness = Harness()
    connection, _ = harness.connect()
    feed(connection, frame(ECHO, 1) + frame(PARK, 2))
    parked = harness.listener.apis[PARK].counters
    assert sum(parked.parked_remote.latency_buckets) == 0, "it still waits"
    harness.complete(0)
    assert parked.parked_local.total_time_ns + parked.parked_remote.total_time_ns == parked.parked_total.total_time_ns
    assert sum(parked.parked_remote.latency_buckets) == 1
    assert sum(harness.listener.apis[ECHO].counters.parked_total.latency_buckets) == 0


def test_an_answered_request_is_freed_without_the_garbage_collector() -> None:
    """The parked operation has the slot, and the slot has the operation's method to call when the client leaves."""

    class Operation:
        def __init__(self, slot: ResponseSlot) -> None:
            self.slot = slot

        def cancel(self) -> None: ...

    harness = Harness()
    connection, _ = harness.connect()
    feed(connection, frame(PARK, 1))
    operation = Operation(harness.parked[0][0])
    operation.slot.on_abandoned = operation.cancel
    harness.complete(0)
    freed = weakref.ref(operation)
    gc.disable()
    try:
        del operation
        harness.parked.clear()
        assert freed() is None
    finally:
        gc.enable()


def test_the_time_for_which_a_quota_mutes_a_connection_is_counted() -> None:
    harness = Harness()
    connection, _ = harness.connect()
    request = Request(connection, 0, 1, "me", memoryview(b""), 0, 0, ECHO)

    async def mute() -> None:
        request.mute(250)

    asyncio.run(mute())
    assert harness.listener.apis[ECHO].counters.throttled.total_time_ns == 250_000_000


def test_frames_may_arrive_cut_at_any_byte() -> None:
    stream = frame(ECHO, 1, b"hello") + frame(ECHO, 2, b"world")
    for cut in range(1, len(stream)):
        connection, transport = Harness().connect()
        feed(connection, stream[:cut])
        feed(connection, stream[cut:])
        assert bytes(transport.written) == answer(1, b"hello") + answer(2, b"world"), cut


def test_two_connections_share_the_buffer_without_mixing_their_tails() -> None:
    harness = Harness()
    (one, out_one), (two, out_two) = harness.connect(), harness.connect()
    first, second = frame(ECHO, 1, b"1" * 50), frame(ECHO, 2, b"2" * 50)
    feed(one, first[:20])
    feed(two, second[:30])
    feed(one, first[20:])
    feed(two, second[30:])
    assert bytes(out_one.written) == answer(1, b"1" * 50)
    assert bytes(out_two.written) == answer(2, b"2" * 50)


@pytest.mark.parametrize("size", [LARGE_FRAME_BYTES, LARGE_FRAME_BYTES + 1, RECEIVE_BUFFER_BYTES, 1_500_000])
def test_large_frames_get_a_buffer_of_their_own_and_return_it(size: int) -> None:
    harness = Harness()
    connection, transport = harness.connect()
    body = bytes(range(256)) * (size // 256)
    feed(connection, frame(ECHO, 1) + frame(ECHO, 7, body) + frame(ECHO, 8))
    assert bytes(transport.written) == answer(1) + answer(7, body) + answer(8)
    assert harness.memory.held_bytes == 0


def test_the_rest_of_a_large_frame_after_another_is_received_without_a_copy() -> None:
    connection, transport = Harness().connect()
    small, large = frame(ECHO, 1, bytes(100_000)), frame(ECHO, 2, b"x" * 1_000_000)
    whole = len(connection.get_buffer(-1))
    feed(connection, large)
    assert LARGE_FRAME_BEGINNING_BYTES <= len(connection.get_buffer(-1)) < LARGE_FRAME_BYTES < whole
    feed(connection, large + small + small)
    assert len(connection.get_buffer(-1)) < whole
    feed(connection, frame(ECHO, 3))
    assert len(connection.get_buffer(-1)) == whole
    large_answer, small_answer = answer(2, b"x" * 1_000_000), answer(1, bytes(100_000))
    assert bytes(transport.written) == large_answer * 2 + small_answer * 2 + answer(3)


def test_a_large_frame_waits_for_memory_and_nothing_resumes_it_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.servers.kafka.request_memory.RESERVE_BYTES", 0)
    harness = Harness(memory_bytes=400_000)
    (one, out_one), (two, out_two) = harness.connect(), harness.connect()
    large = frame(ECHO, 1, b"x" * 500_000)
    feed(one, large[:300_000])
    feed(two, frame(PARK, 5))
    feed(two, large[:200_000])
    assert not out_two.reading
    harness.complete(0)
    two.resume_writing()
    assert not out_two.reading
    feed(one, large[300_000:])
    assert out_two.reading
    feed(two, large[200_000:])
    assert bytes(out_one.written) == answer(1, b"x" * 500_000)
    assert bytes(out_two.written) == answer(5) + answer(1, b"x" * 500_000)


def test_announced_bytes_take_nothing_from_others() -> None:
    harness = Harness(memory_bytes=400_000)
    for _ in range(5):
        feed(harness.connect()[0], frame(ECHO, 1, bytes(1_900_000))[:100])
    connection, transport = harness.connect()
    feed(connection, frame(ECHO, 7, bytes(300_000)))
    assert bytes(transport.written) == answer(7, bytes(300_000))


@pytest.mark.parametrize("arrived_bytes", [2, 100, 30_000, 300_000])
def test_a_request_whose_rest_stays_out_ends_its_connection(arrived_bytes: int) -> None:
    harness = Harness(idle_ms_max=-1)
    (silent, out_silent), (idle, out_idle) = harness.connect(), harness.connect()
    feed(idle, frame(ECHO, 1))
    feed(silent, frame(ECHO, 1, bytes(1_000_000))[:arrived_bytes])
    for _ in range(30):
        harness.listener._reap_idle()
    assert not out_silent.closed
    feed(silent, b"x")
    for _ in range(31):
        harness.listener._reap_idle()
    assert out_silent.closed
    silent.connection_lost(None)
    assert harness.memory.held_bytes == 0
    assert not out_idle.closed


def test_a_connection_with_many_requests_lets_others_go_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.servers.kafka.connection.SLICE_NS", SLICE_NS)
    harness = Harness()
    order: list[bytes] = []

    def slow_echo(request: Request) -> Response:
        stop_ns = time.perf_counter_ns() + SLICE_NS // 4
        while time.perf_counter_ns() < stop_ns:
            pass
        order.append(bytes(request.frame[request.position :]))
        return answer(request.correlation_id)

    harness.listener.apis[ECHO] = _api(ECHO, "Echo", slow_echo)
    floods = [harness.connect() for _ in range(3)]
    harness.loop.is_held = True
    for number, (connection, _) in enumerate(floods):
        feed(connection, b"".join(frame(ECHO, count, b"%d" % number) for count in range(100)))
    assert len(order) < 20, "each has a slice"
    newcomer, transport = harness.connect()
    feed(newcomer, frame(ECHO, 1, b"new"))
    assert bytes(transport.written) == answer(1), "a single request is handled at once"
    harness.loop.run()
    assert harness.loop.turns > 10
    for number, (_, transport) in enumerate(floods):
        assert bytes(transport.written) == b"".join(map(answer, range(100)))
        assert transport.reading
        places = [place for place, item in enumerate(order) if item == b"%d" % number]
        assert max(after - before for before, after in pairwise(places)) < 40, "nobody waits for long"


def test_answers_leave_in_the_order_of_requests_even_when_an_early_one_waits() -> None:
    harness = Harness()
    connection, transport = harness.connect()
    feed(connection, frame(PARK, 1) + frame(ECHO, 2) + frame(PARK, 3) + frame(ECHO, 4))
    assert transport.written == b""
    harness.complete(1)
    assert transport.written == b""
    harness.complete(0)
    assert bytes(transport.written) == answer(1) + answer(2) + answer(3) + answer(4)


def test_a_parked_request_has_lost_its_frame() -> None:
    harness = Harness()
    connection, _ = harness.connect()
    kept: list[Request] = []
    harness.listener.apis[PARK] = _api(PARK, "Park", lambda request: (kept.append(request), request.park(), None)[-1])
    feed(connection, frame(PARK, 1, b"body"))
    assert len(kept[0].frame) == 0


def test_too_many_parked_answers_stop_the_reading_until_some_have_left() -> None:
    harness = Harness(parked_max=2)
    connection, transport = harness.connect()
    feed(connection, frame(PARK, 1) + frame(PARK, 2))
    assert not transport.reading
    harness.complete(0)
    assert transport.reading


def test_requests_beyond_the_parked_ones_wait_even_when_they_came_in_with_them() -> None:
    harness = Harness(parked_max=2)
    connection, transport = harness.connect()
    feed(connection, b"".join(frame(PARK, number) for number in range(5)) + frame(ECHO, 5, b"last")[:-2])
    assert len(harness.parked) == 2
    harness.complete(0)
    assert len(harness.parked) == 3
    for number in range(1, 5):
        harness.complete(number)
    assert transport.reading
    feed(connection, b"st")
    assert bytes(transport.written) == b"".join(map(answer, range(5))) + answer(5, b"last")


def test_answers_behind_a_parked_one_are_counted_too() -> None:
    harness = Harness(parked_max=3)
    connection, transport = harness.connect()
    feed(connection, frame(PARK, 0) + b"".join(frame(ECHO, number) for number in range(1, 9)))
    assert not transport.reading
    assert harness.listener.apis[ECHO].counters.requests == 2
    harness.complete(0)
    assert bytes(transport.written) == b"".join(map(answer, range(9)))


def test_small_requests_with_large_answers_do_not_fill_the_memory() -> None:
    harness = Harness()
    connection, transport = harness.connect()
    large = bytes(WRITE_CHUNK_BYTES // 2)
    harness.listener.apis[ECHO] = _api(ECHO, "Echo", lambda request: answer(request.correlation_id, large))
    transport.on_write = connection.pause_writing
    feed(connection, b"".join(frame(ECHO, number) for number in range(10)))
    assert harness.listener.apis[ECHO].counters.requests == 2
    transport.on_write = None
    connection.resume_writing()
    assert bytes(transport.written) == b"".join(answer(number, large) for number in range(10))
    assert transport.reading


def test_a_full_socket_stops_reading_and_writing_until_it_drains() -> None:
    harness = Harness()
    connection, transport = harness.connect()
    feed(connection, frame(PARK, 1))
    connection.pause_writing()
    assert not transport.reading
    harness.complete(0)
    assert transport.written == b""
    connection.resume_writing()
    assert bytes(transport.written) == answer(1)
    assert transport.reading


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 3),
        struct.pack(">i", 2_000_001),
        struct.pack(">i", 8) + struct.pack(">hhi", ECHO, 0, 9),
        struct.pack(">i", 12) + struct.pack(">hhih", ECHO, 0, 9, 2) + b"\xff\xff",
        frame(99, 9),
        frame(ECHO, 9, version=6),
    ],
)
def test_a_bad_frame_ends_its_connection_after_the_answers_before_it(bad: bytes) -> None:
    harness = Harness()
    (connection, transport), (other, out_other) = harness.connect(), harness.connect()
    feed(connection, frame(ECHO, 1) + bad)
    assert bytes(transport.written) == answer(1)
    assert transport.closed
    feed(other, frame(ECHO, 2))
    assert bytes(out_other.written) == answer(2)


def test_requests_behind_one_that_ended_the_connection_are_not_handled() -> None:
    """A producer that wants no answers learns from the end of its connection that nothing from there on was taken."""
    harness = Harness()
    connection, _ = harness.connect()

    def fail(request: Request) -> None:
        request.connection.close()

    harness.listener.apis[PARK] = _api(PARK, "Park", fail)
    feed(connection, frame(ECHO, 1) + frame(PARK, 2) + frame(ECHO, 3))
    assert harness.listener.apis[ECHO].counters.requests == 1


def test_whoever_waits_hears_that_the_client_is_gone() -> None:
    harness = Harness()
    connection, transport = harness.connect()
    feed(connection, frame(PARK, 1) + frame(ECHO, 2))
    gone: list[bool] = []
    harness.parked[0][0].on_abandoned = lambda: gone.append(True)
    connection.connection_lost(None)
    assert gone == [True]
    harness.complete(0)
    assert transport.written == b""
    assert harness.listener.connection_count == 0


def test_a_handler_that_fails_unexpectedly_ends_only_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()

    def explode(request: Request) -> Response:
        raise ZeroDivisionError("a bug")

    harness.listener.apis[ECHO] = _api(ECHO, "Echo", explode)
    connection, transport = harness.connect()
    feed(connection, frame(ECHO, 1))
    assert transport.closed
    assert "a bug" in caplog.text


@pytest.mark.parametrize(("idle_ms_max", "seconds"), [(1000, 2), (3000, 4), (-1, None)])
def test_idle_connections_are_closed(idle_ms_max: int, seconds: int | None) -> None:
    harness = Harness(idle_ms_max=idle_ms_max)
    connection, transport = harness.connect()
    feed(connection, frame(ECHO, 1))

    def is_closed_a_second_later() -> bool:
        harness.listener._reap_idle()
        return transport.closed

    assert next((second for second in range(1, 10) if is_closed_a_second_later()), None) == seconds


def test_connections_beyond_the_limit_are_refused() -> None:
    harness = Harness()
    transports = [harness.connect()[1] for _ in range(11)]
    assert [transport.closed for transport in transports] == [False] * 10 + [True]


@pytest.mark.parametrize(
    ("peer", "host", "shown"),
    [
        (("127.0.0.1", 5), "127.0.0.1", "127.0.0.1:5"),
        (("::ffff:127.0.0.1", 5, 0, 0), "::ffff:127.0.0.1", "::ffff:127.0.0.1:5"),  # on a listener for both
        ("", "", "local"),  # a Unix socket
        (None, "", "local"),
    ],
)
def test_a_connection_knows_its_peer_of_every_family(peer: object, host: str, shown: str) -> None:
    connection = Connection(Harness().listener)
    connection.connection_made(FakeTransport(peer))
    assert (connection.host, connection.peer) == (host, shown)


class DenyAll:
    def allows(self, context: object, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return False


def test_an_api_on_the_cluster_passes_the_authorizer_before_its_handler_runs() -> None:
    harness = Harness(authorizer=DenyAll())
    harness.listener.apis[ASK] = _api(ASK, "Ask", lambda request: pytest.fail("it ran"), AclOperation.DESCRIBE)
    connection, transport = harness.connect()
    feed(connection, frame(ASK, 1, version=1))
    _, start = decode_response_header(ASK, 1, transport.written, 4)
    refusal = decode(DescribeClusterResponse, 1, transport.written, start)
    assert refusal.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class NotReady(DenyAll):
    def allows(self, context: object, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        raise AuthorizerNotReadyError("the ACLs are not read yet")


def test_before_the_acls_are_read_a_client_is_disconnected_and_may_retry(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(authorizer=NotReady())
    connection, transport = harness.connect()
    with caplog.at_level("INFO"):
        feed(connection, frame(ASK, 1, version=1))
    assert transport.closed
    assert not transport.written
    assert [record.levelname for record in caplog.records] == ["INFO"]
