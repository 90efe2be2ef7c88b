"""The client that sends an HTTP request: set by authentication.py, read by the routes."""

from typing import NamedTuple

from starlette.requests import Request
from starlette.types import Scope

from sskafka.model.acl import ANONYMOUS

_SCOPE_KEY = "sskafka.caller"


class HttpCaller(NamedTuple):
    principal: str
    host: str
    """The address of the client."""

    @property
    def is_anonymous(self) -> bool:
        return self.principal == ANONYMOUS


def host_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def set_caller(scope: Scope, principal: str) -> None:
    scope[_SCOPE_KEY] = HttpCaller(principal, host_of(scope))


def caller_of(request: Request) -> HttpCaller:
    caller: HttpCaller = request.scope[_SCOPE_KEY]
    return caller
