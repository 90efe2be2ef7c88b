"""Generated input with a known result, by which a bundled pipeline is checked."""

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
    """A record to produce. The default partition depends on the key, and the default timestamp is the current time."""

    key: str | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None


class Task(NamedTuple):
    """The parameters of an exercise. The same task yields the same messages."""

    records: int
    """The approximate number of records."""
    seed: int
    topics: Mapping[str, str]
    """Topics by table of the pipeline."""


@dataclass(frozen=True, slots=True)
class Exercise:
    messages: Mapping[str, Sequence[Message]]
    """Messages by table."""
    expected: Answer
    found: "Callable[[Pipeline, str], Answer]"
    """Returns the result of a run; takes the pipeline and the bootstrap servers."""


def differences(expected: Answer, found: Answer) -> list[str]:
    """Return missing and unexpected rows of the result; empty if it is right."""
    wanted, got = Counter(expected), Counter(found)
    return [*_lines("missing", wanted - got), *_lines("wrong", got - wanted)]


def _lines(kind: str, rows: "Counter[tuple[Hashable, ...]]") -> Iterator[str]:
    ordered = sorted(rows.elements(), key=repr)
    for row in ordered[:SHOWN_MAX]:
        yield f"{kind}: {', '.join(map(str, row))}"
    if len(ordered) > SHOWN_MAX:
        yield f"{kind}: {len(ordered) - SHOWN_MAX} more rows"


def as_json(**fields: Any) -> bytes:
    """Return JSON with times in ISO 8601 with their zone."""
    return json.dumps(fields, default=datetime.isoformat).encode()


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
