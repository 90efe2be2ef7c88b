"""`console.read.only`: the routes under /api/v1 show the cluster and refuse to change it."""

from typing import Any

from fastapi import Depends
from starlette.requests import Request

from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.guard import HARMLESS
from sskafka.servers.http.problems import FORBIDDEN, Problem

PREFIX = "/api/v1/"
REFUSAL = "this broker's console is read-only (console.read.only=true); use the command line or a Kafka client"


def read_only_check(context: HttpContext) -> Any:
    """Return a dependency of all routes. Every method but GET, HEAD and OPTIONS is a change."""

    async def check(request: Request) -> None:
        is_change = request.method not in HARMLESS and request.url.path.startswith(PREFIX)
        if is_change and context.configuration.is_read_only:
            raise Problem(FORBIDDEN, REFUSAL)

    return Depends(check)
