"""Requests that are too long for one turn of the event loop: decoded, handled and encoded in slices.

    Connection -> handler of the API -> begin(request, steps) -> take_turn, take_turn, ... -> response slot

The steps of a request are a generator. It yields None where other work may come in between, and a future that it waits
for. One request at a time has turns; the others wait with their undecoded bytes, which `RequestMemory` bounds. So the
memory for decoding and answering is needed once. Requests of moderate size have turns of their own and do not wait for
larger ones, and neither do Produce requests, which need no more memory than their bytes. Of the waiting requests,
shorter ones go first: a request of 16 MB is overtaken by small ones that arrive within the next 1.6 seconds.

The connection of a long request is held until the request is handled, so that later requests do not overtake it.
"""

import asyncio
import heapq
from collections.abc import Callable, Generator
from struct import error as StructError  # noqa: N812
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeAlias

from sskafka.servers.kafka.fair_turns import SLICE_NS, FairTurns
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.errors import MalformedMessageError

if TYPE_CHECKING:
    from sskafka.servers.kafka.response_slot import ResponseSlot

LONG_REQUEST_BYTES = 8 * 1024
"""Requests above this size are decoded in slices."""
MODERATE_REQUEST_BYTES = 128 * 1024
PRECEDENCE_NS_PER_BYTE = 100

_GONE = memoryview(b"")

Steps: TypeAlias = "Generator[asyncio.Future[Any] | None, None, Response | None]"


class LongRequest(Request):
    """A request that was parked before it was handled, with bytes of its own."""

    __slots__ = ("_release_memory", "precedence", "slot", "steps")

    def __init__(self, request: Request, frame: memoryview, release_memory: Callable[[], None] | None) -> None:
        super().__init__(
            request.connection,
            request.version,
            request.correlation_id,
            request.client_id,
            frame,
            request.position,
            request.received_ns,
            request.api_key,
        )
        self.slot: ResponseSlot = request.park()
        self._release_memory = release_memory
        self.precedence = request.received_ns + len(frame) * PRECEDENCE_NS_PER_BYTE
        self.steps: Steps | None = None

    def park(self) -> "ResponseSlot":
        return self.slot

    def release_frame(self) -> None:
        """Give the bytes of the request back. Its steps call this when they have decoded them."""
        self.frame = _GONE
        release, self._release_memory = self._release_memory, None
        if release is not None:
            release()


class LongRequests:
    """The long requests of a listener."""

    def __init__(self, turns: FairTurns) -> None:
        self._turns = turns
        self._moderate, self._large = _Queue(turns), _Queue(turns)

    def begin(self, request: LongRequest, steps: Steps, alone: bool = False) -> None:
        if alone:
            _Queue(self._turns).begin(request, steps)
            return
        is_moderate = len(request.frame) <= MODERATE_REQUEST_BYTES
        (self._moderate if is_moderate else self._large).begin(request, steps)


class _Queue:
    """Requests of which one at a time has turns."""

    def __init__(self, turns: FairTurns) -> None:
        self._turns = turns
        self._waiting: list[tuple[int, int, LongRequest]] = []
        self._number = 0
        self._current: LongRequest | None = None

    def begin(self, request: LongRequest, steps: Steps) -> None:
        request.steps = steps
        request.connection.hold()
        self._put(request)

    def _put(self, request: LongRequest) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (request.precedence, self._number, request))
        if self._current is None:
            self._next()

    def _next(self) -> None:
        if self._waiting:
            self._current = heapq.heappop(self._waiting)[2]
            self._turns.put(self)

    def take_turn(self) -> None:
        request = self._current
        assert request is not None
        assert request.steps is not None
        over_ns = perf_counter_ns() + SLICE_NS
        awaited: asyncio.Future[Any] | None = None
        try:
            while awaited is None and not request.connection.closed:
                if perf_counter_ns() >= over_ns:
                    self._turns.put(self)
                    return
                awaited = next(request.steps)
        except StopIteration as stop:
            self._end(request, stop.value, None)
        except Exception as error:
            self._end(request, None, error)
        else:
            if awaited is None:
                request.steps.close()
                self._end(request, None, None)
            else:
                awaited.add_done_callback(lambda _: self._put(request))
        self._current = None
        self._next()

    def _end(self, request: LongRequest, response: Response | None, error: Exception | None) -> None:
        request.release_frame()
        connection = request.connection
        if connection.closed:
            return
        if isinstance(error, MalformedMessageError | StructError | IndexError | UnicodeDecodeError):
            connection.refuse(f"malformed request: {error}")
        elif error is not None:
            request.slot.fail(error)
        elif response is not None:
            request.slot.complete(response)
        connection.release()
