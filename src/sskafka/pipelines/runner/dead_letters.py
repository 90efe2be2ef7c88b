"""Read dead letters and send them back. Spark is not needed: dead letters are records of a topic."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sskafka.client.errors import UnknownTopicError
from sskafka.client.groups import commit_offsets
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.dead_letter import origin_of, original_headers, replay_group
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import Offsets, ranges_between
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.progress import committed_progress
from sskafka.records.partitioner import partition_for_key
from sskafka.records.record import Headers

_READ_COMMITTED = 1


class DeadLetter(NamedTuple):
    """A record that could not be used: its position, the error, and the record itself."""

    topic: str
    partition: int
    offset: int
    error: str
    source: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    dead_at: TopicPartition
    dead_offset: int


class DeadLetters:
    """The dead-letter topic of one pipeline. A consumer group records what was replayed."""

    def __init__(self, session: ClusterSession, bootstrap: str, topic: str) -> None:
        self._session = session
        self._bootstrap = bootstrap
        self._topic = topic
        self._group = replay_group(topic)

    def waiting(self, *, everything: bool = False) -> Iterator[DeadLetter]:
        """Yield the letters that were not replayed yet, or all of them."""
        start, end = self._bounds(everything)
        options = source_options(
            {
                BOOTSTRAP: self._bootstrap,
                "subscribe": self._topic,
                "includeHeaders": "true",
                "failOnDataLoss": "false",
                "kafka.isolation.level": "read_committed",
            },
            streaming=False,
        )
        for part in ranges_between(start, end):
            for batch in read_ranges(options, [part], self._session):
                yield from (_letter(row, part.partition) for row in batch.to_pylist())

    def replay(self, limit: int | None = None) -> int:
        """Send records back to their topics. Each is sent once, unless the process dies in between."""
        sent = 0
        for letter in self.waiting():
            if limit is not None and sent >= limit:
                break
            self._session.run(self._send_back(letter))
            self._session.run(self._remember(letter))
            sent += 1
        return sent

    async def _remember(self, letter: DeadLetter) -> None:
        """Commit the offset, and retry until it succeeds: otherwise the next replay would send the letter again."""
        cluster, progress = self._session.cluster, {letter.dead_at: letter.dead_offset + 1}
        await cluster.retrying(lambda: commit_offsets(cluster, self._group, progress))

    async def _send_back(self, letter: DeadLetter) -> None:
        cluster = self._session.cluster
        count = len((await cluster.topic(letter.topic)).partitions)
        number = letter.partition if letter.key is None else partition_for_key(letter.key, count)
        (payload,) = payloads([Row(letter.key, letter.value, letter.headers)])
        batch = framed(payload, timestamp=cluster.clock.now_ms())
        await deliver(cluster, {TopicPartition(letter.topic, min(number, count - 1)): batch}, None)

    def _bounds(self, everything: bool) -> tuple[Offsets, Offsets]:
        cluster = self._session.cluster
        try:
            view = self._session.run(cluster.topic(self._topic))
        except UnknownTopicError:  # the first run creates it
            return {}, {}
        partitions = [TopicPartition(self._topic, number) for number in view.partitions]
        first = self._session.run(list_offsets(cluster, dict.fromkeys(partitions, EARLIEST)))
        last = self._session.run(list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=_READ_COMMITTED))
        done = {} if everything else self._session.run(committed_progress(cluster, self._group, partitions))
        start = {partition: max(first[partition].offset, done.get(partition, 0)) for partition in partitions}
        return start, {partition: last[partition].offset for partition in partitions}


def _letter(row: dict[str, Any], partition: TopicPartition) -> DeadLetter:
    headers: Headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    return DeadLetter(
        *origin_of(headers),
        key=row["key"],
        value=row["value"],
        headers=original_headers(headers),
        dead_at=partition,
        dead_offset=row["offset"],
    )


def letter_fields(letter: DeadLetter) -> dict[str, object]:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "error": letter.error,
        "source": letter.source,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": {name: _text(value) for name, value in letter.headers},
    }


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
