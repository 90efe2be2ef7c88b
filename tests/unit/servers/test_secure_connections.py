"""Connections of SASL and TLS listeners: APIs before authentication, expiry of sessions, clients that send garbage."""

import asyncio
import gc
import logging
import ssl
from pathlib import Path

import pytest
from tests.support.certificates import Certificates
from tests.support.sasl_listener import (
    ALICE,
    METADATA,
    Served,
    Wire,
    attack,
    feed,
    feed_raw,
    handshake,
    sasl_only,
    token,
    until,
)

from sskafka.model.errors import ErrorCode
from sskafka.model.security.certificate_names import parse_mapping_rules
from sskafka.model.security.sasl_messages import plain_message
from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, client_context, server_context
from sskafka.servers.kafka.connection import Connection
from sskafka.servers.kafka.listener import AUTHENTICATION_TICKS_MAX
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.security.listener_security import ListenerSecurity, TlsSecurity
from sskafka.servers.kafka.security.sasl_connection import SaslConnection
from sskafka.servers.kafka.security.tls_transport import TlsTransport
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import decode
from sskafka.wire.header import decode_response_header
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from sskafka.wire.messages.sasl_handshake import SaslHandshakeResponse


def take_frame(wire: Wire) -> bytes:
    size = int.from_bytes(wire.written[:4], "big")
    frame = bytes(wire.written[4 : 4 + size])
    del wire.written[: 4 + size]
    return frame


def authenticated(wire: Wire, version: int = 1) -> SaslAuthenticateResponse:
    frame = take_frame(wire)
    _, start = decode_response_header(ApiKey.SASL_AUTHENTICATE, version, frame)
    return decode(SaslAuthenticateResponse, version, frame, start)


def test_a_login_opens_the_connection() -> None:
    async def run() -> None:
        served = Served(sasl_only())
        connection, wire = served.connect()
        feed(connection, handshake())
        assert decode(SaslHandshakeResponse, 1, take_frame(wire), 4).mechanisms == ["PLAIN", "SCRAM-SHA-256"]
        feed(connection, token(ALICE))
        assert authenticated(wire).error_code == ErrorCode.NONE
        assert connection.principal == "User:alice"
        feed(connection, METADATA)
        assert served.metadata_requests == 1

    asyncio.run(run())


def test_tokens_without_headers_after_a_handshake_of_version_0() -> None:
    async def run() -> None:
        served = Served(sasl_only())
        connection, wire = served.connect()
        feed(connection, handshake(version=0))
        take_frame(wire)
        size = len(ALICE).to_bytes(4, "big")
        feed_raw(connection, size + ALICE[:5])
        feed_raw(connection, ALICE[5:] + len(METADATA).to_bytes(4, "big") + METADATA)
        assert take_frame(wire) == b""
        assert (connection.principal, served.metadata_requests) == ("User:alice", 1)

    asyncio.run(run())


@pytest.mark.parametrize(
    "frames",
    [
        [METADATA],
        [handshake(), METADATA],
        [token(ALICE)],
        [handshake("GSSAPI")],
        [handshake(), handshake()],
        [handshake(version=0), token(ALICE)],
        [handshake("SCRAM-SHA-256"), token(b"n,,n=alice,r=x"), METADATA],
        [b"x" * 8],
        [bytes(600_000)],
    ],
    ids=range(9),
)
def test_nothing_is_served_before_authentication(frames: list[bytes]) -> None:
    async def run() -> None:
        served = Served(sasl_only())
        connection, wire = served.connect()
        for frame in frames:
            if not connection.closed:
                feed(connection, frame)
        await asyncio.sleep(0.01)
        assert wire.is_closed
        assert served.metadata_requests == 0
        assert connection.principal == "User:ANONYMOUS"

    asyncio.run(run())


def test_a_failed_login_is_answered_after_the_delay_and_reads_nothing_meanwhile() -> None:
    async def run() -> None:
        served = Served(sasl_only(delay_ms=50))
        connection, wire = served.connect()
        feed(connection, handshake())
        take_frame(wire)
        stream = token(plain_message("alice", "wrong"))
        feed_raw(connection, len(stream).to_bytes(4, "big") + stream + len(METADATA).to_bytes(4, "big") + METADATA)
        assert not wire.written
        assert not wire.is_closed
        await until(lambda: wire.is_closed)
        refusal = authenticated(wire)
        assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert refusal.error_message == "Authentication failed: Invalid username or password"
        assert served.metadata_requests == 0
        assert served.listener.counters.failed_authentications == 1

    asyncio.run(run())


