"""The connections of the HTTP server, each with a time limit in every state, and bounded in number.

    waiting for a request   the first, or the next once its first byte has come: 10 s for the headers, 64 KiB of them
                            between requests: uvicorn's keep-alive timeout
    receiving a body        20 s without a byte, 5 min in all
    answering               no limit for the route (long polls); 30 s for a client that takes nothing of the answer

When there are too many connections, those that have waited longest without a complete request are closed. A client that
sends its request at once therefore gets through however many silent connections there are. When too many requests run,
others are refused with 503, except the health checks.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from sskafka.model.security.certificate_names import MappingRule, distinguished_name, mapped_name
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.http.problems import UNAVAILABLE, problem

log = logging.getLogger(__name__)

HEADERS_TIMEOUT_S = 10.0
HEADERS_BYTES_MAX = 64 * 1024
BODY_PAUSE_S_MAX = 20.0
BODY_TIMEOUT_S = 300.0
ANSWER_PAUSE_S_MAX = 30.0
CONNECTIONS_MAX = 2000
REQUESTS_MAX = 1000
CLOSED_AT_ONCE = 32
SWEEP_INTERVAL_S = 1.0
HEALTH_CHECKS = frozenset({"/livez", "/readyz", "/healthcheck"})
CERTIFICATE_USER = "sskafka.certificate_user"
"""In the state of a request: the user whom the certificate of the client names; None if no rule matches its name."""

Overdue = str | None


class HttpConnection:
    """The part of a connection that this module adds to either protocol of uvicorn; see `bounded`."""

    transport: asyncio.Transport
    cycle: Any
    """uvicorn's state of the current or last request; None before the first."""
    app_state: dict[str, Any]
    """Copied into the state of each request."""

    def begin(self, now_s: float) -> None:
        self.waiting_since_s = now_s
        self.received_s = now_s
        self.request_since_s = now_s
        self.headers_bytes = 0
        self.unread_since_s: float | None = None
        self.has_had_request = False

    def awaits_request(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    @property
    def is_unfinished(self) -> bool:
        """Whether it has no complete request, so that nobody loses work when it is closed."""
        return self.awaits_request() or bool(self.cycle.more_body) or self.unread_since_s is not None

    def overdue(self, now_s: float) -> Overdue:
        """Return why the connection has to be closed, or None."""
        if self.awaits_request():
            has_begun = self.headers_bytes > 0 or not self.has_had_request
            is_late = now_s - self.waiting_since_s > HEADERS_TIMEOUT_S
            return "no complete request headers in time" if has_begun and is_late else None
        if self.unread_since_s is not None:
            return "the client takes no answer" if now_s - self.unread_since_s > ANSWER_PAUSE_S_MAX else None
        if self.cycle.more_body:
            is_late = now_s - self.received_s > BODY_PAUSE_S_MAX or now_s - self.request_since_s > BODY_TIMEOUT_S
            return "no complete request body in time" if is_late else None
        return None


class HttpConnections:
    def __init__(
        self,
        descriptors: ConnectionDescriptors,
        now_s: Callable[[], float],
        mapping_rules: Sequence[MappingRule] | None = None,
    ) -> None:
        """`mapping_rules` map the name in the certificate of a client to its user; None: certificates name no user."""
        self.descriptors = descriptors
        self._mapping_rules = mapping_rules
        self._now_s = now_s
        self._connections: set[HttpConnection] = set()
        self._running = 0

    def bounded(self, protocol: type[Any]) -> Callable[..., Any]:
        """Return a subclass of a protocol of uvicorn whose connections are counted and timed here."""
        connections, now_s = self, self._now_s

        class Bounded(protocol, HttpConnection):  # type: ignore[misc]
            def connection_made(self, transport: asyncio.Transport) -> None:
                self.begin(now_s())
                connections._connections.add(self)
                if connections._mapping_rules is not None:
                    user = _certificate_user(transport, connections._mapping_rules)
                    self.app_state = self.app_state | {CERTIFICATE_USER: user}
                super().connection_made(transport)

            def connection_lost(self, error: Exception | None) -> None:
                connections._connections.discard(self)
                connections.descriptors.connection_closed()
                super().connection_lost(error)

            def data_received(self, data: bytes) -> None:
                self.received_s = now_s()
                if not self.awaits_request():
                    super().data_received(data)
                    return
                if self.headers_bytes == 0 and self.has_had_request:
                    self.waiting_since_s = self.received_s
                self.headers_bytes += len(data)
                super().data_received(data)
                if not self.awaits_request():
                    self.request_since_s, self.has_had_request = self.received_s, True
                elif self.headers_bytes > HEADERS_BYTES_MAX:
                    self.transport.abort()

            def on_response_complete(self) -> None:
                self.waiting_since_s = now_s()
                self.headers_bytes = 0
                self.has_had_request = True
                super().on_response_complete()

            def pause_writing(self) -> None:
                self.unread_since_s = now_s()
                super().pause_writing()

            def resume_writing(self) -> None:
                self.unread_since_s = None
                super().resume_writing()

        return Bounded

    async def sweep(self) -> None:
        """Close overdue connections, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            self.close_overdue()

    def close_overdue(self) -> None:
        now_s = self._now_s()
        overdue = [(connection, connection.overdue(now_s)) for connection in self._connections]
        for connection, reason in overdue:
            if reason is not None:
                log.debug("closing a connection: %s", reason)
                connection.transport.abort()

    def close_unfinished(self) -> bool:
        """Close the connections that have been without a complete request for longest; False if there are none."""
        unfinished = [connection for connection in self._connections if connection.is_unfinished]
        oldest = nsmallest(CLOSED_AT_ONCE, unfinished, key=lambda connection: connection.waiting_since_s)
        for connection in oldest:
            connection.transport.abort()
        return bool(oldest)

    def limited(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app`, so that the number of requests that run at the same time is limited."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and self._is_too_many(scope):
                await problem(UNAVAILABLE, "too many requests are running")(scope, receive, send)
                return
            self._running += 1
            try:
                await app(scope, receive, send)
            finally:
                self._running -= 1

        return cast("ASGIApp", run)

    def _is_too_many(self, scope: Scope) -> bool:
        if self._running < REQUESTS_MAX or scope["path"] in HEALTH_CHECKS:
            return False
        self.close_unfinished()  # makes room for the next request, if slow bodies are the reason
        return True


def _certificate_user(transport: asyncio.Transport, rules: Sequence[MappingRule]) -> str | None:
    """Return the user whom the certificate of the client names, empty without a certificate."""
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    return mapped_name(rules, distinguished_name(certificate["subject"])) if certificate else ""
