"""One connection to one broker: many requests in flight, responses matched to requests by correlation id.

`connect` negotiates API versions before it returns a connection. Each request uses the newest version that both sides
support. A connection never reconnects: when it ends, all waiting requests fail with ConnectionLostError, and the owner
opens a new connection. Brokers send responses in the order of requests, so a request timeout ends the connection:
responses to later requests would be delayed behind the missing one.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from re import findall
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from sskafka.client.errors import (
    AuthenticationFailedError,
    BrokerUnavailableError,
    ClientError,
    ConnectionLostError,
    ConnectionRefusedByBrokerError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedApiError,
)
from sskafka.client.frames import FrameReceiver
from sskafka.model.buffers import Buffer
from sskafka.model.counters import Traffic
from sskafka.model.errors import ErrorCode
from sskafka.model.values import value
from sskafka.model.version import __version__
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.header import decode_response_header, encode_request_header
from sskafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sskafka.wire.schema import Message, Versions

if TYPE_CHECKING:
    from sskafka.client.security import ClientSecurity

_log = logging.getLogger(__name__)

R = TypeVar("R", bound=Message)

_CORRELATION_ID_MAX = 2**31 - 1
NOT_REPORTED = Traffic()
SESSION_SHARE = 0.8
"""The part of the lifetime of a SASL session after which a connection takes no more requests."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@value
class ConnectionOptions:
    client_id: str = "sskafka"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    connect_timeout_max_ms: int = 0
    """The connect timeout doubles after each failure, up to this limit; 0 keeps it constant."""
    receive_buffer_bytes: int = -1
    """SO_RCVBUF of the socket; -1 uses the operating system's default."""
    security: "ClientSecurity | None" = None
    """None: PLAINTEXT."""
    traffic: Traffic = NOT_REPORTED
    """Counts what is sent and received."""

    @property
    def uses_tls(self) -> bool:
        return self.security is not None and self.security.protocol.endswith("SSL")

    def connect_timeout_after(self, failures: int) -> int:
        """Return the connect timeout in milliseconds after this many failed attempts."""
        longest = max(self.connect_timeout_ms, self.connect_timeout_max_ms)
        return min(longest, self.connect_timeout_ms << min(failures, 16))


async def connect(
    address: Address, options: ConnectionOptions | None = None, *, failures: int = 0
) -> "BrokerConnection":
    """Connect to `address` and negotiate API versions; raise BrokerUnavailableError, with the reason, on failure.

    `failures` is the number of failed attempts before this one; it lengthens the timeout."""
    options = options or ConnectionOptions()
    timeout_ms = options.connect_timeout_after(failures)
    loop = asyncio.get_running_loop()
    connection = BrokerConnection(address, options)
    is_established = False
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await _open(loop, connection, address, options.security)
        is_established = True
    except TimeoutError:
        raise BrokerUnavailableError(f"{address} did not answer within {timeout_ms} ms") from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        raise AuthenticationFailedError(f"SSL handshake with {address} failed: {reason}") from error
    except OSError as error:
        if options.uses_tls and isinstance(error, ConnectionError) and not is_refusal(error):
            text = f"{address} closed the connection during the TLS handshake; is it a listener with TLS?"
            raise BrokerUnavailableError(text) from error
        refused = ConnectionRefusedByBrokerError if is_refusal(error) else BrokerUnavailableError
        raise refused(f"cannot connect to {address}: {_reason(error)}") from error
    except ConnectionLostError as error:
        if isinstance(connection.lost_by, ssl.SSLError):  # in TLS 1.3, a refused certificate is reported later
            raise AuthenticationFailedError(f"{address} refused this client: {_reason(connection.lost_by)}") from error
        advice = "" if options.uses_tls else "; a listener with TLS needs security.protocol=SSL or SASL_SSL"
        raise BrokerUnavailableError(f"{address} does not answer as a Kafka broker: {error}{advice}") from error
    finally:
        if not is_established:
            connection.abort("it could not be established")
    return connection


async def _open(
    loop: asyncio.AbstractEventLoop, connection: "BrokerConnection", address: Address, security: "ClientSecurity | None"
) -> None:
    if security is None:
        await loop.create_connection(lambda: connection, address.host, address.port)
        await connection.negotiate()
        return
    context = await security.tls_context()
    await loop.create_connection(lambda: connection, address.host, address.port, ssl=context)
    await connection.negotiate()
    login = security.login()
    if login is not None:
        from sskafka.client.sasl import log_in  # noqa: PLC0415  not for PLAINTEXT

        connection.retire_after(await log_in(connection, login, str(address)))


_ADDRESS_FAMILY_MISSING = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def is_refusal(error: OSError) -> bool:
    """Return whether every address of the host refused the connection, not counting unsupported address families.

    For a host with several addresses, asyncio joins the errors into one text, such as `Multiple exceptions: [Errno 111]
    Connect call failed ('::1', 9092, 0, 0), [Errno 111] Connect call failed ('127.0.0.1', 9092)`."""
    if error.errno is not None:
        return error.errno == errno.ECONNREFUSED
    numbers = {int(number) for number in findall(r"\[Errno (\d+)\]", str(error))} - _ADDRESS_FAMILY_MISSING
    return numbers == {errno.ECONNREFUSED}


