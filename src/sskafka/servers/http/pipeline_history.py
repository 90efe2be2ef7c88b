"""Runs of pipelines, from the topic in which they publish events. The HTTP process reads each event once per caller.

Every request fetches with the connections of its caller, at least the last event, so that the ACLs of the topic decide
also when all events were read before. The histories of a few callers are kept.
"""

import asyncio
from collections import OrderedDict

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnknownTopicError
from sskafka.client.offset_range import Span
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.ids import TopicPartition
from sskafka.model.pipeline_events import EVENTS_TOPIC, Event
from sskafka.model.pipeline_runs import RunHistory
from sskafka.servers.http.browsing.pages import read_spans
from sskafka.servers.http.caller import HttpCaller

EVENTS_READ_MAX = 50_000
WINDOW = 2_000
READ_TIMEOUT_MS = 10_000
CALLERS_MAX = 16
_SLICE_EVENTS = 100
_PARTITION = TopicPartition(EVENTS_TOPIC, 0)


class PipelineHistory:
    """The history that one caller sees."""

    def __init__(self) -> None:
        self.runs = RunHistory()
        self._next_offset = 0
        self._turn = asyncio.Lock()

    async def refresh(self, cluster: Cluster) -> RunHistory:
        """Read the events since the last time. Raise KafkaError if the caller may not read them."""
        async with self._turn:
            try:
                first = (await list_offsets(cluster, {_PARTITION: EARLIEST}))[_PARTITION].offset
                end = (await list_offsets(cluster, {_PARTITION: LATEST}))[_PARTITION].offset
            except UnknownTopicError:
                first = end = 0
            if end < self._next_offset:  # the topic was deleted and created again
                self.runs, self._next_offset = RunHistory(), 0
            self._next_offset = max(self._next_offset, first, end - EVENTS_READ_MAX)
            deadline_ms = cluster.deadline_ms(READ_TIMEOUT_MS)
            if first < end == self._next_offset:
                await read_spans(cluster, {_PARTITION: Span(end - 1, end)}, "read_uncommitted", deadline_ms)
            while self._next_offset < end and cluster.clock.monotonic_ms() < deadline_ms:
                await self._read(cluster, min(end, self._next_offset + WINDOW), deadline_ms)
            return self.runs

    async def _read(self, cluster: Cluster, stop: int, deadline_ms: float) -> None:
        span = Span(self._next_offset, stop)
        found = await read_spans(cluster, {_PARTITION: span}, "read_uncommitted", deadline_ms)
        if _PARTITION not in found:
            return
        for number, record in enumerate(found[_PARTITION], 1):
            event = Event.maybe_from_json(record.value)
            if event is not None:
                self.runs.add(event)
            if number % _SLICE_EVENTS == 0:
                await asyncio.sleep(0)
        self._next_offset = stop


class PipelineHistories:
    def __init__(self) -> None:
        self._of_callers: OrderedDict[HttpCaller | None, PipelineHistory] = OrderedDict()

    def of(self, caller: HttpCaller | None) -> PipelineHistory:
        history = self._of_callers.setdefault(caller, PipelineHistory())
        self._of_callers.move_to_end(caller)
        if len(self._of_callers) > CALLERS_MAX:
            self._of_callers.popitem(last=False)
        return history
