"""A row of the API table with its handler and counters, as dispatch reads it for every request."""

from collections.abc import Callable
from typing import TypeAlias

from sskafka.model.counters import RequestCounters
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import Api

Handler: TypeAlias = Callable[[Request], Response | None]
"""Returns the response frame, or None if the request was parked or the client wants no response."""


class ServedApi:
    __slots__ = (
        "api",
        "counters",
        "flexible_from",
        "handle",
        "max_version",
        "min_version",
        "name",
        "operation",
        "unwrapped",
    )

    def __init__(self, api: Api, handle: Handler, counters: RequestCounters) -> None:
        self.api = api
        self.name = api.name
        self.min_version = api.min_version
        self.max_version = api.max_version
        self.flexible_from = api.flexible_from
        self.operation = api.operation
        self.handle = self.unwrapped = handle
        """`handle` is `unwrapped`, or a wrapper around it while clients have quotas."""
        self.counters = counters