async def logged_in(served: Served) -> tuple[SaslConnection, Wire]:
    connection, wire = served.connect()
    feed(connection, handshake())
    take_frame(wire)
    feed(connection, token(ALICE))
    assert authenticated(wire).session_lifetime_ms == 60
    return connection, wire


def test_a_request_after_the_session_has_expired_closes_the_connection() -> None:
    async def run() -> None:
        served = Served(sasl_only(max_reauth_ms=60))
        connection, wire = await logged_in(served)
        await asyncio.sleep(0.1)
        feed(connection, METADATA)
        assert wire.is_closed
        assert served.metadata_requests == 0

    asyncio.run(run())


def test_a_new_login_prolongs_the_session() -> None:
    async def run() -> None:
        served = Served(sasl_only(max_reauth_ms=60))
        connection, wire = await logged_in(served)
        await asyncio.sleep(0.1)
        feed(connection, handshake())
        take_frame(wire)
        feed(connection, token(ALICE))
        assert authenticated(wire).session_lifetime_ms == 60
        feed(connection, METADATA)
        assert served.metadata_requests == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("mechanism", "message", "said"),
    [("PLAIN", plain_message("bob", "other"), "principals"), ("SCRAM-SHA-256", b"n,,n=alice,r=x", "mechanisms")],
)
def test_a_new_login_keeps_name_and_mechanism(mechanism: str, message: bytes, said: str) -> None:
    async def run() -> None:
        served = Served(sasl_only(max_reauth_ms=60))
        connection, wire = await logged_in(served)
        feed(connection, handshake(mechanism))
        take_frame(wire)
        feed(connection, token(message))
        await until(lambda: wire.is_closed)
        assert f"Cannot change {said}" in (authenticated(wire).error_message or "")

    asyncio.run(run())


def test_clients_that_do_not_authenticate_are_closed() -> None:
    async def run() -> None:
        served = Served(sasl_only())
        _, silent = served.connect()
        connection, wire = served.connect()
        feed(connection, handshake())
        feed(connection, token(ALICE))
        served.listener.tick += AUTHENTICATION_TICKS_MAX + 1
        served.listener._close_unauthenticated()
        assert (silent.is_closed, wire.is_closed) == (True, False)

    asyncio.run(run())


def test_strangers_get_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    attack(5_000, seed=17)
    assert len(caplog.records) <= 30


# --- TLS --------------------------------------------------------------------------------------------


def tls_security(certificates: Certificates, client_auth: str = "requested") -> ListenerSecurity:
    key_store = str(certificates.issue("server.pem", "localhost"))
    options = TlsOptions(keystore_location=key_store, truststore_location=str(certificates.ca), client_auth=client_auth)
    rules = parse_mapping_rules("RULE:^CN=([^,]+).*$/$1/")
    return ListenerSecurity(TlsSecurity(ReloadingContext(options, server_context), rules), None)


async def serving(security: ListenerSecurity) -> tuple[Served, int]:
    from sskafka.model.listeners import Endpoint
    from sskafka.servers.kafka.sockets import bind

    served = Served(security)
    bound = bind(Endpoint("L", "127.0.0.1", 0))
    await served.listener.start(bound, 50)
    return served, bound.getsockname()[1]


