import asyncio
from typing import Any

import pytest

from sskafka.servers.http import guard
from sskafka.servers.http.guard import Guard
from sskafka.servers.http.problems import Problem


class Behind:
    """What stands behind the guard: it reads the body and notes what it got."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = dict(scope["headers"])
        more = True
        while more:
            message = await receive()
            self.body += message.get("body", b"")
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def request(
    method: str = "POST",
    headers: dict[str, str] | None = None,
    pieces: tuple[bytes, ...] = (b"{}",),
    *hosts: str,
    path: str = "/",
) -> tuple[int, Behind]:
    behind = Behind()
    sent: list[dict[str, Any]] = []
    left = list(pieces)
    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    app = Guard(behind, frozenset(hosts))
    asyncio.run(app({"type": "http", "method": method, "path": path, "headers": raw}, receive, send))
    return sent[0]["status"], behind


@pytest.mark.parametrize(
    "host", ["localhost:8001", "LOCALHOST", "127.0.0.1:8001", "[::1]:8001", "10.0.0.7", "broker-1:80"]
)
def test_own_names_and_addresses_are_let_in(host: str) -> None:
    assert request("POST", {"Host": host}, (b"{}",), "broker-1")[0] == 204


@pytest.mark.parametrize("host", ["evil.example:8001", "localhost.evil.example", "", "[::1", "broker-2:80"])
def test_names_of_others_are_refused_whatever_the_method(host: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST", "DELETE", "PUT", "PATCH"):
        assert request(method, {"Host": host}, (b"{}",), "broker-1")[0] == 403
    assert request("GET", {}, (b"",), "broker-1")[0] == 403


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_health_checks_may_come_under_any_name(path: str) -> None:
    assert request("GET", {"Host": "balancer.example"}, (b"",), path=path)[0] == 204
    assert request("POST", {"Host": "balancer.example"}, (b"{}",), path=path)[0] == 403


def test_a_star_allows_every_name() -> None:
    assert request("POST", {"Host": "anything.example"}, (b"{}",), "*")[0] == 204


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8001", 204),
        ("http://localhost:3000", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://LOCALHOST:8001", 204),
        ("http://console.example", 403),
        ("http://localhost", 403),
        ("http://[", 403),
    ],
)
def test_pages_of_other_sites_change_nothing(origin: str, status: int) -> None:
    headers = {"Host": "localhost:8001", "Origin": origin}
    assert request("POST", headers, (b"{}",), "console.example")[0] == status


@pytest.mark.parametrize("content_type", ["application-json", "text/plain", "application/x-www-form-urlencoded"])
def test_bodies_are_json_whatever_the_header_says(content_type: str) -> None:
    _, behind = request("POST", {"Host": "localhost", "Content-Type": content_type})
    assert behind.headers[b"content-type"] == b"application/json"


def test_bodies_that_are_announced_too_large_are_refused_unread() -> None:
    headers = {"Host": "localhost", "Content-Length": str(guard.BODY_BYTES_MAX + 1)}
    status, behind = request("POST", headers)
    assert (status, behind.body) == (413, b"")


def test_bodies_that_become_too_large_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_BYTES_MAX", 10)
    with pytest.raises(Problem) as refused:
        request("POST", {"Host": "localhost"}, (b"12345", b"67890", b"1"))
    assert refused.value.status_code == 413


def test_all_bodies_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODIES_BYTES_MAX", 15)
    behind = Behind()
    headers = [(b"host", b"localhost")]

    async def reads_twice(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await behind(scope, receive, send)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"1234567890", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        """Nobody reads it."""

    async def run() -> None:
        app = Guard(reads_twice, frozenset())
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        with pytest.raises(Problem) as refused:
            await app(scope, receive, send)
        assert refused.value.status_code == 503
        monkeypatch.setattr(guard, "BODIES_BYTES_MAX", 20)
        await app(scope, receive, send)  # what was read before is given back

    asyncio.run(run())
