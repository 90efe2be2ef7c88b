"""Produce: append batches, as bytes, to the logs of partitions, and respond when `acks` is satisfied.

    acks=0    no response; a failure closes the connection, which is the only sign for the client
    acks=1    respond when the leader's log has the batch (on the disk, if flush.messages requires a flush)
    acks=-1   respond when the high watermark has passed the batch, or with REQUEST_TIMED_OUT; the batch stays written

Appends never wait: the next request on the connection is dispatched while the response to this one is delayed. The
response names the leader of partitions that this broker does not lead. Two kinds of requests wait before they are
appended: those with the first batch of a transaction in a partition (transactional_produce.py), and those with batches
that are too large to be inspected on the event loop (batch_inspection.py). Requests with many partitions are appended
in pieces (long_produce.py).
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import INTERNAL_TOPICS
from sskafka.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, is_transactional
from sskafka.replication.partition import ACKS_ALL, AppendInfo, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.delayed_operation import DelayedOperation
from sskafka.runtime.serial_thread import SerialThread
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.error_mapping import WRONG_BROKER, absence_error, error_code_of
from sskafka.servers.kafka.handlers.batch_inspection import BatchInspection, Inspection, Inspections, copied
from sskafka.servers.kafka.handlers.long_produce import LongProduce, has_many_partitions
from sskafka.servers.kafka.handlers.produce_results import (
    NO_OFFSET,
    Appended,
    Results,
    Row,
    Wait,
    refused_rows,
    replace_by_error,
)
from sskafka.servers.kafka.long_requests import LONG_REQUEST_BYTES, LongRequest, Steps
from sskafka.servers.kafka.request import Request, Response
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.storage.append_checks import ExpensiveBatchError
from sskafka.storage.errors import RecordTooLargeError, RejectedAppendError, StorageError
from sskafka.wire.leaders import CurrentLeader, NodeEndpoint
from sskafka.wire.produce import (
    PartitionRecords,
    ProduceRequestView,
    decode_only_batch,
    decode_produce_request,
    encode_produce_response,
    encode_produce_response_in_slices,
    encode_produced,
)

if TYPE_CHECKING:
    import asyncio

    from sskafka.servers.kafka.handlers.long_produce import Piece
    from sskafka.servers.kafka.handlers.transactional_produce import CarryOut, Refusals, TransactionalProduce, Waiting

LENGTH_AT: Final = 8
RECORD_OVERHEAD_BYTES: Final = 14  # of the smallest message in any format
_length_and_magic_at: Final = Struct(">i4xb").unpack_from
ADMIN_CLIENT_ID: Final = "__admin_client"  # with this client id, Kafka's tools may write to internal topics
_ACKS: Final = {0, 1, ACKS_ALL}
_INTERNAL_TOPICS: Final = INTERNAL_TOPICS
_WRITE: Final = AclOperation.WRITE
_TOPIC: Final = ResourceType.TOPIC
Leaders = dict[tuple[str | bytes, int], CurrentLeader]


class MalformedBatchError(KafkaError):
    """A batch in a format that does not exist, or shorter than any format. The response has the reason."""


class ProduceHandler:
    def __init__(
        self,
        replicas: ReplicaManager,
        clock: Clock,
        timers: TimerWheel,
        view: ClusterView | None = None,
        make_transactional: "Callable[[CarryOut], TransactionalProduce] | None" = None,
        thread: SerialThread | None = None,
        check_internal_records: Callable[[str, memoryview], None] | None = None,
    ) -> None:
        """`make_transactional` is called at the first transactional request. `thread` inspects batches that
        the event loop should not; without it all are inspected at once. `check_internal_records` raises KafkaError
        for records that no coordinator could have written to an internal topic."""
        self._replicas = replicas
        self._view = view
        self._clock = clock
        self._timers = timers
        self._make_transactional = make_transactional
        self._transactional: TransactionalProduce | None = None
        self._inspection = BatchInspection(replicas, clock, thread)
        self._check_internal_records = check_internal_records
        self._long = LongProduce(self, self._inspection)

    def handle(self, request: Request) -> Response | None:
        """Handle a request. Those with one batch for one partition, nearly all requests, take a shorter path."""
        only = decode_only_batch(request.frame, request.position, request.version)
        if only is None:
            return self._handle_any(request)
        topic, index, records, acks, timeout_ms = only
        if acks == 0 or is_transactional(records):
            return self._handle_any(request)
        try:
            partition, info = self._append(request, topic, index, records, acks, self._clock.now_ms(), None)
        except ExpensiveBatchError:
            return self._handle_any(request, is_expensive=True)
        except Exception as error:
            self._count_failure(topic)
            return self.failure_response(request, [(topic, [self._failure(topic, index, error)])])
        row = (index, 0, info.base_offset, info.append_time_ms, info.log_start_offset, None, ())
        if info.last_offset < _reached(partition, acks):
            return encode_produced(request.version, request.correlation_id, topic, row)
        rows: list[Row] = [row]
        appended = Appended([(topic, rows)], [Wait(partition, info.last_offset + 1, rows, 0)], False)
        DelayedProduce(self, request, request.park(), acks, appended).wait(self._timers, timeout_ms)
        return None

    def _handle_any(self, request: Request, *, is_expensive: bool = False) -> Response | None:
        """`is_expensive`: the only batch of the request is to be inspected in a thread."""
        produce = decode_produce_request(request.frame, request.position, request.version)
        if len(request.frame) > LONG_REQUEST_BYTES and has_many_partitions(produce):
            self._long.begin(request)
            return None
        inspections, expensive = self._inspection.begin(request, produce, is_expensive)
        if not expensive:
            return self._handle_inspected(request, produce, inspections, None)
        slot = None if produce.acks == 0 else request.park()
        produce = copied(produce)

        def inspected() -> None:
            response = self._handle_inspected(request, produce, inspections, slot)
            if response is not None and slot is not None:
                slot.complete(response)

        self._inspection.finish(request, slot, produce, inspections, expensive, inspected)
        return None

    def _handle_inspected(
        self, request: Request, produce: ProduceRequestView, inspections: Inspections, slot: ResponseSlot | None
    ) -> Response | None:
        """Handle a request whose large batches are inspected. `slot`: it was parked for that."""
        error = self.refusal_of_all(request, produce)
        if error is not None:
            return self.refuse_all(request, produce, error)
        if produce.transactional_id is not None and produce.acks != 0:
            transactional = self._transactional_produce()
            if transactional is not None and transactional.must_wait(request, produce, inspections, slot):
                return None
        return self.answer(request, produce, self._append_all(request, produce, inspections), slot)

    def refusal_of_all(self, request: Request, produce: ProduceRequestView) -> ErrorCode | None:
        """Return the error if no batch of the request may be appended because of its transaction."""
        if produce.transactional_id is not None:
            may_write = request.may_on_transactional_id(AclOperation.WRITE, produce.transactional_id)
        else:
            may_write = not any(
                records and is_transactional(records) for _, entries in produce.topics for _, records in entries
            )
        return None if may_write else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def answer(
        self, request: Request, produce: ProduceRequestView, appended: Appended, slot: ResponseSlot | None
    ) -> Response | None:
        """Return the response to a request whose batches are appended, or None if it has none or must wait."""
        if produce.acks == 0:
            if appended.failed:
                request.connection.close()
            return None
        if appended.waits:
            parked = DelayedProduce(self, request, slot or request.park(), produce.acks, appended)
            parked.wait(self._timers, produce.timeout_ms)
            return None
        if appended.failed:
            return self.failure_response(request, appended.results)
        return encode_produce_response(request.version, request.correlation_id, appended.results)

    def answer_in_slices(self, long: LongRequest, results: Results, *, failed: bool) -> Steps:
        """Return the response to a request with many partitions."""
        leaders: Leaders = {}
        if failed:
            for topic, rows in results:
                for row in rows:
                    self.note_leader(topic, row, leaders)
                    yield None
        endpoints = self.endpoints_of(leaders, long)
        yield None
        return (
            yield from encode_produce_response_in_slices(
                long.version, long.correlation_id, results, leaders=leaders, node_endpoints=endpoints
            )
        )

    def _transactional_produce(self) -> "TransactionalProduce | None":
        if self._transactional is None and self._make_transactional is not None:
            self._transactional = self._make_transactional(self.carry_out)
        return self._transactional

    def verify(self, request: Request, produce: ProduceRequestView) -> "asyncio.Future[Refusals] | None":
        """Ask the transaction coordinator about a part of a request. None: there is nothing to ask."""
        transactional = self._transactional_produce()
        return None if transactional is None else transactional.verify(request, produce)

    def carry_out(self, waiting: "Waiting", refusals: "Refusals") -> None:
        """Append a transactional request that the coordinator has confirmed, except the partitions in `refusals`."""
        request, produce = waiting.request, waiting.produce
        appended = self._append_all(request, _without(produce, refusals), waiting.inspections)
        rows = dict(appended.results)  # the response has every topic, even if only with accepted partitions
        for topic, refused in refused_rows(refusals):
            rows[topic].extend(refused)
        appended = appended._replace(failed=appended.failed or bool(refusals))
        parked = DelayedProduce(self, request, waiting.slot, produce.acks, appended)
        parked.wait(self._timers, produce.timeout_ms)

    def refuse_all(self, request: Request, produce: ProduceRequestView, error: ErrorCode) -> Response | None:
        if produce.acks == 0:
            request.connection.close()
            return None
        every = {(topic, index): error for topic, entries in produce.topics for index, _ in entries}
        return encode_produce_response(request.version, request.correlation_id, refused_rows(every))

    def failure_response(self, request: Request, results: Results) -> bytes:
        """Encode the response, with the leaders of partitions that this broker does not lead."""
        leaders: Leaders = {}
        for topic, rows in results:
            for row in rows:
                self.note_leader(topic, row, leaders)
        endpoints = self.endpoints_of(leaders, request)
        return encode_produce_response(
            request.version, request.correlation_id, results, leaders=leaders, node_endpoints=endpoints
        )

    def note_leader(self, topic: str | bytes, row: Row, leaders: Leaders) -> None:
        """Add the leader of a partition whose batch failed because this broker does not lead it."""
        leadership = self._replicas.leadership_of(topic, row[0]) if row[1] in WRONG_BROKER else None
        if leadership is not None:
            leaders[topic, row[0]] = CurrentLeader(leadership.leader_id, leadership.leader_epoch)

    def endpoints_of(self, leaders: Leaders, request: Request) -> Sequence[NodeEndpoint]:
        if not leaders or self._view is None:
            return ()
        return self._view.endpoints({leader.leader_id for leader in leaders.values()}, request.listener_name)

    def _append_all(self, request: Request, produce: ProduceRequestView, inspections: Inspections) -> Appended:
        now_ms = self._clock.now_ms()
        results: Results = []
        waits: list[Wait] = []
        failed = False
        for topic, entries in produce.topics:
            rows: list[Row] = []
            results.append((topic, rows))
            failed |= self._append_entries(request, produce.acks, topic, entries, inspections, now_ms, rows, waits)
        return Appended(results, waits, failed)

    def append_piece(
        self, request: Request, acks: int, piece: "Piece", inspections: Inspections, appended: Appended
    ) -> Appended:
        """Append some partitions of a topic, and add their results to those of the last topic of `appended`."""
        topic, entries = piece
        now_ms, rows = self._clock.now_ms(), appended.results[-1][1]
        if self._append_entries(request, acks, topic, entries, inspections, now_ms, rows, appended.waits):
            return appended._replace(failed=True)
        return appended

    def still_waiting(self, acks: int, appended: Appended) -> Appended:
        """Return what is left to wait for some turns of the event loop after the appends."""
        waits: list[Wait] = []
        failed = appended.failed
        for wait in appended.waits:
            if not wait.partition.is_leader:
                replace_by_error(wait, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                failed = True
            elif wait.end_offset > _reached(wait.partition, acks):
                waits.append(wait)
        return Appended(appended.results, waits, failed)

    def _append_entries(
        self,
        request: Request,
        acks: int,
        topic: str | bytes,
        entries: list[PartitionRecords],
        inspections: Inspections,
        now_ms: int,
        rows: list[Row],
        waits: list[Wait],
    ) -> bool:
        """Append to partitions of a topic. Add to `rows` and `waits`; return whether a partition failed."""
        failed = False
        for index, records in entries:
            try:
                inspection = inspections.get((topic, index))
                partition, info = self._append(request, topic, index, records, acks, now_ms, inspection)
            except Exception as error:  # a partition that fails does not affect the others
                failed = True
                rows.append(self._failure(topic, index, error))
                self._count_failure(topic)
                continue
            if info.last_offset >= _reached(partition, acks):
                waits.append(Wait(partition, info.last_offset + 1, rows, len(rows)))
            rows.append((index, 0, info.base_offset, info.append_time_ms, info.log_start_offset, None, ()))
        return failed

    def _append(
        self,
        request: Request,
        topic: str | bytes,
        index: int,
        records: memoryview | None,
        acks: int,
        now_ms: int,
        inspection: Inspection | None,
    ) -> tuple[Partition, AppendInfo]:
        partition = self._replicas.maybe_find(topic, index)
        if partition is None:
            raise absence_error(self._replicas, request, AclOperation.WRITE, topic, index)
        name = partition.topic_partition.topic
        if not request.connection.authorizer.allows(request, _WRITE, _TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        records = _only_batch(records)
        if acks not in _ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, not 0, 1 or -1")
        if name in _INTERNAL_TOPICS:
            self._check_internal(request, name, records)
        if isinstance(inspection, Exception):
            raise inspection
        info = partition.append(records, acks, now_ms, inspected=inspection)
        counters = partition.counters
        counters.produce_requests += 1
        if not info.duplicate:
            counters.messages_in += info.last_offset - info.base_offset + 1
            counters.bytes_in += len(records)
        return partition, info

    def _check_internal(self, request: Request, topic: str, batch: memoryview) -> None:
        """Refuse writes to internal topics, except records of Kafka's tools that a coordinator could have written."""
        if request.client_id != ADMIN_CLIENT_ID or self._check_internal_records is None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "only coordinators write to internal topics")
        self._check_internal_records(topic, batch)

    def _failure(self, topic: str | bytes, index: int, error: Exception) -> Row:
        """Return the response that Kafka gives for the error: with a message if single records are invalid, and with
        the log start offset if the log rejected the batch."""
        code, text = error_code_of(error)
        record_errors = getattr(error, "record_errors", ())
        message = text if record_errors or isinstance(error, MalformedBatchError | StorageError) else None
        log_start_offset = NO_OFFSET
        if isinstance(error, RejectedAppendError) and not isinstance(error, RecordTooLargeError):
            log_start_offset = self._replicas.find(topic, index).log_start_offset
        return (index, code, NO_OFFSET, NO_OFFSET, log_start_offset, message, record_errors)

    def _count_failure(self, topic: str | bytes) -> None:
        counters = self._replicas.counters_of(topic)
        if counters is not None:
            counters.produce_requests += 1
            counters.failed_produce_requests += 1


