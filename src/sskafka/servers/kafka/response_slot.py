"""The position of a parked request's response in the order of responses of its connection."""

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING

from sskafka.servers.kafka.request import Response
from sskafka.servers.kafka.served_api import ServedApi

if TYPE_CHECKING:
    from sskafka.servers.kafka.connection import Connection


class ResponseSlot:
    __slots__ = ("_api", "_connection", "_parked_ns", "_received_ns", "finish", "on_abandoned", "response")

    def __init__(self, connection: "Connection", api: ServedApi, received_ns: int) -> None:
        self._connection = connection
        self._api = api
        self._received_ns = received_ns
        self._parked_ns = perf_counter_ns()
        self.response: Response | None = None
        self.on_abandoned: Callable[[], None] | None = None
        """Set by the handler that parked the request; called if the client disconnects before the response."""
        self.finish: Callable[[Response], Response] | None = None
        """Changes the response before it is sent; None while no client has a quota."""

    def complete(self, response: Response) -> None:
        assert self.response is None, "a request is answered once"
        self.on_abandoned = None  # it refers to the parked operation, which refers to this slot
        self.response = response if self.finish is None else self.finish(response)
        self._api.counters.observe_parked(self._received_ns, self._parked_ns, perf_counter_ns())
        self._connection.settle()

    def fail(self, error: Exception) -> None:
        self._api.counters.errors += 1
        self._connection.abort_after(error, self._api)
