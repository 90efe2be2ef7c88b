"""Checks before every route, and `console.read.only`, which makes routes refuse changes.

- A request must be addressed to this broker by one of its names, by localhost or by an IP address, whatever its method:
  with DNS rebinding, a page of another site would otherwise read records. Health checks are exempt; they say nothing.
- A request that changes something must not come from a page of another host or port.
- The size of a body is limited, and so is the size of all bodies together. The number of its elements is limited, too:
  parsing 16 MB of empty lists takes seconds and half a gigabyte, and no health check is answered in that time.
- Bodies are JSON, whatever the Content-Type says: the lab's own examples send `application-json`.

No answer carries CORS headers: pages of other sites cannot read the answers.
"""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from fastapi import Depends
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import FORBIDDEN, TOO_LARGE, UNAVAILABLE, Problem, problem

BODY_BYTES_MAX = 16 * 1024 * 1024
BODIES_BYTES_MAX = 128 * 1024 * 1024
BODY_ELEMENTS_MAX = 500_000
"""Commas and opening brackets of a body, also those in texts."""
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
HEALTH_CHECKS = frozenset({"/livez", "/readyz"})
"""Load balancers and container engines request these with any host name."""
ANY_HOST = "*"
CHANGES_PREFIX = "/api/v1/"
READ_ONLY_REFUSAL = (
    "this broker's console is read-only (console.read.only=true); use the command line or a Kafka client"
)
_JSON = (b"content-type", b"application/json")


class Guard:
    def __init__(self, app: ASGIApp, allowed_hosts: frozenset[str]) -> None:
        self._app = app
        self._allowed_hosts = frozenset(host.lower() for host in allowed_hosts) | {"localhost"}
        self._bodies_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        is_harmless = scope["method"] in HARMLESS
        is_health_check = is_harmless and scope["path"] in HEALTH_CHECKS
        refusal = None if is_health_check else self._refusal(headers, is_harmless)
        if refusal is not None:
            await problem(FORBIDDEN, refusal)(scope, receive, send)
        elif is_harmless:
            await self._app(scope, receive, send)
        elif _announced_bytes(headers) > BODY_BYTES_MAX:
            await problem(TOO_LARGE, _too_large())(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        body_bytes = elements = 0

        async def receive_limited() -> Message:
            nonlocal body_bytes, elements
            message = await receive()
            body = message.get("body", b"")
            size_bytes = len(body)
            body_bytes += size_bytes
            elements += body.count(b",") + body.count(b"[") + body.count(b"{")
            self._bodies_bytes += size_bytes
            if body_bytes > BODY_BYTES_MAX:
                raise Problem(TOO_LARGE, _too_large())
            if elements > BODY_ELEMENTS_MAX:
                raise Problem(TOO_LARGE, f"a request body may have at most {BODY_ELEMENTS_MAX} elements")
            if self._bodies_bytes > BODIES_BYTES_MAX:
                raise Problem(UNAVAILABLE, "too many large requests at once")
            return message

        try:
            await self._app(_with_json_body(scope), receive_limited, send)
        finally:
            self._bodies_bytes -= body_bytes

    def _refusal(self, headers: dict[bytes, bytes], is_harmless: bool) -> str | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_own(_host_name(host)):
            return f"{host!r} is not a name of this broker; add it to http.allowed.hosts"
        origin = headers.get(b"origin")
        if is_harmless or origin is None:
            return None
        is_own_page = origin.decode("latin-1").partition("://")[2].lower() == host.lower()
        return None if is_own_page else f"pages of {origin.decode('latin-1')!r} may not send changes"

    def _is_own(self, host: str) -> bool:
        return ANY_HOST in self._allowed_hosts or host in self._allowed_hosts or _is_ip_address(host)


def _host_name(address: str) -> str:
    """Return the host without the port and the brackets of IPv6."""
    try:
        return (urlsplit(f"//{address}").hostname or "").lower()
    except ValueError:
        return ""


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _announced_bytes(headers: dict[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _with_json_body(scope: Scope) -> dict[str, Any]:
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, _JSON]}


def _too_large() -> str:
    return f"a body has at most {BODY_BYTES_MAX} bytes"


def read_only_check(context: HttpContext) -> Any:
    """Return a dependency of all routes. Every method but GET, HEAD and OPTIONS is a change."""

    async def check(request: Request) -> None:
        is_change = request.method not in HARMLESS and request.url.path.startswith(CHANGES_PREFIX)
        if is_change and context.configuration.is_read_only:
            raise Problem(FORBIDDEN, READ_ONLY_REFUSAL)

    return Depends(check)