async def metadata_over(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    writer.write(len(METADATA).to_bytes(4, "big") + METADATA)
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    writer.close()
    async with asyncio.timeout(5):
        await writer.wait_closed()  # the listener answers the end of the TLS session
    return answer


def test_a_certificate_names_the_client(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    mine = str(certificates.issue("client.pem", "a@example.com", common_name="alice"))
    options = TlsOptions(keystore_location=mine, truststore_location=str(certificates.ca))

    async def run() -> str:
        served, port = await serving(tls_security(certificates))
        names: list[str] = []
        handle = served.listener.apis[ApiKey.METADATA].handle

        def noting(request: Request) -> Response | None:
            names.append(request.connection.principal)
            return handle(request)

        served.listener.apis[ApiKey.METADATA].handle = noting
        assert (await metadata_over(port, client_context(options)))[:4] == b"\0\0\0\x09"
        await served.listener.stop()
        return names[0]

    assert asyncio.run(run()) == "User:alice"


@pytest.mark.parametrize("piece_bytes", [1_000, 16_384, 50_000, 70_000, 1_000_000])
def test_a_large_request_arrives_in_pieces_of_any_size(tmp_path: Path, piece_bytes: int) -> None:
    """The loop is not woken for each of them, but it is for the last."""
    certificates = Certificates(tmp_path)
    request = METADATA + bytes(400_000)
    framed = len(request).to_bytes(4, "big") + request
    small = len(METADATA).to_bytes(4, "big") + METADATA

    async def run() -> None:
        served, port = await serving(tls_security(certificates))
        context = client_context(TlsOptions(truststore_location=str(certificates.ca)))
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
        for stream in (framed, small, framed, small):
            for start in range(0, len(stream), piece_bytes):
                writer.write(stream[start : start + piece_bytes])
                await writer.drain()
                await asyncio.sleep(0.0005)
            size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 10), "big")
            await reader.readexactly(size)
        writer.close()
        await served.listener.stop()

    asyncio.run(run())


def test_a_stalled_or_garbled_handshake_ends_without_harm(tmp_path: Path) -> None:
    async def run() -> None:
        served, port = await serving(tls_security(Certificates(tmp_path), "required"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(5):
            await reader.read()
        writer.close()
        reader, silent = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: served.listener.connection_count)
        served.listener.tick += AUTHENTICATION_TICKS_MAX + 1
        served.listener._close_unauthenticated()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            async with asyncio.timeout(5):
                await reader.readexactly(1)
        silent.close()
        assert served.listener.counters.failed_authentications == 1
        await served.listener.stop()

    asyncio.run(run())


def test_a_response_that_is_ready_after_the_end_of_the_tls_session_is_dropped(tmp_path: Path) -> None:
    """The client has said goodbye while a request of it waited. Its response must not disturb those of others."""
    certificates = Certificates(tmp_path)
    trusting = client_context(TlsOptions(truststore_location=str(certificates.ca)))

    async def run() -> None:
        served, port = await serving(tls_security(certificates))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="localhost")
        writer.write(len(METADATA).to_bytes(4, "big") + METADATA)
        await reader.readexactly(4)
        (leaving,) = served.listener._connections
        transport = leaving._transport
        assert isinstance(transport, TlsTransport)
        transport.close()  # as after close_notify of the client
        transport.buffer_updated(0)
        leaving.put_out(b"late")
        leaving.flush()
        transport.writelines([b"later", bytes(100_000)])
        assert (await metadata_over(port, trusting))[:4] == b"\0\0\0\x09"
        writer.close()
        await served.listener.stop()

    asyncio.run(run())


def test_a_connection_that_cannot_be_written_to_does_not_delay_the_others() -> None:
    async def run() -> tuple[bool, bytes]:
        served = Served(sasl_only())
        (broken, broken_wire), (other, wire) = served.connect(), served.connect()

        def fail(data: object) -> None:
            raise RuntimeError("no way to write")

        broken_wire.write = fail  # type: ignore[method-assign]
        for connection in (broken, other):
            connection.put_out(b"response")
            served.listener.flush_soon(connection)
        await until(lambda: wire.written)
        return broken.closed, bytes(wire.written)

    assert asyncio.run(run()) == (True, b"response")


def test_a_lost_connection_is_freed_at_once(tmp_path: Path) -> None:
    """A broker excludes from garbage collection what was in use once, so cycles of connections would stay for long."""
    certificates = Certificates(tmp_path)

    async def run() -> list[object]:
        served, port = await serving(tls_security(certificates))
        await metadata_over(port, client_context(TlsOptions(truststore_location=str(certificates.ca))))
        await until(lambda: not served.listener.connection_count)
        await served.listener.stop()
        kept = [each for each in gc.get_objects() if isinstance(each, ssl.SSLObject | Connection)]
        return [each for each in kept if isinstance(each, Connection) or each.server_side]

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(run()) == []
    finally:
        gc.enable()
