"""Who calls the ADR-0011 service, for the authorizer.

Clients of the binary protocol are anonymous. For clients of the HTTP server, the HTTP process may name a principal and
an address: `principal` and `host` in the messages of endpoints.py; without them the client is anonymous, too.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sskafka.model.acl import ANONYMOUS


class AdrCaller(NamedTuple):
    """A RequestContext (servers/kafka/authorization.py)."""

    principal: str
    host: str
    listener_name: str
    api_name: str


def binary_caller(host: str, api_name: str) -> AdrCaller:
    return AdrCaller(ANONYMOUS, host, "ADR", api_name)


def http_caller(details: Mapping[str, Any], api_name: str) -> AdrCaller:
    return AdrCaller(details.get("principal") or ANONYMOUS, details.get("host") or "", "HTTP", api_name)
