"""Inspect the batches of a Produce request before they are appended, if that takes too long for the event loop.

A request with such a batch is parked, its batches are copied, and a thread inspects the large ones. Meanwhile the
connection handles no further request: batches of a producer must be appended in the order in which they were sent.
What the inspection found, a summary or the error of the batch, is used when the batch is appended.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from sskafka.model.acl import AclOperation, ResourceType
from sskafka.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, read_header
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.serial_thread import SerialThread
from sskafka.servers.kafka.request import Request, RequestConnection
from sskafka.servers.kafka.response_slot import ResponseSlot
from sskafka.storage.append_checks import AppendChecks, ExpensiveBatchError, Inspected, is_cheap
from sskafka.wire.produce import ProduceRequestView, Topic

Inspection: TypeAlias = Inspected | Exception
Inspections: TypeAlias = Mapping[tuple[Topic, int], Inspection]
"""By topic and partition; batches that the append inspects itself are not in it."""

NOT_INSPECTED: Inspections = MappingProxyType({})


class Expensive(NamedTuple):
    topic: Topic
    partition: int
    checks: AppendChecks
    record_count: int


class BatchInspection:
    def __init__(self, replicas: ReplicaManager, clock: Clock, thread: SerialThread | None) -> None:
        self._replicas = replicas
        self._clock = clock
        self._thread = thread

    def begin(
        self, request: Request, produce: ProduceRequestView, is_expensive: bool
    ) -> tuple[dict[tuple[Topic, int], Inspection], list[Expensive]]:
        """Inspect what the event loop has time for. Return the results, and the batches that a thread must inspect.

        `is_expensive`: the batches are known to be."""
        inspections: dict[tuple[Topic, int], Inspection] = {}
        expensive: list[Expensive] = []
        now_ms = self._clock.now_ms()
        for topic, entries in produce.topics:
            for index, records in entries:
                checks = self._checks_of(request, topic, index, records)
                if checks is None or records is None:
                    continue
                try:
                    if is_expensive:
                        raise ExpensiveBatchError
                    summary = checks.inspect_inline(records, 0, read_header(records), now_ms)
                    inspections[topic, index] = Inspected(summary, None)
                except ExpensiveBatchError:
                    expensive.append(Expensive(topic, index, checks, read_header(records).record_count))
                except Exception as error:
                    inspections[topic, index] = _without_frames(error)
        return inspections, expensive

    def _checks_of(self, request: Request, topic: Topic, index: int, records: memoryview | None) -> AppendChecks | None:
        """Return the checks for a batch that is worth a look: large enough, complete, and likely to be appended."""
        if records is None or len(records) < HEADER_BYTES:
            return None
        header = read_header(records)
        if is_cheap(header) or header.magic != MAGIC or header.length + LOG_OVERHEAD_BYTES != len(records):
            return None
        partition = self._replicas.maybe_find(topic, index)
        if partition is None or not partition.is_leader:
            return None
        checks = partition.append_checks
        may_write = request.may_see(ResourceType.TOPIC, partition.topic_partition.topic, AclOperation.WRITE)
        return checks if may_write and header.size_bytes <= checks.config.max_message_bytes else None

    def finish(
        self,
        request: Request,
        slot: ResponseSlot | None,
        produce: ProduceRequestView,
        inspections: dict[tuple[Topic, int], Inspection],
        expensive: list[Expensive],
        inspected: Callable[[], None],
    ) -> None:
        """Have a thread inspect the expensive batches, add the results to `inspections` and call `inspected`."""
        connection = request.connection

        def done(error: BaseException | None) -> None:
            connection.release()
            if connection.closed:
                return
            try:
                if error is not None:
                    raise error
                inspected()
            except Exception as failure:  # the boundary of a request, as in the registry
                if slot is None:
                    connection.close()
                else:
                    slot.fail(failure)

        connection.hold()
        self._in_thread(connection, produce, inspections, expensive, done)

    def soon(
        self,
        request: Request,
        produce: ProduceRequestView,
        inspections: dict[tuple[Topic, int], Inspection],
        expensive: list[Expensive],
    ) -> "asyncio.Future[None]":
        """Do the same for a part of a request that is handled in slices."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._in_thread(request.connection, produce, inspections, expensive, done)
        return future

    def _in_thread(
        self,
        connection: RequestConnection,
        produce: ProduceRequestView,
        inspections: dict[tuple[Topic, int], Inspection],
        expensive: list[Expensive],
        done: Callable[[BaseException | None], None],
    ) -> None:
        now_ms = self._clock.now_ms()
        batches = {(topic, index): records for topic, entries in produce.topics for index, records in entries}

        def inspect() -> None:
            for topic, index, checks, _ in expensive:
                if connection.closed:
                    return
                batch = batches[topic, index]
                assert batch is not None
                try:
                    inspections[topic, index] = checks.inspect(batch, now_ms)
                except Exception as error:
                    inspections[topic, index] = _without_frames(error)

        if self._thread is None:
            inspect()
            done(None)
        else:
            self._thread.submit(inspect, done, sum(batch.record_count for batch in expensive))


def _without_frames(error: Exception) -> Exception:
    """Return the error without the stack frames that it came through: they would keep what was decompressed."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def copied(produce: ProduceRequestView) -> ProduceRequestView:
    """Return the request with copies of its batches: its buffer is used again when the handler returns."""
    topics = [
        (topic, [(index, None if records is None else memoryview(bytearray(records))) for index, records in entries])
        for topic, entries in produce.topics
    ]
    return produce._replace(topics=topics)
