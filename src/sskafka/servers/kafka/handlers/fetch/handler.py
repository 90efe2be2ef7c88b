"""Fetch: slices of segments up to the offset that the reader may see. Without min.bytes of data, the request waits.

    read every partition -> enough bytes, an error, or no time to wait? respond
                            otherwise park: each partition wakes the request when its data becomes visible

A parked request holds no slices: it reads again when it is woken or when its time is over. Reads for consumers and for
followers differ (readers.py). Requests with very many partitions are read in slices and wait for a short time at most.
"""

import asyncio
from collections.abc import Generator
from typing import Any

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import METADATA_TOPIC_ID, ZERO_UUID
from sskafka.replication.partition import DelayedFetch, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import Timer, TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.fetch.readers import ConsumerReader, FollowerReader, Reader, failed
from sskafka.servers.kafka.handlers.fetch.session import Target, Topic, targets_of
from sskafka.servers.kafka.handlers.fetch.sessions import NO_SESSION, FetchContext, FetchSessions
from sskafka.servers.kafka.long_requests import Steps
from sskafka.servers.kafka.request import FetchQuota, Request, Response
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.servers.kafka.sliced_handlers import Handler
from sskafka.storage.file_slice import FileSlice
from sskafka.wire.fetch import FetchedPartition, FetchRequestView, decode_fetch_request, encode_fetch_response
from sskafka.wire.leaders import NodeEndpoint

TOPIC_IDS_FROM = 13
ENDPOINTS_FROM = 16
LONG_FETCH_WAIT_MS = 100
ISOLATION_LEVELS = (0, 1)  # READ_UNCOMMITTED, READ_COMMITTED
NOT_FOUND = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

Results = list[tuple[Topic, list[FetchedPartition]]]


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
        fetch = decode_fetch_request(request.frame, request.position, request.version)
        if self._fetch_metadata is not None and fetch.topics and fetch.topics[0][0] == METADATA_TOPIC_ID:
            return self._fetch_metadata(request)
        uses_topic_ids = request.version >= TOPIC_IDS_FROM
        try:
            context = self._sessions.context_of(fetch, uses_topic_ids, self._clock.monotonic_ms())
        except KafkaError as error:
            return encode_fetch_response(request.version, request.correlation_id, 0, error.code, NO_SESSION, [])
        if fetch.isolation_level not in ISOLATION_LEVELS and self._is_any_known(fetch):
            self._sessions.abandon(context)
            return self._refused(fetch, request, ErrorCode.INVALID_REQUEST)
        if uses_topic_ids and not context.is_incremental and _has_duplicate_zero_topic(fetch):
            self._sessions.abandon(context)
            return self._refused(fetch, request, ErrorCode.INVALID_REQUEST)
        reader: Reader
        if fetch.replica_id >= 0:
            reader = FollowerReader(self._replicas, request, fetch, context.follower_session)
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
        quota = request.fetch_quota
        if quota is not None:
            operation.stay_within(quota, self._sessions)
        if context.is_long:
            long = request.connection.take_frame(request)
            long.release_frame()
            request.connection.begin_long_request(long, self._in_slices(operation, fetch.max_wait_ms))
            return None
        response = operation.attempt(must_answer=fetch.max_wait_ms <= 0 or context.is_empty)
        if response is None:
            operation.park(request.park(), self._timers, fetch.max_wait_ms)
        return response

    def _in_slices(self, operation: "FetchOperation", max_wait_ms: int) -> Steps:
        """Read many partitions. If there is too little data, read them once more after a while: to look at all of them
        after every append to one would take too long."""
        response = yield from operation.attempt_in_slices(must_answer=max_wait_ms <= 0)
        if response is None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._timers.schedule(min(max_wait_ms, LONG_FETCH_WAIT_MS), lambda: over.set_result(None))
            yield over
            response = yield from operation.attempt_in_slices(must_answer=True)
        return response

    def _is_any_known(self, fetch: FetchRequestView) -> bool:
        found = (self._replicas.maybe_find(target.topic, target.index) for target in targets_of(fetch))
        return any(partition is not None for partition in found)

    def _refused(self, fetch: FetchRequestView, request: Request, error: ErrorCode) -> Response:
        """Refuse the whole request, with its session id. Versions that name topics get an error for each partition."""
        results: Results = []
        if request.version < TOPIC_IDS_FROM:
            results = [
                (target.topic, [failed(self._replicas, target, KafkaError(error), request.version)])
                for target in targets_of(fetch)
            ]
        return encode_fetch_response(request.version, request.correlation_id, 0, error, fetch.session_id, results)


def _has_duplicate_zero_topic(fetch: FetchRequestView) -> bool:
    """Return whether the zero topic id has several partitions: Apache Kafka fails at such requests."""
    return len({part[0] for topic, parts in fetch.topics if topic == ZERO_UUID for part in parts}) > 1