class DelayedProduce(DelayedOperation):
    """A produce request whose batches are appended and wait for the high watermark or for a flush."""

    __slots__ = ("_acks", "_failed", "_handler", "_request", "_results", "_slot", "_waits")

    def __init__(
        self, handler: ProduceHandler, request: Request, slot: ResponseSlot, acks: int, appended: Appended
    ) -> None:
        self._handler = handler
        self._request = request
        self._slot = slot
        self._acks = acks
        self._results, self._waits, self._failed = appended

    def wait(self, timers: TimerWheel, timeout_ms: int) -> None:
        waits = self._waits
        if not waits:
            self.complete([])
            return
        self.begin(len(waits), timers, timeout_ms)
        self._slot.on_abandoned = self.cancel
        acks = self._acks
        for number, (partition, end_offset, _, _) in enumerate(waits):
            if acks == ACKS_ALL:
                self.wait_for(number, partition.committed_waiters, end_offset, partition)
            else:
                self.wait_for(number, partition.ready_waiters, end_offset)

    def complete(self, outcomes: list[ErrorCode]) -> None:
        if any(outcomes):
            self._failed = True
            for wait, outcome in zip(self._waits, outcomes, strict=True):
                if outcome is not ErrorCode.NONE:
                    replace_by_error(wait, outcome)
        request = self._request
        if isinstance(request, LongRequest):
            steps = self._handler.answer_in_slices(request, self._results, failed=self._failed)
            request.connection.begin_long_request(request, steps, alone=True)
        elif self._failed:
            self._slot.complete(self._handler.failure_response(request, self._results))
        else:
            self._slot.complete(encode_produce_response(request.version, request.correlation_id, self._results))


