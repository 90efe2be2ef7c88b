"""One client connection: bytes in, requests dispatched in order, responses out in the same order.

    socket -> shared receive buffer -> frames -> ServedApi.handle -> responses -> one write
                    |                                 |
          large frame: a buffer of its own     parked: a slot keeps its position

Rules
- Every complete frame in the buffer is handled before anything is written; then all responses leave in one write. A
  connection that has more to do than fits into a slice of time waits for its next turn (fair_turns.py).
- The receive buffer is shared by all connections of the loop: only the unfinished tail of a frame is kept per
  connection, and a handler must not hold on to its frame.
- The broker stops reading from a client that does not read its responses. So responses accumulate neither in memory
  (file slices are read when the socket has room) nor in number. Bytes that have arrived by then wait unparsed.
- A malformed frame closes its connection and affects nothing else.
"""

import logging
from collections import deque
from collections.abc import Mapping
from struct import error as StructError  # noqa: N812
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from sskafka.model.acl import ANONYMOUS, AuthorizerNotReadyError
from sskafka.model.errors import ErrorCode
from sskafka.model.native import mypyc_attr
from sskafka.servers.kafka.authorization import Authorizer
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.servers.kafka.frames import KEY, REQUEST_START, SIZE, error_frame
from sskafka.servers.kafka.long_requests import LongRequest, Steps
from sskafka.servers.kafka.outgoing import WRITE_CHUNK_BYTES, Outgoing
from sskafka.servers.kafka.refusals import refusal_frame
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.request_memory import LargeRequest
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.servers.kafka.socket_transport import Transport
from sskafka.wire.apis import ApiKey
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.varint import skip_tagged_fields

if TYPE_CHECKING:
    from sskafka.servers.kafka.listener import Listener

log = logging.getLogger(__name__)

LARGE_FRAME_BYTES: Final = 64 * 1024
LARGE_FRAME_BEGINNING_BYTES: Final = 16 * 1024
"""The part of a large frame that must have arrived before the frame gets a buffer of its own."""
UNKNOWN_SOFTWARE: Final = ("unknown", "unknown")

