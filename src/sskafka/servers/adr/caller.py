"""The client of the ADR-0011 service, for the authorizer.

Clients of the binary protocol are anonymous. For clients of the HTTP server, the HTTP process names the principal and
the address: `principal` and `host` in the messages of endpoints.py.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sskafka.model.acl import ANONYMOUS
from sskafka.model.listeners import HTTP_NAME


class AdrCaller(NamedTuple):
    """A RequestContext (servers/kafka/authorization.py)."""

    principal: str
    host: str
    client_listener: str
    api_name: str


def binary_caller(host: str, api_name: str) -> AdrCaller:
    return AdrCaller(ANONYMOUS, host, "ADR", api_name)


def http_caller(details: Mapping[str, Any], api_name: str) -> AdrCaller:
    return AdrCaller(details.get("principal") or ANONYMOUS, details.get("host") or "", HTTP_NAME, api_name)
