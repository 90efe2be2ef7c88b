"""Fetch: slices of segments up to the offset that the reader may see.

    decode -> session: which partitions? (sessions.py) -> FetchOperation: read, respond or wait (operation.py)

Requests with very many partitions are decoded (long_fetch.py), read and answered in slices, and wait for a short time
at most.
"""

import asyncio
from typing import Final

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import METADATA_TOPIC_ID, ZERO_UUID
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.fetch.long_fetch import LONG_FETCH_BYTES, decode_long_fetch
from sskafka.servers.kafka.handlers.fetch.operation import FetchOperation, Results
from sskafka.servers.kafka.handlers.fetch.readers import ConsumerReader, FollowerReader, Reader, failed
from sskafka.servers.kafka.handlers.fetch.session import Target, targets_of
from sskafka.servers.kafka.handlers.fetch.sessions import NO_SESSION, FetchContext, FetchSessions
from sskafka.servers.kafka.long_requests import LongRequest, Steps
from sskafka.servers.kafka.request import FetchQuota, Request, Response
from sskafka.servers.kafka.served_api import Handler
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.fetch import FetchRequestView, decode_fetch_request, encode_fetch_response

TOPIC_IDS_FROM: Final = 13
LONG_FETCH_WAIT_MS: Final = 100
ISOLATION_LEVELS: Final = (0, 1)  # READ_UNCOMMITTED, READ_COMMITTED
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class FetchHandler:
    def __init__(
        self,
        replicas: ReplicaManager,
        sessions: FetchSessions,
        clock: Clock,
        timers: TimerWheel,
        response_bytes_max: int,
        view: ClusterView | None = None,
        replica_selector: str | None = None,
        fetch_metadata: Handler | None = None,
    ) -> None:
        """`fetch_metadata` handles fetches of the metadata log, which the replica manager does not have."""
        self._fetch_metadata = fetch_metadata
        self._replicas = replicas
        self._view = view
        self._chooses_replica = replica_selector == RACK_AWARE_SELECTOR
        self._sessions = sessions
        self._clock = clock
        self._timers = timers
        self._response_bytes_max = response_bytes_max

    def handle(self, request: Request) -> Response | None:
        if len(request.frame) > LONG_FETCH_BYTES:
            long = request.connection.take_frame(request)
            request.connection.begin_long_request(long, self._long_steps(long, request.fetch_quota))
            return None
        fetch = decode_fetch_request(request.frame, request.position, request.version)
        if self._fetch_metadata is not None and fetch.topics and fetch.topics[0][0] == METADATA_TOPIC_ID:
            return self._fetch_metadata(request)
        named = list(targets_of(fetch))
        may_replicate = fetch.replica_id < 0 or request.may_on_cluster(AclOperation.CLUSTER_ACTION)
        try:
            context = self._context_of(request, fetch, named, may_replicate)
        except KafkaError as error:
            return encode_fetch_response(request.version, request.correlation_id, 0, error.code, NO_SESSION, [])
        if self._is_invalid(request, fetch, named, context):
            self._sessions.abandon(context)
            return self._refused(named, request, fetch.session_id)
        operation = self._begin(request, fetch, context, may_replicate, request.fetch_quota)
        if context.is_long:
            long = request.connection.take_frame(request)
            long.release_frame()
            request.connection.begin_long_request(long, self._in_slices(operation, fetch.max_wait_ms))
            return None
        response = operation.attempt(must_answer=fetch.max_wait_ms <= 0 or context.is_empty)
        if response is None:
            operation.park(request.park(), self._timers, fetch.max_wait_ms)
        return response

    def _long_steps(self, long: LongRequest, quota: FetchQuota | None) -> Steps:
        fetch, named = yield from decode_long_fetch(long)
        is_follower = fetch.replica_id >= 0
        if is_follower:
            long.slot.finish = quota = None  # nodes have no quotas
        may_replicate = not is_follower or long.may_on_cluster(AclOperation.CLUSTER_ACTION)
        if fetch.isolation_level not in ISOLATION_LEVELS:
            raise MalformedMessageError(f"there is no isolation level {fetch.isolation_level}")
        try:
            context = self._context_of(long, fetch, named, may_replicate)
        except KafkaError as error:
            return encode_fetch_response(long.version, long.correlation_id, 0, error.code, NO_SESSION, [])
        yield None
        if _has_duplicate_zero_topic(named):
            self._sessions.abandon(context)
            raise MalformedMessageError("the zero topic id has several partitions")
        operation = self._begin(long, fetch, context, may_replicate, quota)
        if context.is_long:
            return (yield from self._in_slices(operation, fetch.max_wait_ms))
        response = operation.attempt(must_answer=fetch.max_wait_ms <= 0 or context.is_empty)
        if response is None:
            operation.park(long.slot, self._timers, fetch.max_wait_ms)
        return response

    def _context_of(
        self, request: Request, fetch: FetchRequestView, named: list[Target], may_replicate: bool
    ) -> FetchContext:
        """Return the session of a request. Clients that claim to be a broker, and may not, have none."""
        if not may_replicate:
            return FetchContext(named, None, incremental=False)
        return self._sessions.context_of(fetch, named, request.version >= TOPIC_IDS_FROM, self._clock.monotonic_ms())

    def _is_invalid(
        self, request: Request, fetch: FetchRequestView, named: list[Target], context: FetchContext
    ) -> bool:
        if fetch.isolation_level not in ISOLATION_LEVELS and self._is_any_known(named):
            return True
        is_full = request.version >= TOPIC_IDS_FROM and not context.is_incremental
        return is_full and _has_duplicate_zero_topic(named)

    def _begin(
        self,
        request: Request,
        fetch: FetchRequestView,
        context: FetchContext,
        may_replicate: bool,
        quota: FetchQuota | None,
    ) -> FetchOperation:
        reader: Reader
        if fetch.replica_id >= 0:
            session = context.follower_session
            reader = FollowerReader(self._replicas, request, fetch, session, may_replicate=may_replicate)
        else:
            reader = ConsumerReader(self._replicas, request, fetch, self._chooses_replica)
        operation = FetchOperation(
            self._replicas,
            request,
            fetch,
            context,
            reader,
            self._response_bytes_max,
            self._view if fetch.replica_id < 0 else None,  # followers know the leaders from their own metadata
        )
        if quota is not None:
            operation.stay_within(quota, self._sessions)
        return operation

    def _in_slices(self, operation: FetchOperation, max_wait_ms: int) -> Steps:
        """Read many partitions. If there is too little data, read them once more after a while: to look at all of them
        after every append to one would take too long."""
        response = yield from operation.attempt_in_slices(must_answer=max_wait_ms <= 0)
        if response is None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._timers.schedule(min(max_wait_ms, LONG_FETCH_WAIT_MS), lambda: over.set_result(None))
            yield over
            response = yield from operation.attempt_in_slices(must_answer=True)
        return response

    def _is_any_known(self, named: list[Target]) -> bool:
        found = (self._replicas.maybe_find(target.topic, target.index) for target in named)
        return any(partition is not None for partition in found)

    def _refused(self, named: list[Target], request: Request, session_id: int) -> Response:
        """Refuse the whole request, with its session id. Versions that name topics get an error for each partition."""
        results: Results = []
        error = ErrorCode.INVALID_REQUEST
        if request.version < TOPIC_IDS_FROM:
            results = [
                (target.topic, [failed(self._replicas, target, KafkaError(error), request.version)]) for target in named
            ]
        return encode_fetch_response(request.version, request.correlation_id, 0, error, session_id, results)


def _has_duplicate_zero_topic(named: list[Target]) -> bool:
    """Return whether the zero topic id has several partitions: Apache Kafka fails at such requests."""
    return len({target.index for target in named if target.topic == ZERO_UUID}) > 1
