"""The APIs that a kind of listener serves: rows of the API table (wire/apis.py), each bound to its handler.

A handler has one of two shapes:

    (message, request) -> response message    decoded and encoded here; a coroutine function completes later, and a
                                              generator yields where other work may come in between
    (request) -> response frame | None        decodes and encodes itself; None when it parked the request, to complete
                                              its slot later, or when the client wants no response

Handlers are constructed at the first request for one of their APIs, so that a broker starts without those that nobody
uses. From then on `ServedApi.handle` is the handler itself.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from time import perf_counter_ns
from typing import Any, TypeAlias, TypeVar

from sskafka.model.counters import RequestCounters
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.servers.kafka.frames import response_frame, response_frame_in_slices
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.served_api import Handler, ServedApi
from sskafka.servers.kafka.sliced_handlers import AnswerNow, CallSteps, generator_handler, sliced_handler
from sskafka.wire.apis import API_BY_KEY, Api, Listeners

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
RequestT = TypeVar("RequestT")
MessageHandler: TypeAlias = Callable[[RequestT, Request], Any]
"""From request message to response message, or to an awaitable of it."""
Wrap: TypeAlias = Callable[[Api, Handler], Handler]
HandlerFactories: TypeAlias = Mapping[str, Callable[[], object]]
"""By family of handlers, as named in the API table: constructs the object with the handlers of the family."""


class Registry:
    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self.by_key: dict[int, ServedApi] = {}
        self._families: dict[str, object] = {}
        self._wrap: Wrap | None = None

    def __iter__(self) -> Iterator[ServedApi]:
        return iter(self.by_key.values())

    def serve(self, listeners: Listeners, factories: HandlerFactories) -> None:
        """Serve the APIs that the table has for any of `listeners`."""
        for api in API_BY_KEY.values():
            if api.listeners & listeners:
                self.by_key[api.key] = self._bound_at_first_request(api, factories)

    def remove_controller_apis(self) -> None:
        """Serve no longer what nodes ask controllers, which have listeners of their own: votes, registrations, ..."""
        sent_to_controllers = Listeners.UNLISTED | Listeners.CONTROLLER
        for key, served in list(self.by_key.items()):
            if served.api.listeners & sent_to_controllers == sent_to_controllers:
                del self.by_key[key]

    def _bound_at_first_request(self, api: Api, factories: HandlerFactories) -> ServedApi:
        def handle(request: Request) -> Response | None:
            served.unwrapped = self._handler(api, factories)
            self._bind(served)
            return served.unwrapped(request)

        served = ServedApi(api, handle, RequestCounters(api.name))
        return served

    def wrap_handlers(self, wrap: Wrap | None) -> None:
        """Have every request handled by what `wrap` makes of its handler; None: by the handler itself."""
        self._wrap = wrap
        for served in self.by_key.values():
            self._bind(served)

    def _bind(self, served: ServedApi) -> None:
        served.handle = served.unwrapped if self._wrap is None else self._wrap(served.api, served.unwrapped)

    def _handler(self, api: Api, factories: HandlerFactories) -> Handler:
        family, method = api.handler.split(".")
        if family not in self._families:
            self._families[family] = factories[family]()
        handle = getattr(self._families[family], method)
        takes_frame = len(inspect.signature(handle).parameters) == 1
        return handle if takes_frame else message_handler(api, handle, self.spawn)


def message_handler(api: Api, handle: MessageHandler[Any], spawn: Spawn) -> Handler:
    """Return a handler that decodes the request, calls `handle` and encodes the response; `spawn` runs coroutines."""
    if inspect.isgeneratorfunction(handle):
        return generator_handler(api, handle)
    if inspect.iscoroutinefunction(handle):
        return sliced_handler(api, _completing(api, handle, spawn), _awaiting(handle, spawn))
    return sliced_handler(api, _answering(api, handle), _calling(handle))


def _answering(api: Api, handle: MessageHandler[Any]) -> AnswerNow:
    def answer(message: Any, request: Request) -> Response:
        return response_frame(api.key, request.version, request.correlation_id, handle(message, request))

    return answer


def _calling(handle: MessageHandler[Any]) -> CallSteps:
    def call(message: Any, request: Request) -> Generator[None, None, Any]:
        yield from ()
        return handle(message, request)

    return call


def _completing(api: Api, handle: MessageHandler[Any], spawn: Spawn) -> AnswerNow:
    def answer(message: Any, request: Request) -> None:
        slot = request.park()

        async def complete() -> None:
            # An error in a request closes its connection and must not end the broker.
            try:
                response = await handle(message, request)
                steps = response_frame_in_slices(api.key, request.version, request.correlation_id, response)
                slot.complete(await in_turns(steps))
            except Exception as error:
                slot.fail(error)

        spawn(complete())

    return answer


async def in_turns(steps: Generator[None, None, Response]) -> Response:
    """Return the result of the steps. Let other work come in between if they take long."""
    over_ns = perf_counter_ns() + SLICE_NS
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: Response = stop.value
            return result
        if perf_counter_ns() >= over_ns:
            await asyncio.sleep(0)
            over_ns = perf_counter_ns() + SLICE_NS


def _awaiting(handle: MessageHandler[Any], spawn: Spawn) -> CallSteps:
    def call(message: Any, request: Request) -> "Generator[asyncio.Future[Any], None, Any]":
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def complete() -> None:
            try:
                done.set_result(await handle(message, request))
            except Exception as error:
                done.set_exception(error)

        spawn(complete())
        yield done
        return done.result()

    return call


class ServedApis:
    """The APIs that the listeners of a broker serve at the moment.

    Before the broker has joined its cluster, it serves only the APIs that other nodes need so that it can join, and
    closes the connections of clients. They connect again, as they do while a port is not open yet."""

    def __init__(self) -> None:
        self.by_key: dict[int, ServedApi] = {}

    def open_to_nodes(self, registry: Registry) -> None:
        for key, served in registry.by_key.items():
            is_served = served.api.listeners & Listeners.STARTING
            self.by_key[key] = served if is_served else ServedApi(served.api, _refuse_client, served.counters)

    def open_to_all(self, registry: Registry) -> None:
        self.by_key.update(registry.by_key)


def _refuse_client(request: Request) -> Response | None:
    request.connection.close()
    return None
