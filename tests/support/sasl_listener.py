"""A SASL listener without sockets: clients are lists of bytes. `attack` sends it what strangers may send."""

import asyncio
import gc
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from sskafka.model.counters import ConnectionCounters, RequestCounters
from sskafka.model.security.sasl_messages import plain_message
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.model.settings import Settings
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.runtime.selector import Selector
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.handlers import sasl
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.security.listener_security import ListenerSecurity, SaslSecurity
from sskafka.servers.kafka.security.mechanisms import PlainMechanism, ScramServerMechanism
from sskafka.servers.kafka.security.sasl_connection import SaslConnection
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.api_versions import ApiVersionsResponse
from sskafka.wire.messages.metadata import MetadataResponse
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from sskafka.wire.messages.sasl_handshake import SaslHandshakeRequest

ALICE = plain_message("alice", "secret")
METADATA = encode_request_header(ApiKey.METADATA, 1, 9, "c") + struct.pack(">i", 0)


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("10.0.0.1", 5) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def writelines(self, list_of_data: object) -> None:
        self.write(b"".join(list_of_data))  # type: ignore[call-overload]

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Served:
    """A listener that counts the Metadata requests it serves."""

    def __init__(self, security: ListenerSecurity) -> None:
        self.metadata_requests = 0
        apis = {
            ApiKey.API_VERSIONS: self._versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.SASL_HANDSHAKE: sasl.handshake,
            ApiKey.SASL_AUTHENTICATE: sasl.authenticate,
        }
        self.listener = Listener(
            "L",
            {key: ServedApi(API_BY_KEY[key], handle, RequestCounters(key.name)) for key, handle in apis.items()},
            AllowAll(),
            ConnectionLimits(2_000_000, 600_000, 100),
            ConnectionQuotas(Settings.resolve({})),
            RequestMemory(10_000_000),
            ConnectionCounters(),
            ThreadPoolExecutor(1),
            ConnectionDescriptors(1000),
            security,
            Selector(asyncio.get_running_loop(), uses_epoll=False),
        )
        self.listener._loop = asyncio.get_running_loop()
        self.listener.turns.start(asyncio.get_running_loop())

    def connect(self) -> tuple[SaslConnection, Wire]:
        assert self.listener.security is not None
        connection, wire = self.listener.security.new_protocol(self.listener), Wire()
        assert isinstance(connection, SaslConnection)
        connection.connection_made(wire)
        return connection, wire

    def _versions(self, request: Request) -> Response:
        return response_frame(ApiKey.API_VERSIONS, 0, request.correlation_id, ApiVersionsResponse())

    def _metadata(self, request: Request) -> Response:
        self.metadata_requests += 1
        return response_frame(ApiKey.METADATA, request.version, request.correlation_id, MetadataResponse())


def sasl_only(max_reauth_ms: int = 0, delay_ms: int = 0) -> ListenerSecurity:
    users = {"alice": "secret", "bob": "other"}
    plain = PlainMechanism(lambda: users, max_reauth_ms)
    scram = ScramServerMechanism(SCRAM_MECHANISMS["SCRAM-SHA-256"], lambda user, is_token: None, max_reauth_ms)
    return ListenerSecurity(None, SaslSecurity({"PLAIN": plain, "SCRAM-SHA-256": scram}, delay_ms))


def feed(connection: SaslConnection, data: bytes) -> None:
    """Pass bytes to the connection as its transport does, framed as one request."""
    feed_raw(connection, len(data).to_bytes(4, "big") + data)


def feed_raw(connection: SaslConnection, stream: bytes) -> None:
    while stream and not connection.closed:
        room = connection.get_buffer(-1)
        count = min(len(room), len(stream))
        room[:count] = stream[:count]
        connection.buffer_updated(count)
        stream = stream[count:]


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    header = encode_request_header(ApiKey.SASL_HANDSHAKE, version, 1, "c")
    return header + encode(SaslHandshakeRequest(mechanism), version)


def token(content: bytes, version: int = 1) -> bytes:
    header = encode_request_header(ApiKey.SASL_AUTHENTICATE, version, 2, "c")
    return header + encode(SaslAuthenticateRequest(content), version)


def strange_streams(seed: int) -> Iterator[bytes]:
    """Malformed frames, logins with wrong parts, and whole requests that must not be served."""
    rng = random.Random(seed)
    known = [handshake(), handshake("SCRAM-SHA-256"), handshake(version=0), token(b"n,,n=alice,r=x"), METADATA]
    known += [token(plain_message("alice", "wrong")), handshake("X" * 300), token(b"\0" * 50)]
    while True:
        stream = bytearray()
        for _ in range(rng.randrange(1, 5)):
            frame = bytearray(rng.choice(known) if rng.random() < 0.8 else rng.randbytes(rng.randrange(0, 60)))
            for _ in range(rng.choice((0, 0, 1, 3))):
                if frame:
                    frame[rng.randrange(len(frame))] = rng.randrange(256)
            size = len(frame) if rng.random() < 0.9 else rng.randrange(-(2**31), 2**31)
            stream += struct.pack(">i", size) + frame
        yield bytes(stream)


def attack(count: int, seed: int) -> None:
    async def run() -> None:
        served = Served(sasl_only())
        streams = strange_streams(seed)
        for number in range(count):
            connection, wire = served.connect()
            feed_raw(connection, next(streams))
            assert connection.principal == "User:ANONYMOUS", f"seed {seed}"
            assert len(wire.written) < 5_000
            if number % 50 == 49:
                await asyncio.sleep(0)  # failed logins end
            connection.connection_lost(None)
            if number == count // 10:
                gc.collect()
                tracemalloc.start()
        await asyncio.sleep(0.05)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert served.metadata_requests == 0, f"seed {seed}"
        assert served.listener.connection_count == 0
        assert grown < 500_000, f"{grown} bytes more after {count} connections, seed {seed}"

    asyncio.run(run())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  plain attributes change here
            await asyncio.sleep(0.005)