class FetchOperation:
    """A fetch request until its response; while it is parked, it is a DataWaiter of its partitions."""

    __slots__ = (
        "_context",
        "_correlation_id",
        "_listener_name",
        "_max_bytes",
        "_min_bytes",
        "_quota",
        "_reader",
        "_replicas",
        "_sessions",
        "_slot",
        "_timer",
        "_version",
        "_view",
        "_watched",
    )

    def __init__(
        self,
        replicas: ReplicaManager,
        request: Request,
        fetch: FetchRequestView,
        context: FetchContext,
        reader: Reader,
        response_bytes_max: int,
        view: ClusterView | None,
    ) -> None:
        self._replicas = replicas
        self._version = request.version
        self._correlation_id = request.correlation_id
        self._listener_name = request.listener_name
        self._context = context
        self._reader = reader
        self._view = view
        self._min_bytes = fetch.min_bytes
        self._max_bytes = min(fetch.max_bytes, response_bytes_max)
        self._quota: FetchQuota | None = None
        self._slot: ResponseSlot | None = None
        self._timer: Timer | None = None
        self._watched: list[Partition] = []

    def stay_within(self, quota: FetchQuota, sessions: FetchSessions) -> None:
        """Respect the quota of the client, which has one."""
        self._quota = quota
        self._sessions = sessions
        self._max_bytes = min(self._max_bytes, quota.max_bytes)
        self._min_bytes = min(self._min_bytes, self._max_bytes)

    def attempt(self, must_answer: bool) -> Response | None:
        """Read every partition. Return the response if there is enough data, or if the request must not wait."""
        room = self._max_bytes
        size = 0
        must_respond = False
        fetched: list[tuple[Target, FetchedPartition]] = []
        reader = self._reader
        for target in self._context.due():
            result = reader.read(target, room, size == 0)
            fetched.append((target, result))
            size += result.records_size
            room -= result.records_size
            must_respond = must_respond or reader.must_respond(target, result)
        response = None
        if size >= self._min_bytes or must_respond or must_answer:
            response = self._encode(fetched) if self._quota is None else self._encode_within(self._quota, fetched)
        reader.attempted(fetched)
        return response

    def attempt_in_slices(self, must_answer: bool) -> Generator[None, None, Response | None]:
        """The same, with pauses for other requests."""
        room = self._max_bytes
        size = 0
        fetched: list[tuple[Target, FetchedPartition]] = []
        reader = self._reader
        for target in self._context.due():
            result = reader.read(target, room, size == 0)
            fetched.append((target, result))
            size += result.records_size
            room -= result.records_size
            must_answer = must_answer or reader.must_respond(target, result)
            yield
        response = None
        if size >= self._min_bytes or must_answer:
            response = self._encode(fetched) if self._quota is None else self._encode_within(self._quota, fetched)
        reader.attempted(fetched)
        return response

    def _encode_within(self, quota: FetchQuota, fetched: list[tuple[Target, FetchedPartition]]) -> Response:
        """Encode the response, without partitions if it exceeds the quota of the client. The client is not told
        anything then, and a session that the request has opened is not used: the client opens another."""
        told: Results = [
            (target.topic, [result]) for target, result in fetched if self._context.is_worth_telling(target, result)
        ]
        size_bytes = sum(_part_size(part) for part in self._frame(NO_SESSION, told))
        is_too_large = sum(result.records_size for _, result in fetched) > quota.max_bytes  # one batch, now and later
        if not told or not quota.is_exceeded_by(size_bytes, must_be_sent=is_too_large):
            return self._encode(fetched)
        if self._context.is_incremental:
            return self._frame(self._context.session_id, [])
        self._sessions.abandon(self._context)
        return self._frame(NO_SESSION, [])

    def _frame(self, session_id: int, results: Results) -> list[Any]:
        return encode_fetch_response(self._version, self._correlation_id, 0, ErrorCode.NONE, session_id, results)

    def _encode(self, fetched: list[tuple[Target, FetchedPartition]]) -> Response:
        """Encode the response. Partitions that do not exist come last, as in Apache Kafka."""
        results: Results = []
        not_found: Results = []
        for target, result in fetched:
            if not self._context.is_worth_telling(target, result):
                continue
            self._context.response_sent(target, result)
            self._reader.count(target, result)
            chosen = not_found if result.error_code and result.error_code in NOT_FOUND else results
            if chosen and chosen[-1][0] == target.topic:
                chosen[-1][1].append(result)
            else:
                chosen.append((target.topic, [result]))
        results += not_found
        return encode_fetch_response(
            self._version,
            self._correlation_id,
            0,
            ErrorCode.NONE,
            self._context.session_id,
            results,
            node_endpoints=self._endpoints(results) if self._version >= ENDPOINTS_FROM else (),
        )

    def _endpoints(self, results: Results) -> list[NodeEndpoint]:
        """Return the endpoints of the leaders that the response names."""
        leaders = {
            result.tags.current_leader.leader_id
            for _, partitions in results
            for result in partitions
            if result.tags is not None and result.tags.current_leader is not None
        }
        if not leaders or self._view is None:
            return []
        return self._view.endpoints(leaders, self._listener_name)

    # -- waiting

    def park(self, slot: ResponseSlot, timers: TimerWheel, max_wait_ms: int) -> None:
        self._slot = slot
        slot.on_abandoned = self._give_up
        self._timer = timers.schedule(max_wait_ms, self.partition_changed)
        session = self._context.follower_session
        if session is not None:
            session.parked = self  # the session watches its own partitions
            return
        for target in self._context.due():
            partition = self._replicas.find(target.topic, target.index)
            self._reader.waiters_of(partition)[self] = None
            self._watched.append(partition)

    def note_data(self) -> DelayedFetch:
        return self

    def data_arrived(self) -> None:
        self._finish(must_answer=False)

    def partition_changed(self) -> None:
        self._finish(must_answer=True)

    def _finish(self, must_answer: bool) -> None:
        if self._slot is None:
            return  # completed or abandoned
        response = self.attempt(must_answer)
        if response is not None:
            slot = self._slot
            self._give_up()
            slot.complete(response)

    def _give_up(self) -> None:
        self._slot = None
        self._unwatch()

    def _unwatch(self) -> None:
        for partition in self._watched:
            self._reader.waiters_of(partition).pop(self, None)
        self._watched.clear()
        session = self._context.follower_session
        if session is not None and session.parked is self:
            session.parked = None
        if self._timer is not None:
            self._timer.cancel()


def _part_size(part: Any) -> int:
    return part.length if isinstance(part, FileSlice) else len(part)
