"""A listening socket and its connections, with what these share: buffers, limits, the table of APIs."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from sskafka.model.buffers import Buffer
from sskafka.model.counters import AcceptorCounters, ConnectionCounters, Sample
from sskafka.model.values import value
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.runtime.selector import Selector
from sskafka.servers.acceptor import Acceptor
from sskafka.servers.kafka.authorization import Authorizer, FailedLoginRecorder, ignore_failed_login
from sskafka.servers.kafka.closing_log import ClosingLog
from sskafka.servers.kafka.connection import LARGE_FRAME_BEGINNING_BYTES, Connection
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas
from sskafka.servers.kafka.fair_turns import FairTurns
from sskafka.servers.kafka.frames import SIZE
from sskafka.servers.kafka.long_requests import LongRequests
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.servers.kafka.socket_transport import SocketTransport, StreamProtocol
from sskafka.storage.disk import File
from sskafka.storage.errors import StorageError
from sskafka.storage.file_slice import FileSlice

if TYPE_CHECKING:
    from sskafka.servers.kafka.security.listener_security import ListenerSecurity

log = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES: Final = 256 * 1024
REAP_INTERVAL_S: Final = 1.0
SILENT_TICKS_MAX: Final = 10
"""Seconds within which a connection must send its first request while others wait to be accepted."""
SOFTWARE_MAX: Final = 20
"""Kinds of client software that metrics name; clients choose their names."""
OTHER_SOFTWARE = ("other", "other")
AUTHENTICATION_TICKS_MAX: Final = 30
"""Seconds within which TLS handshake and SASL exchange must be done."""


@value
class ConnectionLimits:
    request_bytes_max: int
    idle_ms_max: int
    """Negative: connections may be idle forever."""
    parked_max: int
    """Number of waiting responses of one connection above which the connection is not read from."""
    arrival_ms_max: int = 30_000
    """How long the rest of a request may be silent after its first bytes."""
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    """Sizes of the socket buffers; -1: the operating system decides."""


class Listener:
    def __init__(
        self,
        name: str,
        apis: dict[int, ServedApi],
        authorizer: Authorizer,
        limits: ConnectionLimits,
        quotas: ConnectionQuotas,
        memory: RequestMemory,
        counters: ConnectionCounters,
        executor: Executor,
        descriptors: ConnectionDescriptors,
        security: "ListenerSecurity | None" = None,
        selector: Selector | None = None,
    ) -> None:
        """`security`: how clients prove who they are; None on PLAINTEXT listeners.

        `selector`: of the event loop on which the listener is started; None: it has one of its own."""
        self.name = name
        self.apis = apis
        self.authorizer = authorizer
        self.memory = memory
        self.counters = counters
        self.request_bytes_max = limits.request_bytes_max
        self.parked_max = limits.parked_max
        self.receive_view = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.beginning_view = self.receive_view[: LARGE_FRAME_BEGINNING_BYTES + SIZE.size]
        """For a client that sends large requests: the rest is received into a buffer of its own, without a copy."""
        self.encrypted_view = memoryview(bytearray(RECEIVE_BUFFER_BYTES if security is not None else 0))
        self.turns = FairTurns()
        self.long_requests = LongRequests(self.turns)
        self.tick = 0
        self._limits = limits
        self._quotas = quotas
        self._executor = executor
        self._descriptors = descriptors
        self.security = security
        self._closing_log = ClosingLog()
        self._unauthenticated: dict[Connection, int] = {}
        self.on_damaged_file: Callable[[File], None] = lambda file: None
        """Called when a read from the disk, for a response, has found a batch that does not match its checksum."""
        self.on_failed_login: FailedLoginRecorder = ignore_failed_login
        self.acceptor_counters = AcceptorCounters(name)
        self._connections: set[Connection] = set()
        self._address_of: dict[Connection, str] = {}
        self._to_flush: list[Connection] = []
        self._acceptor: Acceptor | None = None
        self._reaper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._selector = selector
        self._own_selector: Selector | None = None

    async def start(self, bound: socket.socket, backlog: int) -> None:
        """Serve on a bound socket. Sockets are bound before anything else, so that a taken port is reported early."""
        self._loop = asyncio.get_running_loop()
        self.turns.start(self._loop)
        if self._selector is None:
            self._selector = self._own_selector = Selector(self._loop)
        for option, size in (
            (socket.SO_SNDBUF, self._limits.send_buffer_bytes),
            (socket.SO_RCVBUF, self._limits.receive_buffer_bytes),
        ):
            if size > 0:  # accepted sockets inherit the option
                bound.setsockopt(socket.SOL_SOCKET, option, size)
        self._acceptor = Acceptor(
            f"listener {self.name}", bound, None, self._descriptors, self.acceptor_counters, begin=self._begin
        )
        self._acceptor.start(backlog)
        self._reaper = self._loop.call_later(REAP_INTERVAL_S, self._reap_idle)

    def _begin(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted."""
        assert self._loop is not None
        assert self._selector is not None
        protocol: StreamProtocol = Connection(self) if self.security is None else self.security.new_protocol(self)
        SocketTransport(accepted, protocol, self._selector, self._loop).start()

    async def stop(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        if self._acceptor is not None:
            await self._acceptor.stop()
        for connection in list(self._connections):
            connection.close()
        if self._own_selector is not None:
            self._own_selector.close()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def software_samples(self) -> Iterator[Sample]:
        """Yield the number of connections by the software that clients name in ApiVersions."""
        counts = Counter(connection.software for connection in self._connections)
        named = dict(counts.most_common(SOFTWARE_MAX))
        others = counts.total() - sum(named.values())
        for (name, version), count in {**named, OTHER_SOFTWARE: others}.items() if others else named.items():
            labels = (("client_software_name", name), ("client_software_version", version), ("listener", self.name))
            yield Sample("kafka_server_socketservermetrics_connections", labels, count)

    # -- what connections call

    def admit(self, connection: Connection, address: str) -> bool:
        refusal = self._quotas.refusal(self.name, address)
        if refusal is not None:
            self.log_closing(connection.peer, refusal)
            self.counters.refused += 1
            return False
        assert self._loop is not None
        self._connections.add(connection)
        self._address_of[connection] = address
        self.counters.opened += 1
        wait_s = self._quotas.admit(self.name, address, self._loop.time())
        if wait_s > 0:
            connection.hold()
            self._loop.call_later(wait_s, connection.release)
        return True

    def forget(self, connection: Connection) -> None:
        self._descriptors.connection_closed()
        self._unauthenticated.pop(connection, None)
        address = self._address_of.pop(connection, None)
        if address is None:
            return
        self._connections.discard(connection)
        self.counters.closed += 1
        self._quotas.forget(self.name, address)

    def await_authentication(self, connection: Connection) -> None:
        """Close the connection unless its client authenticates in time."""
        self._unauthenticated.setdefault(connection, self.tick)

    def authenticated(self, connection: Connection) -> None:
        self._unauthenticated.pop(connection, None)

    def authentication_failed(self, connection: Connection, reason: str, user: str = "") -> None:
        self.counters.failed_authentications += 1
        self.on_failed_login(self.name, connection.host, user, reason)

    def log_closing(self, peer: str, reason: str) -> None:
        self._closing_log.log(self.name, peer, reason, self.tick)

    def flush_soon(self, connection: Connection) -> None:
        """Send the responses that became ready in one turn of the event loop together."""
        self._to_flush.append(connection)
        if len(self._to_flush) == 1:
            assert self._selector is not None
            self._selector.call_at_end(self._flush_all)

    def _flush_all(self) -> None:
        connections, self._to_flush = self._to_flush, []
        for connection in connections:
            try:
                connection.flush()
            except Exception as error:  # the responses of other connections must not wait
                connection.abort_after(error, None)

    def read_in_background(self, part: FileSlice, done: Callable[[Buffer | None], None]) -> None:
        """Read from the disk in a thread, because the read would block the event loop.

        What comes from the disk is verified: this is where damage would reach readers. Bytes in the page cache were
        verified when they were written or read."""
        assert self._loop is not None
        loop = self._loop

        def read() -> None:
            try:
                data: Buffer | None = part.read()
                if data and part.starts_batch and part.is_damaged(data):
                    log.error("a batch that was to be sent is damaged: %r", part)
                    loop.call_soon_threadsafe(self.on_damaged_file, part.file)
                    data = None
            except (OSError, StorageError):
                log.exception("reading a segment failed")
                data = None
            loop.call_soon_threadsafe(done, data)

        self._executor.submit(read)

    def _reap_idle(self) -> None:
        """Count one tick per second. Connections store the tick of their last activity, which needs no clock."""
        assert self._loop is not None
        self.tick += 1
        idle_ms_max = self._limits.idle_ms_max
        oldest = self.tick - max(1, idle_ms_max // 1000) if idle_ms_max >= 0 else 0
        for connection in [c for c in self._connections if c.last_active_tick < oldest and not c.has_pending_requests]:
            log.debug("closing %s: idle for connections.max.idle.ms", connection.peer)
            self.counters.reaped += 1
            connection.close()
        self._close_stalled(max(1, self._limits.arrival_ms_max // 1000))
        self._close_unauthenticated()
        if self.acceptor_counters.is_paused:
            self._close_silent()
        self._reaper = self._loop.call_later(REAP_INTERVAL_S, self._reap_idle)

    def _close_stalled(self, ticks_max: int) -> None:
        """Close connections on which the rest of a request does not arrive."""
        oldest = self.tick - ticks_max
        for connection in [c for c in self._connections if c.last_active_tick < oldest and c.has_partial_request]:
            connection.drop(f"nothing of the rest of a request arrived for {ticks_max} s")
        self.memory.close_stalled(self.name, ticks_max)

    def _close_unauthenticated(self) -> None:
        oldest = self.tick - AUTHENTICATION_TICKS_MAX
        for connection in [c for c, since in self._unauthenticated.items() if since < oldest]:
            self._unauthenticated.pop(connection, None)
            connection.drop(f"the client did not authenticate within {AUTHENTICATION_TICKS_MAX} s")

    def _close_silent(self) -> None:
        """Close connections that have never sent a request, to make room for others."""
        oldest = self.tick - SILENT_TICKS_MAX
        for connection in [c for c in self._connections if c.is_silent and c.last_active_tick < oldest]:
            self.counters.reaped += 1
            connection.close()
