"""A connection of a SASL listener: before the client has authenticated, it serves only the login.

                    SaslHandshake            SaslAuthenticate...            expires_at
    BEGIN  ------------------------>  LOGIN  ------------------>  OPEN  ------------------>  EXPIRED
                    (v0: tokens without request headers)           |  SaslHandshake: login again, with the same name
                                                                   v
                                                                 LOGIN AGAIN, requests are served meanwhile

The table of APIs tells the states apart: before authentication it has ApiVersions, SaslHandshake and SaslAuthenticate
alone, and in EXPIRED only the latter two (KIP-368); any other request closes the connection. So an open connection
costs nothing more than one of a PLAINTEXT listener. A failed login is answered, and the connection closed, after
`connection.failed.authentication.delay.ms`; the broker reads nothing from it in the meantime.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sskafka.model.errors import ErrorCode
from sskafka.model.security.errors import SaslError
from sskafka.servers.kafka.connection import Connection
from sskafka.servers.kafka.frames import SIZE, response_frame
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.security.mechanisms import SaslExchange, SaslMechanism, SaslStep
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.servers.kafka.socket_transport import Transport
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sskafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from sskafka.servers.kafka.listener import Listener
    from sskafka.servers.kafka.security.listener_security import SaslSecurity

log = logging.getLogger(__name__)

BEFORE_AUTHENTICATION = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
AFTER_EXPIRY = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
TOKENS_IN_REQUESTS_FROM = 1
"""From this version of SaslHandshake on, the client sends its tokens in SaslAuthenticate requests."""


class RestrictedApis(Mapping[int, ServedApi]):
    """Some APIs of a table that may change."""

    def __init__(self, apis: Mapping[int, ServedApi], allowed: frozenset[ApiKey]) -> None:
        self._apis = apis
        self._allowed = allowed

    def __getitem__(self, key: int) -> ServedApi:
        if key not in self._allowed:
            raise KeyError(key)
        return self._apis[key]

    def __iter__(self) -> Iterator[int]:
        return iter(key for key in self._allowed if key in self._apis)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SaslConnection(Connection):
    __slots__ = (
        "_exchange",
        "_expiry",
        "_is_authenticated",
        "_mechanism",
        "_sasl",
        "_takes_bare_tokens",
    )

    def __init__(self, listener: "Listener", sasl: "SaslSecurity") -> None:
        super().__init__(listener)
        self._sasl = sasl
        self._mechanism = ""
        self._exchange: SaslExchange | None = None
        self._takes_bare_tokens = False
        self._is_authenticated = False
        self._expiry: asyncio.TimerHandle | None = None
        self._apis = RestrictedApis(listener.apis, BEFORE_AUTHENTICATION)
        self._request_bytes_max = min(listener.request_bytes_max, sasl.receive_bytes_max)

    def connection_made(self, transport: Transport) -> None:
        self._listener.await_authentication(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        super().connection_lost(error)

    # -- requests (handlers/sasl.py)

    def handshake(self, message: SaslHandshakeRequest, request: Request) -> Response | None:
        mechanism = self._sasl.mechanisms.get(message.mechanism)
        code = ErrorCode.NONE if mechanism is not None else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self._exchange is not None:
            code = ErrorCode.ILLEGAL_SASL_STATE
        response = SaslHandshakeResponse(code, sorted(self._sasl.mechanisms))
        frame = response_frame(ApiKey.SASL_HANDSHAKE, request.version, request.correlation_id, response)
        if mechanism is None or code is not ErrorCode.NONE:
            self._answer(frame)
            self.refuse(f"SASL handshake failed: {code.name}")
            return None
        if self._is_authenticated and message.mechanism != self._mechanism:
            self._exchange = _Refused(
                f"Cannot change mechanisms ({self._mechanism} to {message.mechanism}) during re-authentication"
            )
            return frame
        self._mechanism = message.mechanism
        self._exchange = mechanism.begin()
        self._takes_bare_tokens = request.version < TOKENS_IN_REQUESTS_FROM
        return frame

    def authenticate(self, message: SaslAuthenticateRequest, request: Request) -> Response | None:
        if self._exchange is None or self._takes_bare_tokens:
            text = "SaslAuthenticate request received without SaslHandshake"
            response = SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text)
            self._answer(response_frame(ApiKey.SASL_AUTHENTICATE, request.version, request.correlation_id, response))
            self.refuse(text)
            return None
        try:
            step = self._exchange.evaluate(bytes(message.auth_bytes))
            lifetime_ms = self._complete(step) if step.principal is not None else 0
        except SaslError as error:
            response = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error))
            frame = response_frame(ApiKey.SASL_AUTHENTICATE, request.version, request.correlation_id, response)
            self._fail(frame, error)
            return None
        response = SaslAuthenticateResponse(auth_bytes=step.answer, session_lifetime_ms=lifetime_ms)
        return response_frame(ApiKey.SASL_AUTHENTICATE, request.version, request.correlation_id, response)

    # -- tokens without request headers, after a SaslHandshake of version 0

    def _handle_frames(self, view: memoryview, end: int) -> None:
        position = 0
        while self._takes_bare_tokens and self._exchange is not None:
            if self._reading_paused or end - position < 4:
                break
            (size,) = SIZE.unpack_from(view, position)
            if not 0 <= size <= self._request_bytes_max:
                self._refuse_size(size)
                return
            if position + 4 + size > end:
                break
            self._evaluate_bare(self._exchange, bytes(view[position + 4 : position + 4 + size]))
            if self.closed:
                return
            position += 4 + size
        else:
            super()._handle_frames(view[position:end] if position else view, end - position)
            return
        rest = bytes(view[position:end])
        self._tail, self._backlog = (b"", rest) if self._reading_paused else (rest, b"")

    def _evaluate_bare(self, exchange: SaslExchange, token: bytes) -> None:
        try:
            step = exchange.evaluate(token)
            if step.principal is not None:
                self._complete(step)
        except SaslError as error:
            self._fail(None, error)
            return
        self._answer(SIZE.pack(len(step.answer)) + step.answer)

    # -- ends of a login

    def _complete(self, step: SaslStep) -> int:
        """Serve all APIs from now on; return the lifetime of the session in milliseconds, 0 for no limit."""
        principal = step.principal
        assert principal is not None
        if self._is_authenticated and principal != self.principal:
            text = f"Cannot change principals during re-authentication from {self.principal}: {principal}"
            raise SaslError(text)
        mechanism = self._sasl.mechanisms.get(self._mechanism)
        if mechanism is None:
            raise SaslError(f"Authentication failed: {self._mechanism} has been disabled")
        lifetime_ms = _lifetime_ms(step, mechanism, int(time.time() * 1000))
        if lifetime_ms < 0:
            raise SaslError("Authentication failed: the credential has expired")
        self.principal = principal
        self.is_token_authenticated = step.is_token
        self._exchange = None
        self._takes_bare_tokens = False
        self._is_authenticated = True
        self._apis = self._listener.apis
        self._request_bytes_max = self._listener.request_bytes_max
        self._listener.authenticated(self)
        self._expire_after(lifetime_ms)
        return lifetime_ms

    def _expire_after(self, lifetime_ms: int) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if lifetime_ms:
            self._expiry = asyncio.get_running_loop().call_later(lifetime_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._apis = RestrictedApis(self._listener.apis, AFTER_EXPIRY)

    def _fail(self, frame: bytes | None, error: SaslError) -> None:
        """Send the answer, if there is one, and close the connection after the delay. Read nothing in the meantime."""
        self._listener.authentication_failed(self, f"{self._mechanism}: {error}", error.user)
        self._exchange = None
        self._apis = RestrictedApis(self._listener.apis, frozenset())
        self.hold()
        delay_s = self._sasl.failed_authentication_delay_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, self._end_failed, frame, str(error))

    def _end_failed(self, frame: bytes | None, reason: str) -> None:
        if self.closed:
            return
        if frame is not None:
            self.put_out(frame)
        self.refuse(f"authentication failed: {reason}")

    def _answer_unsupported(
        self, key: int, version: int, correlation_id: int, frame: memoryview, received_ns: int
    ) -> None:
        if self._apis is self._listener.apis or (key == ApiKey.API_VERSIONS and key in self._apis):
            super()._answer_unsupported(key, version, correlation_id, frame, received_ns)
            return
        state = "after the session expired" if self._is_authenticated else "before authentication"
        self.refuse(f"request with API key {key} version {version} {state}")


class _Refused:
    """An exchange that fails with its first message."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def evaluate(self, message: bytes) -> SaslStep:
        raise SaslError(self._reason)


def _lifetime_ms(step: SaslStep, mechanism: SaslMechanism, now_ms: int) -> int:
    """Return how long a session may last: 0 means no limit, negative that the credential has already expired."""
    limits = [mechanism.max_reauth_ms] if mechanism.max_reauth_ms > 0 else []
    if step.expires_ms is not None:
        if step.expires_ms <= now_ms:
            return -1
        limits.append(step.expires_ms - now_ms)
    return min(limits, default=0)