def _reason(error: OSError) -> str:
    """Return a short reason; asyncio's own text for refused connections repeats the address, sometimes twice."""
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__


class BrokerConnection(asyncio.BufferedProtocol):
    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.address = address
        self._options = options
        self._traffic = options.traffic
        self._receiver = FrameReceiver()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, Callable[[Buffer | ClientError], None]] = {}
        self._asked: dict[int, float] = {}
        """Requests without a task of their own, the oldest first: when they time out, in the time of the event loop."""
        self._expiry: asyncio.TimerHandle | None = None
        self._correlation_id = 0
        self._broker_versions: dict[int, Versions] = {}
        self.features: dict[str, int] = {}
        """Finalized feature levels of the cluster, by feature name, as of the negotiation."""
        self._lost: ConnectionLostError | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self.on_lost: Callable[[BrokerConnection], None] | None = None
        """Called when the connection ends. Not called when it is retired: that is no failure of the broker."""
        self._is_retired = False
        self.lost_by: Exception | None = None
        """The error that ended the connection, if it was one of the network."""

    # API

    @property
    def is_open(self) -> bool:
        is_usable = self._lost is None and not self._is_retired
        return is_usable and self._transport is not None and not self._transport.is_closing()

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    def version_for(self, request_class: type[Message], at_most: int | None = None) -> int:
        """Return the newest version of a request that both sides support; raise UnsupportedApiError if none exists."""
        schema = request_class.SCHEMA
        key = schema.key
        broker = self._broker_versions.get(-1 if key is None else key)
        name = request_class.__name__.removesuffix("Request")
        if broker is None:
            raise UnsupportedApiError(f"the broker at {self.address} does not support the API {name}")
        newest = min(broker.last, schema.versions.last, schema.versions.last if at_most is None else at_most)
        if newest < max(broker.first, schema.versions.first):
            raise UnsupportedApiError(
                f"the broker at {self.address} supports {name} {broker.first}-{broker.last}, "
                f"this client {schema.versions.first}-{schema.versions.last}"
            )
        return newest

    async def request(
        self, message: Message, response_class: type[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        """Send `message` and return its response. The default `version` is the newest common one."""
        if version is None:
            version = self.version_for(type(message))
        answered = self._send(message, version)
        frame = await self._answer(answered, message, timeout_ms or self._options.request_timeout_ms)
        return self._decode(response_class, version, frame)

    def ask(self, message: Message, response_class: type[R], answered: Callable[[R | Exception], None]) -> None:
        """Send `message` at once. Call `answered` with the response as soon as it is read, or with the error.

        Unlike `request`, this takes no task and no further turn of the event loop. Raise ClientError if the request
        cannot be sent; then `answered` is not called."""
        version = self.version_for(type(message))
        correlation_id = self._next_id()
        self._write(message, version, correlation_id)

        def received(frame: Buffer | ClientError) -> None:
            self._asked.pop(correlation_id, None)
            outcome: R | Exception
            try:
                outcome = self._decode(response_class, version, frame) if not isinstance(frame, Exception) else frame
            except ProtocolError as error:
                outcome = error
            try:
                answered(outcome)
            except Exception:  # an error of the caller must not end the other requests of this connection
                _log.exception("a response of %s could not be handled", self.address)

        self._pending[correlation_id] = received
        self._expire_later(correlation_id, self._options.request_timeout_ms / 1000)

    @property
    def is_writable(self) -> bool:
        """Return whether the broker reads what it is sent."""
        return self._writable.is_set()

    async def send(self, message: Message, *, version: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0."""
        self._write(message, self.version_for(type(message)) if version is None else version, self._next_id())
        await self._writable.wait()

    async def close(self) -> None:
        """Close the connection; waiting requests fail with ConnectionLostError."""
        if self._transport is not None and not self._closed.is_set():
            self._transport.close()
            await self._closed.wait()

    async def wait_closed(self) -> None:
        """Wait until an established connection has ended: lost, closed, aborted or retired."""
        await self._closed.wait()

    def retire_after(self, lifetime_ms: int) -> None:
        """Close the connection before its session expires, once its requests are answered; 0: never.

        Its owner finds it closed and opens another one, with a new login."""
        if lifetime_ms > 0:
            asyncio.get_running_loop().call_later(lifetime_ms * SESSION_SHARE / 1000, self._retire)

    def _retire(self) -> None:
        self._is_retired = True
        self.on_lost = None
        self._maybe_close_retired()

    def _maybe_close_retired(self) -> None:
        if self._is_retired and not self._pending and self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close the connection without flushing; waiting requests fail with `reason`."""
        self._fail_pending(f"the connection to {self.address} was aborted: {reason}")
        if self._transport is not None:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports do not inherit from it
        if self._options.receive_buffer_bytes > 0:
            opened = transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._options.receive_buffer_bytes)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._traffic.bytes_received += nbytes
            for frame in self._receiver.received(nbytes):
                self._complete(frame)
        except ProtocolError as error:
            self.abort(str(error))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_by = exc
        self._fail_pending(f"the connection to {self.address} was lost: {exc or 'closed by the broker'}")
        self._writable.set()
        self._closed.set()
        if self.on_lost is not None:
            self.on_lost(self)

    # Internals

    async def negotiate(self) -> None:
        """Fetch the API versions of the broker.

        A broker that does not support this version of ApiVersions answers with UNSUPPORTED_VERSION in the layout of
        version 0, which lists the versions that it does support; the request is then repeated."""
        message = ApiVersionsRequest(client_software_name="sskafka", client_software_version=__version__)
        newest = ApiVersionsRequest.SCHEMA.versions.last
        response = await self._api_versions(message, newest)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {api.api_key: api.max_version for api in response.api_keys}
            response = await self._api_versions(message, min(known.get(ApiKey.API_VERSIONS, 0), newest))
        if response.error_code != ErrorCode.NONE:
            raise ProtocolError(f"{self.address} rejected ApiVersions with error {response.error_code}")
        self._broker_versions = {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}

    async def _api_versions(self, message: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        answered = self._send(message, version)
        frame = await self._answer(answered, message, self._options.request_timeout_ms)
        _, start = decode_response_header(ApiKey.API_VERSIONS, version, frame)
        refused = int.from_bytes(frame[start : start + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
        return self._decode(ApiVersionsResponse, 0 if refused else version, frame)

    def _send(self, message: Message, version: int) -> asyncio.Future[Buffer]:
        correlation_id = self._next_id()
        self._write(message, version, correlation_id)
        answered: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
        self._pending[correlation_id] = partial(_settle, answered)
        return answered

    def _expire_later(self, correlation_id: int, timeout_s: float) -> None:
        """Keep one timer for all requests, armed for the oldest of them."""
        loop = asyncio.get_running_loop()
        self._asked[correlation_id] = loop.time() + timeout_s
        if self._expiry is None:
            self._expiry = loop.call_later(timeout_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        oldest = next(iter(self._asked.items()), None)
        if oldest is None:
            return
        correlation_id, over_s = oldest
        loop = asyncio.get_running_loop()
        if loop.time() < over_s:
            self._expiry = loop.call_at(over_s, self._expire)
            return
        reason = f"{self.address} did not answer within {self._options.request_timeout_ms} ms"
        answered = self._pending.pop(correlation_id)
        self.abort(reason)
        answered(RequestTimeoutError(reason))

    def _next_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & _CORRELATION_ID_MAX
        return self._correlation_id

    def _write(self, message: Message, version: int, correlation_id: int) -> None:
        if self._lost is not None:
            raise self._lost
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLostError(f"the connection to {self.address} is closed")
        key = message.SCHEMA.key
        assert key is not None
        header = encode_request_header(key, version, correlation_id, self._options.client_id)
        body = encode(message, version)
        size = len(header) + len(body)
        self._traffic.requests += 1
        self._traffic.bytes_sent += 4 + size
        parts = (size.to_bytes(4, "big"), header, body)
        self._transport.writelines(parts if body else parts[:2])  # Python 3.12 would send an empty part forever

    async def _answer(self, answered: asyncio.Future[Buffer], message: Message, timeout_ms: int) -> Buffer:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._writable.wait()
                return await answered
        except TimeoutError:
            name = type(message).__name__.removesuffix("Request")
            self.abort(f"{name} was not answered within {timeout_ms} ms")
            raise RequestTimeoutError(f"{self.address} did not answer {name} within {timeout_ms} ms") from None

    def _complete(self, frame: Buffer) -> None:
        if len(frame) < 4:
            raise ProtocolError(f"a response of {len(frame)} bytes from {self.address} has no correlation id")
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        answered = self._pending.pop(correlation_id, None)
        if answered is None:
            raise ProtocolError(f"{self.address} sent a response with unknown correlation id {correlation_id}")
        self._traffic.responses += 1
        answered(frame)
        if self._is_retired:
            self._maybe_close_retired()

    def _decode(self, response_class: type[R], version: int, frame: Buffer) -> R:
        try:
            _, start = decode_response_header(response_class.SCHEMA.key or 0, version, frame)
            return decode(response_class, version, frame, start)
        except MalformedMessageError as error:
            self.abort(str(error))
            raise ProtocolError(f"cannot decode the response of {self.address}: {error}") from error

    def _fail_pending(self, reason: str) -> None:
        if self._lost is None:
            self._lost = ConnectionLostError(reason)
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        pending, self._pending = self._pending, {}
        for answered in pending.values():
            answered(ConnectionLostError(reason))


def _settle(answered: asyncio.Future[Buffer], outcome: Buffer | ClientError) -> None:
    if answered.done():  # the caller may have been cancelled
        return
    if isinstance(outcome, ClientError):
        answered.set_exception(outcome)
    else:
        answered.set_result(outcome)
