"""Handlers around those of the APIs that keep every turn of the event loop short, however long a request is.

    small request that lists little     decoded, handled and encoded at once
    request with many bytes             decoded, and prepared if its API has a step for that, in slices
    request that lists much             handled in pieces (request_pieces.py), its response encoded in slices
    handler that is a generator         handled in slices, its response encoded in slices

All but the first become long requests (long_requests.py).
"""

import asyncio
from collections.abc import Callable, Generator
from time import perf_counter_ns
from typing import Any, TypeAlias

from sskafka.model.computation import Computation, finished
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.servers.kafka.frames import response_frame_in_slices
from sskafka.servers.kafka.long_requests import LONG_REQUEST_BYTES, LongRequest, Steps
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.request_pieces import Pieces, handle_in_pieces, pieces_of
from sskafka.servers.kafka.served_api import Handler
from sskafka.wire.apis import Api
from sskafka.wire.codec import decode, decode_in_slices

AnswerNow: TypeAlias = Callable[[Any, Request], Response | None]
"""Handles a decoded request. None: the request was parked."""
CallSteps: TypeAlias = Callable[[Any, Request], Generator["asyncio.Future[Any] | None", None, Any]]
"""Handles a decoded request in steps; returns the response message."""
Prepare: TypeAlias = Callable[[Any, Request], Computation[Any]]
"""Does, in steps, what a request with many bytes takes before it is handled in one."""


def decode_request(cls: type[Any], request: Request) -> Any:
    """Decode a request. Ignore trailing bytes, as Kafka does: librdkafka's Metadata v13 for all topics has some."""
    return decode(cls, request.version, request.frame, request.position, allow_trailing=True)


def sliced_handler(api: Api, answer_now: AnswerNow, call: CallSteps, prepare: Prepare | None = None) -> Handler:
    """Return a handler that calls `answer_now` for all requests but those that are handled in pieces, by `call`.

    The message that `answer_now` gets is what `prepare` makes of it."""

    def handler(request: Request) -> Response | None:
        if len(request.frame) > LONG_REQUEST_BYTES:
            long = request.connection.take_frame(request)
            request.connection.begin_long_request(long, decoded(long))
            return None
        message = decode_request(api.request_class(), request)
        pieces = pieces_of(api.key, request.version)
        if pieces is None or not pieces.is_long(message):
            return answer_now(message if prepare is None else finished(prepare(message, request)), request)
        long = request.connection.take_frame(request)
        long.release_frame()
        request.connection.begin_long_request(long, in_pieces(message, long, pieces))
        return None

    def decoded(long: LongRequest) -> Steps:
        message = yield from _decoded(api, long)
        pieces = pieces_of(api.key, long.version)
        if pieces is None or not pieces.is_long(message):
            if prepare is not None:
                message = yield from prepare(message, long)
                yield None
            return answer_now(message, long)
        return (yield from in_pieces(message, long, pieces))

    def in_pieces(message: Any, long: LongRequest, pieces: Pieces) -> Steps:
        response = yield from handle_in_pieces(message, long.version, pieces, lambda piece: call(piece, long))
        return (yield from response_frame_in_slices(api.key, long.version, long.correlation_id, response))

    return handler


def generator_handler(api: Api, generate: CallSteps) -> Handler:
    """Return a handler for a generator. It is finished at once if it does not take long and waits for nothing."""

    def handler(request: Request) -> Response | None:
        if len(request.frame) > LONG_REQUEST_BYTES:
            long = request.connection.take_frame(request)
            request.connection.begin_long_request(long, decoded(long))
            return None
        steps = answer(decode_request(api.request_class(), request), request)
        over_ns = perf_counter_ns() + SLICE_NS
        awaited: asyncio.Future[Any] | None = None
        try:
            while awaited is None and perf_counter_ns() < over_ns:
                awaited = next(steps)
        except StopIteration as stop:
            response: Response = stop.value
            return response
        long = request.connection.take_frame(request)
        long.release_frame()
        request.connection.begin_long_request(long, steps if awaited is None else _continued(awaited, steps))
        return None

    def decoded(long: LongRequest) -> Steps:
        message = yield from _decoded(api, long)
        return (yield from answer(message, long))

    def answer(message: Any, request: Request) -> Steps:
        response = yield from generate(message, request)
        return (yield from response_frame_in_slices(api.key, request.version, request.correlation_id, response))

    return handler


def _continued(awaited: "asyncio.Future[Any]", steps: Steps) -> Steps:
    yield awaited
    return (yield from steps)


def _decoded(api: Api, long: LongRequest) -> Generator[None, None, Any]:
    message = yield from decode_in_slices(api.request_class(), long.version, long.frame, long.position)
    long.release_frame()
    return message