_GONE: Final = memoryview(b"")  # replaces the frame of a parked request, whose buffer is reused
_now_ns: Final = perf_counter_ns
_parse_size: Final = SIZE.unpack_from
_parse_start: Final = REQUEST_START.unpack_from


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(Outgoing):
    __slots__ = (
        "_api",
        "_apis",
        "_awaiting_memory",
        "_backlog",
        "_expects_large",
        "_holds",
        "_is_in_queue",
        "_large",
        "_reading_paused",
        "_request_bytes_max",
        "_slots",
        "_tail",
        "authorizer",
        "client_listener",
        "host",
        "is_token_authenticated",
        "principal",
        "software",
    )

    def __init__(self, listener: "Listener") -> None:
        super().__init__(listener)
        self._tail = b""
        self._backlog = b""  # bytes that had arrived when reading was paused
        self._is_in_queue = False
        self._large: LargeRequest | None = None
        self._expects_large = False  # whether the last request was large
        self._api: ServedApi | None = None
        self._apis: Mapping[int, ServedApi] = listener.apis
        self._request_bytes_max = listener.request_bytes_max
        self._slots: deque[ResponseSlot | Response] = deque()  # parked requests, and the responses after them
        self._reading_paused = False
        self._awaiting_memory = False
        self._holds = 0
        self.principal = ANONYMOUS
        self.is_token_authenticated = False
        """Whether the client has logged in with a delegation token, which only SASL connections allow."""
        self.host = ""
        self.software = UNKNOWN_SOFTWARE
        """Name and version, as the client tells them in ApiVersions."""
        self.client_listener = listener.name
        """Where the client is connected: this listener, or the HTTP server, which passes on its requests."""
        self.authorizer: Authorizer = listener.authorizer

    @property
    def listener_name(self) -> str:
        return self._listener.name

    @property
    def has_partial_request(self) -> bool:
        """Return whether the rest of a request is missing, of which too little has arrived for a buffer of its own."""
        return bool(self._tail)

    @property
    def missing_bytes(self) -> int:
        """Return how much of a large request has not arrived yet."""
        return 0 if self._large is None else self._large.size_bytes - self._large.filled_bytes

    @property
    def has_pending_requests(self) -> bool:
        """Return whether requests are being handled. Responses that the client does not read do not count."""
        return bool(self._slots)

    @property
    def is_silent(self) -> bool:
        """Return whether the client has not sent a request yet."""
        return self._api is None

    # -- the transport's calls

    def connection_made(self, transport: Transport) -> None:
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):  # of two items with IPv4 and of four with IPv6
            self.host = str(peer[0])
            self.peer = f"{self.host}:{peer[1]}"
        else:
            self.peer = "local"
        if not self._listener.admit(self, self.host):
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if isinstance(slot, ResponseSlot) and slot.on_abandoned is not None:
                slot.on_abandoned()
        self._out.clear()
        self._backlog = self._tail = b""
        self._end_large()
        self._listener.forget(self)
        self._transport = None  # which has this connection: without a cycle, both are freed at once

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large.room()
        shared = self._listener.receive_view
        tail = self._tail
        if not tail:
            return self._listener.beginning_view if self._expects_large else shared
        shared[: len(tail)] = tail
        return shared[len(tail) :]

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active_tick = self._listener.tick
        self._listener.counters.bytes_received += nbytes
        self._handle(self._listener.receive_view, len(self._tail) + nbytes)

    def pause_writing(self) -> None:
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._write_paused = False
        self.flush()
        self._maybe_resume_reading()

    # -- requests in

    def _handle(self, view: memoryview, end: int) -> None:
        """Handle received bytes. An error closes this connection and affects nothing else."""
        try:
            if self._large is None:
                self._handle_frames(view, end)
            else:
                self._handle_large(self._large, end)
        except (MalformedMessageError, StructError, IndexError, UnicodeDecodeError) as error:
            self.refuse(f"malformed request: {error}")
        except Exception as error:
            self.abort_after(error, self._api)
        if self._out:
            self.flush()

    def _handle_frames(self, view: memoryview, end: int) -> None:
        position = stop_ns = 0
        received_ns = _now_ns()
        while end - position >= 4 and not self._reading_paused:
            (size,) = _parse_size(view, position)
            frame_start = position + 4
            frame_end = frame_start + size
            if not 8 <= size <= self._request_bytes_max:
                self._refuse_size(size)
                return
            if frame_end > end:
                if size > LARGE_FRAME_BYTES and end - frame_start >= LARGE_FRAME_BEGINNING_BYTES:
                    self._begin_large(view[frame_start:end], size)
                    return
                break
            self._expects_large = False
            now_ns = self._dispatch(view[frame_start:frame_end], received_ns)
            if self.closed:
                return
            position = frame_end
            if self._unwritten_bytes >= WRITE_CHUNK_BYTES:
                self.flush()
            if position == end:
                self._tail = self._backlog = b""
                return
            if not stop_ns:
                stop_ns = min(received_ns + SLICE_NS, self._listener.turns.over_ns)
            if now_ns > stop_ns:
                self._pause_reading()
                self.wait_for_turn()
        rest = bytes(view[position:end])
        self._tail, self._backlog = (b"", rest) if self._reading_paused else (rest, b"")

    def wait_for_turn(self) -> None:
        """Handle the backlog in a later turn of the event loop."""
        if not self._is_in_queue:
            self._is_in_queue = True
            self._listener.turns.put(self)

    def take_turn(self) -> None:
        """Continue with bytes that had arrived when reading was paused, then resume reading."""
        self._is_in_queue = False
        if self._reading_paused and self._may_read():
            self._reading_paused = False
            if self._backlog:
                backlog, self._backlog = bytearray(self._backlog), b""
                self._handle(memoryview(backlog), len(backlog))
            if not self._reading_paused and not self.closed and self._transport is not None:
                self._transport.resume_reading()

    def _begin_large(self, beginning: memoryview, size: int) -> None:
        self._tail = b""
        self._expects_large = True
        served = self._listener.apis.get(KEY.unpack_from(beginning)[0])
        if served is not None and size > served.api.bytes_max:
            self.refuse(f"{served.name} of {size} bytes; at most {served.api.bytes_max} are allowed")
            return
        self._large = self._listener.memory.begin(size, beginning, self)
        self._maybe_wait_for_memory(self._large)

    def _maybe_wait_for_memory(self, large: LargeRequest) -> None:
        if self._listener.memory.is_full_for(large):
            self._awaiting_memory = True
            self._pause_reading()

    def memory_available(self) -> None:
        self._awaiting_memory = False
        if not self.closed:
            self._maybe_resume_reading()

    def _handle_large(self, large: LargeRequest, nbytes: int) -> None:
        memory = self._listener.memory
        memory.received(large, nbytes)
        if not large.is_complete:
            self._maybe_wait_for_memory(large)
            return
        try:
            self._dispatch(large.content(), _now_ns())
        finally:
            self._end_large()

    def _end_large(self) -> None:
        if self._large is not None:
            large, self._large = self._large, None
            self._listener.memory.end(large)

    def take_frame(self, request: Request) -> LongRequest:
        """Return the request with bytes of its own, to handle it later. This parks the request."""
        large, self._large = self._large, None
        if large is None:
            return LongRequest(request, memoryview(bytearray(request.frame)), None)
        return LongRequest(request, large.content(), lambda: self._listener.memory.end(large))

    def begin_long_request(self, request: LongRequest, steps: Steps, *, alone: bool = False) -> None:
        """Handle a request in slices, and no other request of this connection before it is done.

        `alone`: it has turns of its own, instead of waiting for the long requests of other connections."""
        self._listener.long_requests.begin(request, steps, alone)

    def _dispatch(self, frame: memoryview, received_ns: int) -> int:
        """Handle one request; return the time when that was done."""
        key, version, correlation_id, client_id_length = _parse_start(frame, 0)
        api = self._apis.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            self._answer_unsupported(key, version, correlation_id, frame, received_ns)
            return _now_ns()
        self._api = api
        counters = api.counters
        counters.requests += 1
        counters.request_bytes += len(frame)
        position = 10
        client_id = None
        if client_id_length >= 0:
            position += client_id_length
            client_id = str(frame[10:position], "utf-8")
        if version >= api.flexible_from:
            position = skip_tagged_fields(frame, position)
        request = Request(self, version, correlation_id, client_id, frame, position, received_ns, key)
        if api.operation is not None and not request.may_on_cluster(api.operation):
            self._answer_forbidden(api, request)
            return _now_ns()
        response = api.handle(request)
        now_ns = _now_ns()
        if response is None:
            return now_ns
        counters.observe(now_ns - received_ns)
        if isinstance(response, bytes) and not self._slots:
            self._out.append(response)  # the same as `_answer`, inlined for the most frequent case
            self._unwritten_bytes += len(response)
        else:
            self._answer(response)
        return now_ns

    def _answer_forbidden(self, api: ServedApi, request: Request) -> None:
        refusal = refusal_frame(api.api, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        self._answer_or_refuse(refusal, f"{self.principal} may not call {api.api.name}")

    def _answer_unsupported(
        self, key: int, version: int, correlation_id: int, frame: memoryview, received_ns: int
    ) -> None:
        if key == ApiKey.API_VERSIONS:
            api = self._listener.apis[ApiKey.API_VERSIONS]
            response = api.handle(Request(self, version, correlation_id, None, frame, len(frame), received_ns, key))
        else:
            response = error_frame(key, version, correlation_id, ErrorCode.UNSUPPORTED_VERSION)
        self._answer_or_refuse(response, f"API key {key} version {version} is not served")

    def _answer_or_refuse(self, response: Response | None, reason: str) -> None:
        if response is None:
            self.refuse(reason)
        else:
            self._answer(response)

    # -- answers out

    def reserve(self, request: Request) -> ResponseSlot:
        assert self._api is not None
        slot = ResponseSlot(self, self._api, request.received_ns)
        request.frame = _GONE
        self._slots.append(slot)
        if len(self._slots) >= self._listener.parked_max:
            self._pause_reading()
        return slot

    def settle(self) -> None:
        """Move responses to the output, up to the first that is not ready."""
        slots = self._slots
        while slots:
            head = slots[0]
            response = head.response if isinstance(head, ResponseSlot) else head
            if response is None:
                break
            slots.popleft()
            self.put_out(response)
        if self._out:
            self._listener.flush_soon(self)
        if self._reading_paused and len(slots) < self._listener.parked_max:
            self._maybe_resume_reading()

    def _answer(self, response: Response) -> None:
        if not self._slots:
            self.put_out(response)
            return
        self._slots.append(response)
        if len(self._slots) >= self._listener.parked_max:
            self._pause_reading()

    # -- back-pressure and ends

    def hold(self) -> None:
        """Handle no further request until `release`: too many connections came at once, or a request that later ones
        must not overtake is being worked on elsewhere."""
        self._holds += 1
        self._pause_reading()

    def release(self) -> None:
        self._holds -= 1
        if not self.closed:
            self._maybe_resume_reading()

    def count_throttling(self, api_key: int, throttle_ms: int) -> None:
        """Count the time for which a request of this API mutes the connection."""
        api = self._apis.get(api_key)
        if api is not None:
            api.counters.throttled.observe(throttle_ms * 1_000_000)

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()

    def _maybe_resume_reading(self) -> None:
        if not self._reading_paused or not self._may_read() or self._transport is None:
            return
        if self._backlog:
            self.wait_for_turn()  # not now: the caller that completed the response is still running
        else:
            self._reading_paused = False
            self._transport.resume_reading()

    def _may_read(self) -> bool:
        is_held_up = self._write_paused or self._awaiting_memory or self._holds or self.closed
        return not is_held_up and len(self._slots) < self._listener.parked_max

    def _refuse_size(self, size: int) -> None:
        limit = self._request_bytes_max
        self.refuse(f"a request of {size} bytes is outside 8..{limit} (socket.request.max.bytes)")

    def abort_after(self, error: Exception, api: ServedApi | None) -> None:
        if isinstance(error, MalformedMessageError):
            self.refuse(f"malformed request: {error}")
            return
        name = api.api.name if api else "a request"
        if isinstance(error, AuthorizerNotReadyError):  # the client retries on another connection
            log.info("closing the connection from %s: %s: %s", self.peer, name, error)
            self.close()
            return
        log.error("closing the connection from %s: %s failed", self.peer, name, exc_info=error)
        self.close()
