"""Measure what a read and a write of a tiny request cost on the event loop: `python -m benchmarks.turn_cost`.

    transport    asyncio.BufferedProtocol on the event loop's own transport, response written to the descriptor
    reader       loop.add_reader for each socket, recv_into and send
    selector     runtime/selector.py and runtime/socket_transport.py, as the broker's connections use them

Every socket has sent one request; a round is the turns of the loop that answer all of them, with an echo in place of a
handler. The figures are microseconds of this thread's CPU time for one request, the lowest of many rounds, so other
processes of the machine matter little. The clients' own reads and writes are not counted.
"""

import argparse
import asyncio
import os
import socket
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from sskafka.compiled import BUILD
from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.selector import Selector
from sskafka.servers.kafka.socket_transport import SocketTransport, StreamProtocol

REQUEST = bytes(150)
BUFFER = memoryview(bytearray(256 * 1024))
Serve = Callable[[asyncio.AbstractEventLoop, list[socket.socket], Callable[[], None]], None]


class EchoProtocol(asyncio.BufferedProtocol):
    def __init__(self, answered: Callable[[], None]) -> None:
        self._answered = answered

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._descriptor = transport.get_extra_info("socket").fileno()

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        if not self._transport.is_closing() and not self._transport.get_write_buffer_size():
            os.write(self._descriptor, BUFFER[:nbytes])
        self._answered()


class EchoStream(StreamProtocol):
    def __init__(self, answered: Callable[[], None]) -> None:
        self._answered = answered

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._transport.write(BUFFER[:nbytes])
        self._answered()


def on_transports(loop: asyncio.AbstractEventLoop, sockets: list[socket.socket], answered: Callable[[], None]) -> None:
    for one in sockets:
        loop.run_until_complete(loop.connect_accepted_socket(lambda: EchoProtocol(answered), one))


def on_readers(loop: asyncio.AbstractEventLoop, sockets: list[socket.socket], answered: Callable[[], None]) -> None:
    def ready(one: socket.socket) -> None:
        one.send(BUFFER[: one.recv_into(BUFFER)])
        answered()

    for one in sockets:
        loop.add_reader(one.fileno(), ready, one)


def on_selector(loop: asyncio.AbstractEventLoop, sockets: list[socket.socket], answered: Callable[[], None]) -> None:
    selector = Selector(loop)
    for one in sockets:
        SocketTransport(one, EchoStream(answered), selector, loop).start()


def measure(serve: Serve, count: int, seconds: float) -> float:
    """Return the lowest CPU time of one request in microseconds."""
    loop = new_event_loop()
    server = socket.create_server(("127.0.0.1", 0))
    clients = [socket.create_connection(server.getsockname()) for _ in range(count)]
    accepted = [server.accept()[0] for _ in range(count)]
    for one in accepted:
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    missing = 0

    def answered() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            loop.stop()

    serve(loop, accepted, answered)
    best, stop = float("inf"), thread_time_ns() + int(seconds * 1e9)
    while thread_time_ns() < stop:
        for client in clients:
            client.send(REQUEST)
        missing = count
        before = thread_time_ns()
        loop.run_forever()
        best = min(best, (thread_time_ns() - before) / count)
        for client in clients:
            client.recv(1000)
    for client in clients:
        client.close()
    return best / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each figure (default 2)")
    options = parser.parse_args()
    print(f"{BUILD}, {new_event_loop().__class__.__module__}")
    print("| connections | transport us | reader us | selector us |\n|--:|--:|--:|--:|")
    for count in (1, 16, 64):
        figures = [measure(serve, count, options.seconds) for serve in (on_transports, on_readers, on_selector)]
        print(f"| {count} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
