"""Producers that count what they send, and the losses, duplicates and delays that the audit should find.

A producer that is to be audited reports every record to `Counts`, and sends the messages that it returns.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task, as_json, milliseconds
from sskafka.pipelines.shipped.reading import parquet_rows

MINUTE = timedelta(minutes=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
_PRODUCERS = ("web-1", "web-2", "app")
_MINUTES = 5
_MISHAPS_MAX = 3


class Counts:
    """The number of records that one producer has sent to each topic in each minute of event time."""

    def __init__(self, producer: str) -> None:
        self._producer = producer
        self._counts: dict[tuple[str, datetime], int] = {}

    def note(self, topic: str, at: datetime) -> None:
        minute = at.replace(second=0, microsecond=0)
        self._counts[topic, minute] = self._counts.get((topic, minute), 0) + 1

    def take(self, before: datetime) -> Iterator[Message]:
        """Yield the counts of minutes that ended before this time, for the topic of counts; each is returned once."""
        for topic, minute in sorted(self._counts):
            if minute + MINUTE <= before:
                published = self._counts.pop((topic, minute))
                fields = {"producer": self._producer, "topic": topic, "minute": minute, "published": published}
                yield Message(self._producer, as_json(**fields))


class Mishaps(NamedTuple):
    """What happens to the records of one producer and minute."""

    lost: int
    duplicated: int
    late: int


def exercise(task: Task) -> Exercise:
    """Some minutes of some producers; in a few minutes records are lost, duplicated or late."""
    topic = task.topics["events"]
    chance = random.Random(task.seed)
    events: list[Message] = []
    counts: list[Message] = []
    expected = []
    each = max(_MISHAPS_MAX * 4, task.records // (len(_PRODUCERS) * _MINUTES))
    for producer in _PRODUCERS:
        own = Counts(producer)
        for number in range(_MINUTES):
            minute = START + number * MINUTE
            mishaps = Mishaps(*(chance.choice((0, 0, 0, chance.randint(1, _MISHAPS_MAX))) for _ in range(3)))
            for message, at in _minute(producer, minute, each, number * each):
                own.note(topic, at)
                events.append(message)
            _befall(events, each, mishaps)
            arrived = each - mishaps.lost + mishaps.duplicated
            expected.append((topic, producer, minute, each, arrived, *mishaps))
        counts += own.take(START + timedelta(days=1))
    closing = START + timedelta(days=1)  # moves both watermarks past the last minute; its own minute does not end
    events.append(_event("last", 0, closing))
    counts.append(Message("last", as_json(producer="last", topic=topic, minute=closing, published=1)))
    return Exercise({"events": events, "counts": counts}, expected, _found)


def _minute(producer: str, minute: datetime, count: int, first: int) -> Iterator[tuple[Message, datetime]]:
    for number in range(count):
        at = minute + MINUTE * number / count
        yield _event(producer, first + number, at), at


def _event(producer: str, sequence: int, at: datetime) -> Message:
    return Message(producer, as_json(producer=producer, sequence=sequence, at=at), None, milliseconds(at))


def _befall(events: list[Message], count: int, mishaps: Mishaps) -> None:
    """Apply the mishaps to the last `count` events, at most one to each event."""
    own = events[-count:]
    late = [message._replace(timestamp_ms=_late(message)) for message in own[: mishaps.late]]
    doubled = own[mishaps.late : mishaps.late + mishaps.duplicated]
    kept = own[mishaps.late : count - mishaps.lost]
    events[-count:] = [*late, *kept, *doubled]


def _late(message: Message) -> int:
    assert message.timestamp_ms is not None
    return message.timestamp_ms + milliseconds(datetime.fromtimestamp(600, UTC))


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    for row in parquet_rows(pipeline):
        minute = row["minute"].replace(tzinfo=UTC)
        yield (row["topic"], row["producer"], minute, row["published"], row["arrived"],
               row["lost"], row["duplicated"], row["late"])  # fmt: skip
