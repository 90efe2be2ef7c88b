"""The console: a page at / with its files at /console/, and what that page has to know first.

The files are in the folder console/ of this package. They have no secrets, but they are behind the same login as every
other route, so that a browser asks for user and password when the page opens and sends them with each request after it.
The browser revalidates each file by its ETag, so a page never mixes files of two versions.
"""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sskafka.model.version import __version__
from sskafka.servers.http.caller import caller_of
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, Problem

DIRECTORY = Path(__file__).resolve().parents[1] / "console"
PAGE = "index.html"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOT_MODIFIED = 304
FEATURES = {"lab": "sskafka.lab.state_routes", "challenge": "sskafka.challenge.state_routes"}
"""Modules of routes that only some brokers serve, and that the console has a tab for."""


class ConsoleFile(NamedTuple):
    content: bytes
    content_type: str
    etag: str


class Console(BaseModel):
    node_id: int
    version: str
    principal: str
    is_read_only: bool
    features: Annotated[list[str], Field(description="Further tabs of this broker: lab, challenge.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/api/v1/console", tags=["inspection"], summary="The broker that answers, and whether changes are allowed"
    )
    async def console(request: Request) -> Console:
        return Console(
            node_id=context.configuration.node_id,
            version=__version__,
            principal=caller_of(request).principal,
            is_read_only=context.configuration.is_read_only,
            features=[name for name, module in FEATURES.items() if module in context.configuration.route_modules],
        )

    if context.configuration.has_console:

        @router.get("/", include_in_schema=False)
        async def page(request: Request) -> Response:
            return _answer(request, PAGE)

        @router.get("/console/{name:path}", include_in_schema=False)
        async def file(name: str, request: Request) -> Response:
            return _answer(request, name)

    return router


def read_file(name: str) -> ConsoleFile | None:
    """Return a file of the console, or None if it has no such file."""
    path = (DIRECTORY / name).resolve()
    content_type = CONTENT_TYPES.get(path.suffix)
    if content_type is None or not path.is_relative_to(DIRECTORY) or not path.is_file():
        return None
    content = path.read_bytes()
    return ConsoleFile(content, content_type, f'"{sha256(content).hexdigest()[:32]}"')


def _answer(request: Request, name: str) -> Response:
    found = read_file(name)
    if found is None:
        raise Problem(NOT_FOUND, f"the console has no file {name!r}")
    headers = {**HEADERS, "ETag": found.etag}
    if found.etag in request.headers.get("if-none-match", "").replace(" ", "").split(","):
        return Response(status_code=NOT_MODIFIED, headers=headers)
    return Response(found.content, headers=headers, media_type=found.content_type)
