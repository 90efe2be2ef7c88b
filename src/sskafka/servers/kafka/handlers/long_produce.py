"""Produce requests with many partitions, appended in pieces so that other requests have their turn in between.

    decode -> for each piece: inspect its batches -> verify its transaction -> append -> then wait for `acks`, respond

A request with 10,000 partitions kept all other clients waiting for a tenth of a second. The connection handles no
further request until all pieces are appended, so batches of a producer stay in order. A piece may wait for a thread or
for the transaction coordinator, as any other request does.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.handlers.batch_inspection import BatchInspection
from sskafka.servers.kafka.handlers.produce_results import Appended, Results, refused_row, refused_rows
from sskafka.servers.kafka.long_requests import LongRequest, Steps
from sskafka.servers.kafka.request import Request
from sskafka.wire.produce import PartitionRecords, ProduceRequestView, Topic, decode_produce_request

if TYPE_CHECKING:
    import asyncio

    from sskafka.servers.kafka.handlers.produce import ProduceHandler
    from sskafka.servers.kafka.handlers.transactional_produce import Refusals

MANY_PARTITIONS = 64
PIECE_PARTITIONS = 16
NO_RESPONSE = b""

Piece = tuple[Topic, list[PartitionRecords]]


def has_many_partitions(produce: ProduceRequestView) -> bool:
    return sum([len(entries) for _, entries in produce.topics]) > MANY_PARTITIONS


class LongProduce:
    def __init__(self, handler: "ProduceHandler", inspection: BatchInspection) -> None:
        self._handler = handler
        self._inspection = inspection

    def begin(self, request: Request) -> None:
        long = request.connection.take_frame(request)
        long.connection.begin_long_request(long, self._steps(long), alone=True)

    def _steps(self, long: LongRequest) -> Steps:
        produce = decode_produce_request(long.frame, long.position, long.version)
        yield None
        error = self._handler.refusal_of_all(long, produce)
        yield None
        if error is not None:
            if produce.acks:
                return (yield from self._handler.answer_in_slices(long, _all_refused(produce, error), failed=False))
            response = self._handler.refuse_all(long, produce, error)
        else:
            appended = Appended([], [], False)
            for topic, entries in produce.topics:
                appended.results.append((topic, []))
                for piece in _pieces(topic, entries):
                    appended = yield from self._append(long, produce, piece, appended)
                    yield None
            appended = self._handler.still_waiting(produce.acks, appended)
            if produce.acks and not appended.waits:
                return (yield from self._handler.answer_in_slices(long, appended.results, failed=appended.failed))
            response = self._handler.answer(long, produce, appended, long.slot)
        return NO_RESPONSE if produce.acks == 0 else response

    def _append(
        self, long: LongRequest, produce: ProduceRequestView, piece: Piece, appended: Appended
    ) -> "Generator[asyncio.Future[Any], None, Appended]":
        part = produce._replace(topics=[piece])
        inspections, expensive = self._inspection.begin(long, part, False)
        if expensive:
            inspected = self._inspection.soon(long, part, inspections, expensive)
            yield inspected
            inspected.result()
        verified = self._handler.verify(long, part) if produce.transactional_id is not None and produce.acks else None
        if verified is not None:
            yield verified
            refusals = verified.result()
            if refusals:
                appended = _refused(appended, refusals)
                piece = piece[0], [entry for entry in piece[1] if (piece[0], entry[0]) not in refusals]
        return self._handler.append_piece(long, produce.acks, piece, inspections, appended)


def _pieces(topic: Topic, entries: list[PartitionRecords]) -> Iterator[Piece]:
    for start in range(0, len(entries), PIECE_PARTITIONS):
        yield topic, entries[start : start + PIECE_PARTITIONS]


def _all_refused(produce: ProduceRequestView, error: ErrorCode) -> Results:
    return [(topic, [refused_row(index, error) for index, _ in entries]) for topic, entries in produce.topics]


def _refused(appended: Appended, refusals: "Refusals") -> Appended:
    """Add the partitions of a piece that the transaction coordinator has refused."""
    ((_, rows),) = refused_rows(refusals)
    appended.results[-1][1].extend(rows)
    return appended._replace(failed=True)
