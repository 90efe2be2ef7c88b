"""Which APIs this broker serves: the table that dispatch looks into and that ApiVersions is made from.

A handler takes a `Request` and returns the finished frame, or None when it parked the request (or when the
client wants no answer). Most handlers are written against decoded messages; `Registry.add_message` wraps those.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sskafka.model.counters import RequestCounters
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import API_BY_KEY, OWN_KEYS_FROM
from sskafka.wire.codec import decode

Handler: TypeAlias = Callable[[Request], Response | None]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
RequestT = TypeVar("RequestT")
MessageHandler: TypeAlias = Callable[[RequestT, Request], Any]
"""From request message to response message, or to an awaitable of it."""


class Api(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    advertised_min: int
    handle: Handler
    counters: RequestCounters
    cluster_operation: Operation | None
    """What the caller must be allowed to do on the cluster; None where the handler asks for each resource."""
    is_advertised: bool = True
    """False for what the nodes of a cluster ask each other here: clients of other software are not told of it."""

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


class Registry:
    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self.by_key: dict[int, Api] = {}

    def __iter__(self) -> Iterator[Api]:
        return iter(sorted(self.by_key.values()))

    def add(
        self,
        key: int,
        handle: Handler,
        *,
        versions: tuple[int, int] | None = None,
        advertised_min: int | None = None,
        cluster_operation: Operation | None = None,
        is_advertised: bool = True,
    ) -> None:
        """Serve an API; `versions` narrows what the schema knows."""
        schema = API_BY_KEY[key]
        low, high = versions or (schema.min_version, schema.max_version)
        self.by_key[key] = Api(
            key=key,
            name=schema.name,
            min_version=low,
            max_version=high,
            flexible_from=schema.flexible_from,
            advertised_min=low if advertised_min is None else advertised_min,
            handle=handle,
            counters=RequestCounters(schema.name),
            cluster_operation=cluster_operation,
            is_advertised=is_advertised and key < OWN_KEYS_FROM,
        )

    def add_message(
        self,
        key: int,
        handle: MessageHandler[Any],
        *,
        versions: tuple[int, int] | None = None,
        cluster_operation: Operation | None = None,
        is_advertised: bool = True,
    ) -> None:
        """Serve an API with a function from decoded request to response message, plain or async."""
        self.add(
            key,
            self.message_handler(key, handle),
            versions=versions,
            cluster_operation=cluster_operation,
            is_advertised=is_advertised,
        )

    def message_handler(self, key: int, handle: MessageHandler[Any]) -> Handler:
        """The handler that decodes the request, calls `handle` and encodes what it answers."""
        wrap = self._wrap_async if inspect.iscoroutinefunction(handle) else self._wrap
        return wrap(key, handle)

    def _wrap(self, key: int, handle: MessageHandler[Any]) -> Handler:
        schema = API_BY_KEY[key]

        def handler(request: Request) -> Response:
            message = decode_request(schema.request_class(), request)
            return response_frame(key, request.version, request.correlation_id, handle(message, request))

        return handler

    def _wrap_async(self, key: int, handle: MessageHandler[Any]) -> Handler:
        schema = API_BY_KEY[key]

        def handler(request: Request) -> None:
            message = decode_request(schema.request_class(), request)
            slot = request.park()

            async def answer() -> None:
                # The boundary of a request: whatever goes wrong ends its connection, not the broker.
                try:
                    response = await handle(message, request)
                    slot.complete(response_frame(key, request.version, request.correlation_id, response))
                except Exception as error:
                    slot.fail(error)

            self.spawn(answer())

        return handler


def decode_request(cls: type[Any], request: Request) -> Any:
    """Bytes behind the message are let pass, as Kafka does: librdkafka's Metadata v13 for all topics has three."""
    return decode(cls, request.version, request.frame, request.position, allow_trailing=True)
