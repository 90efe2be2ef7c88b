"""Handlers of coordinator APIs, which may complete later: when a decision is committed, or when a group has rebalanced.

    message -> handle(message, request, completion) -> completion.answer(response) | completion.refuse(code)

A response that is ready before the handler returns is sent like that of any other handler. A later response goes
through the response slot of the parked request.
"""

import asyncio
from collections.abc import Callable, Generator, Hashable
from typing import Any, TypeVar

from sskafka.model.coordination import CallbackCompletion, Completion
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.servers.kafka.served_api import Handler
from sskafka.servers.kafka.sliced_handlers import CallSteps, Prepare, sliced_handler
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.schema import Message

MessageT = TypeVar("MessageT")
"""A request, or what was prepared of it."""


class RequestCompletion:
    """The completion of a client's request; it is called once."""

    __slots__ = ("_adapt", "_key", "_refusal", "_request", "_response", "_slot")

    def __init__(
        self,
        key: int,
        request: Request,
        refusal: Callable[[ErrorCode], Message],
        adapt: Callable[[Any, int], None] | None = None,
    ) -> None:
        self._adapt = adapt
        self._key = key
        self._request = request
        self._refusal = refusal
        self._response: Response | None = None
        self._slot: ResponseSlot | None = None

    def answer(self, response: Any) -> None:
        request, slot = self._request, self._slot
        if self._adapt is not None:
            self._adapt(response, request.version)
        try:
            frame = response_frame(self._key, request.version, request.correlation_id, response)
        except Exception as error:  # an error closes the connection of this request and must not reach the coordinator
            if slot is None:
                raise
            slot.fail(error)
            return
        if slot is None:
            self._response = frame
        else:
            slot.complete(frame)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        refusal = self._refusal(error)
        if message and hasattr(refusal, "error_message"):
            refusal.error_message = message
        self.answer(refusal)

    def response_or_park(self, abandoned: Callable[[], None] | None = None) -> Response | None:
        """Return the result of the handler. `abandoned` is called if the client disconnects before the response."""
        if self._response is None:
            self._slot = self._request.park()
            self._slot.on_abandoned = abandoned
        return self._response


def completing_api(
    key: int,
    handle: Callable[[MessageT, Request, Completion], None],
    refused: Callable[[MessageT, ErrorCode], Message],
    abandoned: Callable[[MessageT, Completion], None] | None = None,
    adapt: Callable[[Any, int], None] | None = None,
    prepare: Prepare | None = None,
    call_in_steps: CallSteps | None = None,
) -> Handler:
    """Return the handler of an API; `refused` makes a response that has only an error code.

    `abandoned` is called when a client disconnects while it waits; `adapt` fits a response to the request's version.
    The message that the others get is what `prepare` makes of it. `call_in_steps` handles the pieces of a long request
    in place of `handle`."""

    def answer(message: MessageT, request: Request) -> Response | None:
        completion = RequestCompletion(key, request, lambda error: refused(message, error), adapt)
        handle(message, request, completion)
        return completion.response_or_park(None if abandoned is None else lambda: abandoned(message, completion))

    def call(message: MessageT, request: Request) -> "Generator[asyncio.Future[Any], None, Any]":
        completion = _PieceCompletion(lambda error: refused(message, error))
        handle(message, request, completion)
        if not completion.future.done():
            yield completion.future
        return completion.future.result()

    return sliced_handler(API_BY_KEY[key], answer, call_in_steps or call, prepare)


class _PieceCompletion:
    """The completion of a piece of a request."""

    __slots__ = ("_refusal", "future")

    def __init__(self, refusal: Callable[[ErrorCode], Message]) -> None:
        self._refusal = refusal
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, response: Any) -> None:
        self.future.set_result(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self.answer(self._refusal(error))


class Gathering:
    """Collects the results of several completions, `part(key)` each, and calls `done` with all of them.

    The result of a part that is refused is its error code."""

    def __init__(self, done: Callable[[dict[Hashable, Any]], None]) -> None:
        self._done = done
        self._answers: dict[Hashable, Any] = {}
        self._open = 1  # one for the caller that still creates parts

    def part(self, key: Hashable) -> Completion:
        self._open += 1
        return CallbackCompletion(lambda answer: self.answered(key, answer), lambda error, _: self.answered(key, error))

    def answered(self, key: Hashable, answer: Any) -> None:
        self._answers[key] = answer
        self.close()

    def close(self) -> None:
        """Declare that there are no further parts."""
        self._open -= 1
        if self._open == 0:
            self._done(self._answers)
