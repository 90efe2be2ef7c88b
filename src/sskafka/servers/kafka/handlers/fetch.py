"""FETCH: slices of the segments, up to what the reader may see; a reader who wants more than there is waits.

    read every partition -> enough bytes, an error, or no time to wait? answer
                            otherwise park: each partition wakes the request when its data becomes visible

A parked request holds no slices: it reads again when it is woken or its time is over.
"""

from sskafka.model.clock import Clock
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import Timer, TimerWheel
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.connection import ResponseSlot
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.handlers.fetch_sessions import FetchContext, FetchSessions, Target, Topic
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.fetch import FetchedPartition, FetchRequestView, decode_fetch_request, encode_fetch_response

TOPIC_IDS_FROM = 13
READ_COMMITTED = 1
NO_OFFSET = -1
NO_REPLICA = -1

Results = list[tuple[Topic, list[FetchedPartition]]]


class FetchHandler:
    def __init__(
        self,
        replicas: ReplicaManager,
        sessions: FetchSessions,
        clock: Clock,
        timers: TimerWheel,
        response_bytes_max: int,
    ) -> None:
        self._replicas = replicas
        self._sessions = sessions
        self._clock = clock
        self._timers = timers
        self._response_bytes_max = response_bytes_max

    def handle(self, request: Request) -> Response | None:
        fetch = decode_fetch_request(request.frame, request.position, request.version)
        uses_topic_ids = request.version >= TOPIC_IDS_FROM
        try:
            context = self._sessions.context_of(fetch, uses_topic_ids, self._clock.monotonic_ms())
        except KafkaError as error:
            return encode_fetch_response(request.version, request.correlation_id, 0, error.code, fetch.session_id, [])
        operation = FetchOperation(self._replicas, request, fetch, context, self._response_bytes_max)
        response = operation.attempt(must_answer=fetch.max_wait_ms <= 0 or not context.targets)
        if response is None:
            operation.park(request.park(), self._timers, fetch.max_wait_ms)
        return response


class FetchOperation:
    """One fetch request until it is answered; a DataWaiter of its partitions while it is parked."""

    __slots__ = (
        "_context",
        "_correlation_id",
        "_max_bytes",
        "_min_bytes",
        "_read_committed",
        "_replicas",
        "_request",
        "_slot",
        "_timer",
        "_version",
        "_watched",
    )

    def __init__(
        self,
        replicas: ReplicaManager,
        request: Request,
        fetch: FetchRequestView,
        context: FetchContext,
        response_bytes_max: int,
    ) -> None:
        self._replicas = replicas
        self._request = request
        self._version = request.version
        self._correlation_id = request.correlation_id
        self._context = context
        self._min_bytes = fetch.min_bytes
        self._max_bytes = min(fetch.max_bytes, response_bytes_max)
        self._read_committed = fetch.isolation_level == READ_COMMITTED
        self._slot: ResponseSlot | None = None
        self._timer: Timer | None = None
        self._watched: list[Partition] = []

    def attempt(self, must_answer: bool) -> Response | None:
        """Read every partition; the response when there is enough to send, or when there must be one."""
        room = self._max_bytes
        size = 0
        failed = False
        fetched: list[tuple[Target, FetchedPartition]] = []
        for target in self._context.targets:
            result = self._read(target, room, min_one=size == 0)
            fetched.append((target, result))
            size += result.records_size
            room -= result.records_size
            failed = failed or result.error_code != 0
        if size < self._min_bytes and not failed and not must_answer:
            return None
        return self._encode(fetched)

    def _read(self, target: Target, room: int, min_one: bool) -> FetchedPartition:
        index = target.index
        try:
            partition = self._find(target)
            found = partition.read(
                target.fetch_offset,
                max(0, min(target.max_bytes, room)),
                read_committed=self._read_committed,
                min_one=min_one,
                current_leader_epoch=target.leader_epoch,
            )
        except Exception as error:  # each partition fails for itself
            code, _ = error_code_of(error)
            return FetchedPartition(index, code, NO_OFFSET, NO_OFFSET, NO_OFFSET, None, NO_REPLICA, 0, ())
        return FetchedPartition(
            index,
            0,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            found.aborted,
            NO_REPLICA,
            found.size_bytes,
            found.slices,
        )

    def _find(self, target: Target) -> Partition:
        partition = self._replicas.find(target.topic, target.index)
        if not self._request.may_on_topic(Operation.READ, partition.topic_partition.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return partition

    def _encode(self, fetched: list[tuple[Target, FetchedPartition]]) -> Response:
        results: Results = []
        for target, result in fetched:
            if not self._context.is_worth_telling(target, result):
                continue
            self._context.told(target, result)
            self._count(target.topic, result)
            if results and results[-1][0] == target.topic:
                results[-1][1].append(result)
            else:
                results.append((target.topic, [result]))
        return encode_fetch_response(
            self._version, self._correlation_id, 0, ErrorCode.NONE, self._context.session_id, results
        )

    def _count(self, topic: Topic, result: FetchedPartition) -> None:
        counters = self._replicas.counters_of(topic)
        if counters is None:
            return
        counters.fetch_requests += 1
        counters.bytes_out += result.records_size
        if result.error_code:
            counters.failed_fetch_requests += 1

    # -- waiting

    def park(self, slot: ResponseSlot, timers: TimerWheel, max_wait_ms: int) -> None:
        self._slot = slot
        slot.on_abandoned = self._unwatch
        self._timer = timers.schedule(max_wait_ms, self.partition_changed)
        for target in self._context.targets:
            partition = self._replicas.find(target.topic, target.index)
            partition.data_waiters[self] = None
            self._watched.append(partition)

    def data_arrived(self) -> None:
        self._finish(must_answer=False)

    def partition_changed(self) -> None:
        self._finish(must_answer=True)

    def _finish(self, must_answer: bool) -> None:
        assert self._slot is not None
        response = self.attempt(must_answer)
        if response is not None:
            self._unwatch()
            self._slot.complete(response)

    def _unwatch(self) -> None:
        for partition in self._watched:
            partition.data_waiters.pop(self, None)
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
