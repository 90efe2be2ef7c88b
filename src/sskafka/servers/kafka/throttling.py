"""Throttle clients that exceed a quota: answer with a throttle time, then mute the connection (KIP-219).

While nobody has a quota, handlers run as they are, and nothing here is called. When the first quota appears, the
registry wraps every handler with `Throttling.wrap`:

    handler(request) -> response -> bytes and CPU time are counted -> throttle_time_ms in the response, mute

A client that exceeds a quota receives its response at once, with the time for which the broker does not read its next
request. A Fetch that would exceed `consumer_byte_rate` gets a response without partitions, as in Apache Kafka: nothing
is counted for it, and the client fetches again. Requests between nodes have no quota.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

from sskafka.metadata.quota_limits import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from sskafka.model.acl import AclOperation
from sskafka.servers.kafka.client_quotas import ClientQuotaManager, user_of
from sskafka.servers.kafka.handlers.fetch.long_fetch import LONG_FETCH_BYTES
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.served_api import Handler
from sskafka.wire.apis import API_BY_KEY, Api, ApiKey
from sskafka.wire.fetch import decode_fetch_request
from sskafka.wire.header import encode_response_header
from sskafka.wire.layout import layout_of

if TYPE_CHECKING:
    from sskafka.servers.kafka.response_slot import ResponseSlot

_INT32 = Struct(">i")
_INT32_MAX = 2**31 - 1
_SIZE_BYTES = 4
_OF_BROKERS_FROM = 4  # of AddPartitionsToTxn
_EXEMPT = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS})
_NS_PER_PERCENT_SECOND = 10_000_000  # one hundredth of a second of the event loop


class ThrottledRequest(Request):
    """A request whose response, now or later, passes through `finish`."""

    __slots__ = ("finish",)

    def __init__(self, request: Request) -> None:
        super().__init__(
            request.connection,
            request.version,
            request.correlation_id,
            request.client_id,
            request.frame,
            request.position,
            request.received_ns,
            request.api_key,
        )
        self.finish: Callable[[Response], Response] | None = None

    def park(self) -> "ResponseSlot":
        slot = super().park()
        slot.finish = self.finish
        return slot


class ConsumerByteRate:
    """The quota of one Fetch request."""

    __slots__ = ("_client_id", "_monotonic_ms", "_quotas", "_user", "max_bytes", "throttle_ms")

    def __init__(
        self, quotas: ClientQuotaManager, monotonic_ms: Callable[[], float], user: str, client_id: str, max_bytes: int
    ) -> None:
        self._quotas = quotas
        self._monotonic_ms = monotonic_ms
        self._user = user
        self._client_id = client_id
        self.max_bytes = max_bytes
        self.throttle_ms = 0

    def is_exceeded_by(self, size_bytes: int, *, must_be_sent: bool) -> bool:
        now_ms = self._monotonic_ms()
        throttle_ms = self._quotas.throttle_ms(CONSUMER_BYTE_RATE, self._user, self._client_id, size_bytes, now_ms)
        self.throttle_ms = throttle_ms
        if throttle_ms <= 0 or must_be_sent:
            return False
        self._quotas.take_back(CONSUMER_BYTE_RATE, self._user, self._client_id, size_bytes, now_ms)
        return True


class Throttling:
    def __init__(self, quotas: ClientQuotaManager, monotonic_ms: Callable[[], float]) -> None:
        self._quotas = quotas
        self._monotonic_ms = monotonic_ms

    def wrap(self, api: Api, handle: Handler) -> Handler:
        if api.operation is AclOperation.CLUSTER_ACTION or api.key in _EXEMPT:
            return handle

        def throttled(request: Request) -> Response | None:
            if _is_of_a_node(api, request):
                return handle(request)
            throttled = ThrottledRequest(request)
            use = _Use(len(request.frame) if api.key == ApiKey.PRODUCE else 0)
            throttled.finish = lambda response: self._finish(api, throttled, use, response)
            if api.key == ApiKey.FETCH:
                throttled.fetch_quota = self._fetch_quota(request)
            began_ns = perf_counter_ns()
            response = handle(throttled)
            use.handler_ns = perf_counter_ns() - began_ns
            if response is not None:
                return self._finish(api, throttled, use, response)
            if throttled.frame is request.frame and use.produced_bytes and not use.is_finished:
                throttle_ms = self._throttle_ms(throttled, use)  # acks=0: there is no response to wait for
                if throttle_ms > 0:
                    throttled.mute(throttle_ms)
            return None

        return throttled

    def _fetch_quota(self, request: Request) -> ConsumerByteRate | None:
        user, client_id = user_of(request.principal), request.client_id or ""
        at_once = self._quotas.window_max(CONSUMER_BYTE_RATE, user, client_id)
        if at_once is None:
            return None
        return ConsumerByteRate(self._quotas, self._monotonic_ms, user, client_id, int(min(at_once, _INT32_MAX)))

    def _finish(self, api: Api, request: ThrottledRequest, use: "_Use", response: Response) -> Response:
        use.is_finished = True
        throttle_ms = self._throttle_ms(request, use)
        if request.fetch_quota is not None:
            throttle_ms = max(throttle_ms, request.fetch_quota.throttle_ms)
        if throttle_ms <= 0:
            return response
        request.mute(throttle_ms)
        if not response:
            return response  # of a long Produce request with acks=0
        return with_throttle_time(api, request.version, response, throttle_ms)

    def _throttle_ms(self, request: Request, use: "_Use") -> int:
        user, client_id, now_ms = user_of(request.principal), request.client_id or "", self._monotonic_ms()
        used = (
            (PRODUCER_BYTE_RATE, use.produced_bytes),
            (REQUEST_PERCENTAGE, use.handler_ns / _NS_PER_PERCENT_SECOND),
        )
        return max(
            self._quotas.throttle_ms(key, user, client_id, amount, now_ms) if amount else 0 for key, amount in used
        )


class _Use:
    """What one request uses of the quotas of its client."""

    __slots__ = ("handler_ns", "is_finished", "produced_bytes")

    def __init__(self, produced_bytes: int) -> None:
        self.produced_bytes = produced_bytes
        self.handler_ns = 0
        self.is_finished = False


def _is_of_a_node(api: Api, request: Request) -> bool:
    if api.key == ApiKey.FETCH:
        if len(request.frame) > LONG_FETCH_BYTES:
            return False  # the handler decodes it in slices, and exempts nodes then
        return decode_fetch_request(request.frame, request.position, request.version).replica_id >= 0
    return api.key == ApiKey.ADD_PARTITIONS_TO_TXN and request.version >= _OF_BROKERS_FROM


def with_throttle_time(api: Api, version: int, response: Response, throttle_ms: int) -> Response:
    """Return the response with a throttle time that is at least `throttle_ms`, if this version has the field."""
    if not isinstance(response, bytes):
        first, *rest = response
        assert isinstance(first, bytes), "a response begins with its header"
        position = _throttle_position(api.key, version)
        return [_patched(first, position, throttle_ms), *rest] if position > 0 else response
    position = _throttle_position(api.key, version)
    if position < 0:
        has_tags = version >= api.flexible_from and response[-1] != 0
        return response if has_tags else _patched(response, len(response) + position, throttle_ms)
    return _patched(response, position, throttle_ms) if position else response


def _patched(frame: bytes, position: int, throttle_ms: int) -> bytes:
    (known_ms,) = _INT32.unpack_from(frame, position)
    return frame[:position] + _INT32.pack(max(known_ms, throttle_ms)) + frame[position + _INT32.size :]


@lru_cache(512)
def _throttle_position(key: int, version: int) -> int:
    """Return where throttle_time_ms is: from the beginning of the frame, or, negative, from its end; 0: nowhere."""
    api = API_BY_KEY[key]
    plain = [field.name for field in layout_of(api.response_class(), version).plain]
    if plain[0] == "throttle_time_ms":
        return _SIZE_BYTES + len(encode_response_header(key, version, 0))
    if plain[-1] == "throttle_time_ms":
        return -(_INT32.size + (1 if version >= api.flexible_from else 0))
    return 0
