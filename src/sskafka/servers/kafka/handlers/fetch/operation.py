"""A fetch request from its first read until its response. Without min.bytes of data, it waits.

    read every partition -> enough bytes, an error, or no time to wait? respond
                            otherwise park: each partition wakes the request when its data becomes visible

A parked request holds no slices: it reads again when it is woken or when its time is over. Reads for consumers and for
followers differ (readers.py).
"""

from collections.abc import Generator, Iterator
from typing import Any, Final

from sskafka.model.errors import ErrorCode
from sskafka.replication.partition import DelayedFetch, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.timer_wheel import Timer, TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.fetch.readers import Reader
from sskafka.servers.kafka.handlers.fetch.session import Target, Topic
from sskafka.servers.kafka.handlers.fetch.sessions import NO_SESSION, FetchContext, FetchSessions
from sskafka.servers.kafka.request import FetchQuota, Request, Response
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.storage.file_slice import FileSlice
from sskafka.wire.fetch import (
    FetchedPartition,
    FetchRequestView,
    encode_fetch_response,
    encode_fetch_response_in_slices,
)
from sskafka.wire.leaders import NodeEndpoint

ENDPOINTS_FROM: Final = 16
NOT_FOUND: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
PIECE_PARTITIONS: Final = 200
"""How many partitions of a long request are handled between two pauses for other requests."""

Results = list[tuple[Topic, list[FetchedPartition]]]
Fetched = list[tuple[Target, FetchedPartition]]


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
        fetched: Fetched = []
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
        fetched: Fetched = []
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
            response = yield from self._encode_in_slices(fetched)
        for piece in _pieces(fetched):
            reader.attempted(piece)
            yield
        return response

    def _encode_in_slices(self, fetched: Fetched) -> Generator[None, None, Response]:
        if self._quota is not None:
            size_bytes = 0
            for piece in _pieces(fetched):
                size_bytes += self._size_of(piece)
                yield
            if self._exceeds(self._quota, size_bytes, fetched):
                return self._without_partitions()
        results: Results = []
        not_found: Results = []
        for piece in _pieces(fetched):
            self._tell(piece, results, not_found)
            yield
        results += not_found
        endpoints = self._endpoints(results) if self._version >= ENDPOINTS_FROM else ()
        yield
        session_id = self._context.session_id
        return (
            yield from encode_fetch_response_in_slices(
                self._version, self._correlation_id, session_id, results, endpoints
            )
        )

    def _encode_within(self, quota: FetchQuota, fetched: Fetched) -> Response:
        """Encode the response, without partitions if it exceeds the quota of the client."""
        if self._exceeds(quota, self._size_of(fetched), fetched):
            return self._without_partitions()
        return self._encode(fetched)

    def _size_of(self, fetched: Fetched) -> int:
        """Return the size of the response; 0 if it must be empty because of the quota."""
        told: Results = [
            (target.topic, [result]) for target, result in fetched if self._context.is_worth_telling(target, result)
        ]
        return sum(_part_size(part) for part in self._frame(NO_SESSION, told)) if told else 0

    def _exceeds(self, quota: FetchQuota, size_bytes: int, fetched: Fetched) -> bool:
        is_too_large = sum(result.records_size for _, result in fetched) > quota.max_bytes  # one batch, now and later
        return size_bytes > 0 and quota.is_exceeded_by(size_bytes, must_be_sent=is_too_large)

    def _without_partitions(self) -> Response:
        """Return an empty response. The client does not use a session that the request has opened: it opens another."""
        if self._context.is_incremental:
            return self._frame(self._context.session_id, [])
        self._sessions.abandon(self._context)
        return self._frame(NO_SESSION, [])

    def _frame(self, session_id: int, results: Results) -> list[Any]:
        return encode_fetch_response(self._version, self._correlation_id, 0, ErrorCode.NONE, session_id, results)

    def _tell(self, fetched: Fetched, results: Results, not_found: Results) -> None:
        """Add what the response tells. Partitions that do not exist come last, as in Apache Kafka."""
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

    def _encode(self, fetched: Fetched) -> Response:
        results: Results = []
        not_found: Results = []
        self._tell(fetched, results, not_found)
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


def _pieces(fetched: Fetched) -> Iterator[Fetched]:
    for start in range(0, len(fetched), PIECE_PARTITIONS):
        yield fetched[start : start + PIECE_PARTITIONS]


def _part_size(part: Any) -> int:
    return part.length if isinstance(part, FileSlice) else len(part)
