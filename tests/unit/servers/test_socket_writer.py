"""Direct writes to sockets: on a real event loop and real sockets, with a client that reads late or not at all."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from sskafka.runtime.event_loop import new_event_loop
from sskafka.servers.kafka.socket_writer import PARTS_MAX, ResponseWriter, SocketWriter, response_writer

LARGE = bytes(range(256)) * 40_000  # 10 MB: more than the buffers of two sockets


class Server(asyncio.Protocol):
    def __init__(self) -> None:
        self.connected = asyncio.Event()
        self.is_paused = False
        self.resumed = asyncio.Event()
        self.lost = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.writer = response_writer(transport)
        self.connected.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.resumed.set()


Scene = Callable[[Server, socket.socket], Coroutine[Any, Any, None]]


def play(scene: Scene, make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.settimeout(10)
        server = Server()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: server, ours)
        with theirs:
            await server.connected.wait()
            await scene(server, theirs)
        server.transport.abort()
        await server.lost.wait()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(asyncio.wait_for(run(), 30))


loops = pytest.mark.parametrize("make_loop", [new_event_loop, asyncio.new_event_loop])


def read_all(client: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        received += client.recv(count - len(received))
    return bytes(received)


@loops
def test_a_small_response_is_sent_before_the_loop_turns(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        client.setblocking(False)
        assert isinstance(server.writer, SocketWriter)
        server.writer.write(b"one")
        assert client.recv(100) == b"one"
        server.writer.writelines([b"two", memoryview(b"three")])
        assert client.recv(100) == b"twothree"

    play(scene, make_loop)


@loops
@pytest.mark.parametrize("parts", [[LARGE], [LARGE[:7], LARGE, LARGE[:100]], [b"ab"] * (3 * PARTS_MAX)], ids=len)
def test_order_holds_when_the_socket_is_full(
    make_loop: Callable[[], asyncio.AbstractEventLoop], parts: list[bytes]
) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        for part in parts:
            server.writer.write(part)
        server.writer.writelines(parts)
        server.writer.write(b"last")
        expected = b"".join([*parts, *parts, b"last"])
        received = await asyncio.to_thread(read_all, client, len(expected))
        assert received == expected

    play(scene, make_loop)


@loops
def test_a_client_that_does_not_read_pauses_the_connection(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        server.writer.write(LARGE)
        assert server.is_paused
        assert await asyncio.to_thread(read_all, client, len(LARGE)) == LARGE
        await server.resumed.wait()

    play(scene, make_loop)


@loops
@pytest.mark.parametrize("waits_for_end", [False, True])
def test_nothing_is_written_to_the_descriptor_of_a_closed_transport(
    make_loop: Callable[[], asyncio.AbstractEventLoop], waits_for_end: bool
) -> None:
    async def scene(server: Server, client: socket.socket) -> None:
        descriptor = server.transport.get_extra_info("socket").fileno()
        server.transport.abort()
        if waits_for_end:
            await server.lost.wait()
        stranger, peer = socket.socketpair()  # gets the number of the closed descriptor
        with stranger, peer:
            if waits_for_end:
                assert descriptor in {stranger.fileno(), peer.fileno()}
            with suppress(RuntimeError):  # what uvloop's transports raise when they are closed
                server.writer.write(b"for somebody else")
            with suppress(RuntimeError):
                server.writer.writelines([b"for", b"somebody else"])
            for end in (stranger, peer):
                end.setblocking(False)
                with pytest.raises(BlockingIOError):
                    end.recv(100)

    play(scene, make_loop)


def test_a_transport_without_a_socket_writes_by_itself() -> None:
    class Encrypting(asyncio.Transport):
        pass

    transport: Any = Encrypting()
    writer: ResponseWriter = response_writer(transport)
    assert writer is transport