def _reached(partition: Partition, acks: int) -> int:
    """Called when all records before the end offset satisfy `acks`."""
    return partition.high_watermark if acks == ACKS_ALL else partition.ready_offset


def _only_batch(records: memoryview | None) -> memoryview:
    """Return the records of a partition. Raise KafkaError unless they are one batch of the current format."""
    if records is None or len(records) < HEADER_BYTES:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the partition has no record batch")
    length, magic = _length_and_magic_at(records, LENGTH_AT)
    if magic != MAGIC:
        if 0 <= magic < MAGIC:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"produced records have magic {MAGIC}, not {magic}")
        raise MalformedBatchError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if length < RECORD_OVERHEAD_BYTES:
        text = f"Record size {length} is less than the minimum record overhead ({RECORD_OVERHEAD_BYTES})"
        raise MalformedBatchError(ErrorCode.CORRUPT_MESSAGE, text)
    if length + LOG_OVERHEAD_BYTES < HEADER_BYTES:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {length} bytes is shorter than its header")
    if length + LOG_OVERHEAD_BYTES != len(records):
        raise KafkaError(ErrorCode.INVALID_RECORD, "the partition has no complete batch, or more than one")
    return records


def _without(produce: ProduceRequestView, refusals: "Refusals") -> ProduceRequestView:
    topics = [
        (topic, [entry for entry in entries if (topic, entry[0]) not in refusals]) for topic, entries in produce.topics
    ]
    return produce._replace(topics=topics)
