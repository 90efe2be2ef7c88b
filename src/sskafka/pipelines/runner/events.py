"""The topic of events of pipelines: how it is created, written and read.

Each event is one JSON record. Any terminal that reaches the cluster can read them, so `status` and `stop` need no
shared file system. The topic has one partition, so events are in the order in which they were written. Their key
consists of pipeline, run and type, and the topic is compacted: start, last progress and end of an old run remain.
"""

import json
from collections.abc import Iterator

from sskafka.client.admin import NewTopic
from sskafka.client.errors import UnknownTopicError
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.ids import TopicPartition
from sskafka.model.pipeline_events import EVENTS_TOPIC, Event
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.topics import create_topics

_DAY_MS = 24 * 60 * 60 * 1000
SETTINGS = {
    "cleanup.policy": "compact,delete",
    "min.compaction.lag.ms": str(_DAY_MS),
    "segment.ms": str(_DAY_MS),
    "retention.ms": str(90 * _DAY_MS),
}
EVENTS_READ_MAX = 200_000
_PARTITION = TopicPartition(EVENTS_TOPIC, 0)


class EventLog:
    """Appends events and reads them."""

    def __init__(self, session: ClusterSession, bootstrap: str) -> None:
        self._session = session
        self._bootstrap = bootstrap

    def create(self) -> None:
        create_topics(self._session, [NewTopic(EVENTS_TOPIC, partitions=1, configs=SETTINGS)])

    def append(self, event: Event) -> None:
        (payload,) = payloads([Row(event.key, event.to_json())])
        batch = framed(payload, timestamp=event.time_ms)
        self._session.run(deliver(self._session.cluster, {_PARTITION: batch}, None))

    def end(self) -> int:
        return self._bounds()[1]

    def since(self, offset: int) -> Iterator[Event]:
        """Yield events starting at an offset, oldest first; none if the topic does not exist."""
        first, last = self._bounds()
        start = max(first, offset)
        if start < last:
            yield from self._between(start, last)

    def everything(self) -> Iterator[Event]:
        """Yield all events that compaction has kept, up to a limit."""
        return self.since(self.end() - EVENTS_READ_MAX)

    def _bounds(self) -> tuple[int, int]:
        cluster = self._session.cluster
        try:
            first = self._session.run(list_offsets(cluster, {_PARTITION: EARLIEST}))[_PARTITION].offset
            last = self._session.run(list_offsets(cluster, {_PARTITION: LATEST}))[_PARTITION].offset
        except UnknownTopicError:
            return 0, 0
        return first, last

    def _between(self, start: int, end: int) -> Iterator[Event]:
        assigned = json.dumps({EVENTS_TOPIC: [0]})
        options = source_options(
            {BOOTSTRAP: self._bootstrap, "assign": assigned, "failOnDataLoss": "false"}, streaming=False
        )
        for batch in read_ranges(options, [OffsetRange(_PARTITION, start, end)], self._session):
            events = map(Event.maybe_from_json, batch.column("value").to_pylist())
            yield from (event for event in events if event is not None)
