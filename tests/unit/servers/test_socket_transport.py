"""The transport of connections: on real event loops and sockets, with clients that read late, not at all, or leave."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.selector import Selector
from sskafka.servers.kafka.socket_transport import PARTS_MAX, UNSENT_BYTES_MAX, SocketTransport, StreamProtocol

LARGE = bytes(range(256)) * 40_000  # 10 MB: more than the buffers of two sockets


class Server(StreamProtocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.is_paused = False
        self.resumed = asyncio.Event()
        self.lost = asyncio.Event()
        self.lost_by: Exception | None = None
        self.losses = 0
        self.on_received: Callable[[], None] = lambda: None
        self._buffer = memoryview(bytearray(100))

    def connection_made(self, transport: Any) -> None:
        self.transport: SocketTransport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.losses += 1
        self.lost_by = error
        self.lost.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        self.on_received()

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        self.resumed.set()

    async def has_received(self, data: bytes) -> None:
        while bytes(self.received) != data:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


Scene = Callable[[Server, socket.socket], Coroutine[Any, Any, None]]
Play = Callable[[Scene], None]


@pytest.fixture(params=["uvloop or standard", "standard", "without epoll"])
def play(request: pytest.FixtureRequest) -> Play:
    make_loop = new_event_loop if request.param == "uvloop or standard" else asyncio.new_event_loop

    async def run(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        selector = Selector(loop, uses_epoll=False) if request.param == "without epoll" else Selector(loop)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.settimeout(10)
        server = Server()
        SocketTransport(ours, server, selector, loop).start()
        with theirs:
            await scene(server, theirs)
        server.transport.abort()
        await server.lost.wait()
        assert server.losses == 1
        selector.close()

    def play(scene: Scene) -> None:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(asyncio.wait_for(run(scene), 30))

    return play


def read_all(client: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        received += client.recv(count - len(received))
    return bytes(received)


def test_what_arrives_is_read_in_pieces_as_large_as_the_buffer(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        client.sendall(LARGE[:1050])
        await server.has_received(LARGE[:1050])

    play(scene)


def test_a_small_response_is_sent_before_the_loop_turns(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        client.setblocking(False)
        server.transport.write(b"one")
        assert client.recv(100) == b"one"
        server.transport.writelines([b"two", memoryview(b"three")])
        assert client.recv(100) == b"twothree"

    play(scene)


@pytest.mark.parametrize("parts", [[LARGE], [LARGE[:7], LARGE, LARGE[:100]], [b"ab"] * (3 * PARTS_MAX)], ids=len)
def test_order_holds_when_the_socket_is_full(play: Play, parts: list[bytes]) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        for part in parts:
            server.transport.write(part)
        server.transport.writelines(parts)
        server.transport.write(b"last")
        expected = b"".join([*parts, *parts, b"last"])
        assert await asyncio.to_thread(read_all, client, len(expected)) == expected
        client.sendall(b"more")
        await server.has_received(b"more")

    play(scene)


def test_a_client_that_does_not_read_pauses_the_connection(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.write(LARGE)
        assert server.is_paused
        assert await asyncio.to_thread(read_all, client, len(LARGE) - UNSENT_BYTES_MAX // 8)
        await server.resumed.wait()
        assert not server.is_paused

    play(scene)


def test_nothing_is_read_while_reading_is_paused(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.pause_reading()
        client.sendall(b"later")
        await asyncio.sleep(0.02)
        assert not server.received
        server.transport.resume_reading()
        await server.has_received(b"later")

    play(scene)


def test_nothing_more_is_read_after_a_full_buffer_that_paused_reading(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.on_received = server.transport.pause_reading
        client.sendall(LARGE[:250])
        await server.has_received(LARGE[:100])
        await asyncio.sleep(0.02)
        assert len(server.received) == 100
        server.on_received = lambda: None
        server.transport.resume_reading()
        await server.has_received(LARGE[:250])

    play(scene)


def test_close_sends_what_waits_and_reads_nothing_more(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.write(LARGE)
        server.transport.close()
        server.transport.write(b"too late")
        client.sendall(b"unread")
        await asyncio.sleep(0.01)
        assert not server.lost.is_set()
        assert await asyncio.to_thread(read_all, client, len(LARGE)) == LARGE
        await server.lost.wait()
        assert not server.received

    play(scene)


def test_abort_drops_what_waits(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.write(LARGE)
        server.transport.abort()
        assert not server.lost.is_set()  # never inside of a call
        await server.lost.wait()
        assert server.lost_by is None

    play(scene)


def test_a_client_that_closes_ends_the_connection(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        client.sendall(b"last words")
        client.close()
        await server.lost.wait()
        assert (bytes(server.received), server.lost_by) == (b"last words", None)

    play(scene)


def test_a_client_that_leaves_while_responses_wait_ends_the_connection(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.pause_reading()
        server.transport.write(LARGE)
        client.close()
        await server.lost.wait()
        assert isinstance(server.lost_by, OSError)

    play(scene)


def test_a_write_to_a_client_that_is_gone_ends_the_connection(play: Play) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.transport.pause_reading()
        client.close()
        server.transport.write(b"for nobody")
        server.transport.writelines([b"for", b"nobody"])
        await server.lost.wait()

    play(scene)


def test_an_error_in_a_protocol_ends_its_connection_alone(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        def fail() -> None:
            raise struct.error("a mistake")

        server.on_received = fail
        client.sendall(b"x")
        await server.lost.wait()
        assert "a connection failed" in caplog.text

    play(scene)


@pytest.mark.parametrize("waits_for_end", [False, True])
def test_nothing_is_written_to_the_descriptor_of_a_closed_transport(play: Play, waits_for_end: bool) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        accepted = server.transport.get_extra_info("socket")
        assert isinstance(accepted, socket.socket)
        descriptor = accepted.fileno()
        server.transport.abort()
        if waits_for_end:
            await server.lost.wait()
        stranger, peer = socket.socketpair()  # gets the number of the closed descriptor
        with stranger, peer:
            if waits_for_end:
                assert descriptor in {stranger.fileno(), peer.fileno()}
            server.transport.write(b"for somebody else")
            server.transport.writelines([b"for", b"somebody else"])
            server.transport.resume_reading()
            peer.sendall(b"of somebody else")
            await asyncio.sleep(0.01)
            assert not server.received
            peer.setblocking(False)
            with pytest.raises(BlockingIOError):
                peer.recv(100)

    play(scene)
