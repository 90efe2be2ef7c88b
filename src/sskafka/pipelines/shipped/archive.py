"""Records of every shape, and the archive that they should result in."""

import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task, milliseconds
from sskafka.pipelines.shipped.reading import parquet_rows

START = datetime(2026, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=3)
_PARTITIONS = 3


class Gap(NamedTuple):
    """Consecutive offsets that an archive lacks, or has twice."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    copies: int


def gaps(rows: Iterable[dict[str, Any]]) -> list[Gap]:
    """Return where the offsets of an archive are not contiguous.

    In topics that are written by transactions, the offsets of transaction markers are always missing."""
    offsets: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        offsets.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    found = []
    for partition, held in sorted(offsets.items()):
        held.sort()
        for before, after in pairwise(held):
            if after == before:
                found.append(Gap(*partition, before, after, copies=2))
            elif after > before + 1:
                found.append(Gap(*partition, before + 1, after - 1, copies=0))
    return found


def exercise(task: Task) -> Exercise:
    """Records with and without key and value, over three days, in partitions of different lengths."""
    chance = random.Random(task.seed)
    ends = [0] * _PARTITIONS
    messages, expected = [], []
    for number in range(task.records):
        partition = min(chance.randrange(_PARTITIONS + 1), _PARTITIONS - 1)
        at = START + _SPAN * number / task.records
        at = at.replace(microsecond=at.microsecond // 1000 * 1000)
        key = chance.choice((None, f"key-{number % 7}"))
        value = None if number % 11 == 5 else chance.randbytes(chance.randrange(40))
        messages.append(Message(key, value, partition, milliseconds(at)))
        expected.append((task.topics["records"], partition, ends[partition], at, key, value, at.date()))
        ends[partition] += 1
    return Exercise({"records": messages}, expected, _found)


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    rows = parquet_rows(pipeline)
    yield from (("gap", *gap) for gap in gaps(rows))
    for row in rows:
        key = None if row["key"] is None else row["key"].decode()
        at = row["timestamp"].replace(tzinfo=UTC)
        day = row["day"] if isinstance(row["day"], date) else date.fromisoformat(row["day"])
        yield row["topic"], row["partition"], row["offset"], at, key, row["value"], day
