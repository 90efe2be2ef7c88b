"""Input with a known answer: what a shipped pipeline is checked with."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from sskafka.pipelines.files.pipeline import Pipeline

Answer: TypeAlias = Iterable[tuple[Hashable, ...]]
SHOWN_MAX = 10


class Message(NamedTuple):
    """A record to produce. Without a partition the key decides, without a timestamp the clock does."""

    key: str | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None


class Task(NamedTuple):
    """What an exercise is made from. The same task gives the same messages."""

    records: int
    """About so many."""
    seed: int
    topics: Mapping[str, str]
    """By table of the pipeline."""


@dataclass(frozen=True, slots=True)
class Exercise:
    messages: Mapping[str, Sequence[Message]]
    """By table."""
    expected: Answer
    found: "Callable[[Pipeline, str], Answer]"
    """What a run has left, given the pipeline and the bootstrap servers."""


def differences(expected: Answer, found: Answer) -> list[str]:
    """Rows of the answer that are missing, and rows that should not be there; empty when all is well."""
    wanted, got = Counter(expected), Counter(found)
    return [*_lines("missing", wanted - got), *_lines("wrong", got - wanted)]


def _lines(kind: str, rows: "Counter[tuple[Hashable, ...]]") -> Iterator[str]:
    ordered = sorted(rows.elements(), key=repr)
    for row in ordered[:SHOWN_MAX]:
        yield f"{kind}: {', '.join(map(str, row))}"
    if len(ordered) > SHOWN_MAX:
        yield f"{kind}: {len(ordered) - SHOWN_MAX} more rows"


def as_json(**fields: Any) -> bytes:
    """Times as ISO 8601 with their zone."""
    return json.dumps(fields, default=datetime.isoformat).encode()


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
