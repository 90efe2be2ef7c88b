"""Events of pipelines: starts, progress, ends, and requests to stop. Each is a JSON record in EVENTS_TOPIC."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any

EVENTS_TOPIC = "sskafka-pipeline-events"
DEAD_LETTERS_QUERY = "dead-letters"
"""The query of a run that writes its dead letters."""
NUMBERS = ("batch", "rows_in", "rows_out", "in_per_s", "out_per_s", "lag", "state_rows", "batch_ms")
"""Fields of a query's progress that are numbers."""


class EventType(StrEnum):
    STARTED = "started"
    PROGRESS = "progress"
    STOP_REQUESTED = "stop-requested"
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = frozenset({EventType.STOPPED, EventType.FAILED})


@dataclass(frozen=True, slots=True)
class Event:
    pipeline: str
    run: str
    type: EventType
    time_ms: int
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> bytes:
        return f"{self.pipeline}/{self.run}/{self.type}".encode()

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def maybe_from_json(cls, text: bytes | None) -> "Event | None":
        """Parse an event; None for records of other writers, such as a later version."""
        try:
            fields = json.loads(text or b"")
            event = cls(**{**fields, "type": EventType(fields["type"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return event if event._is_well_formed else None

    @property
    def _is_well_formed(self) -> bool:
        """Return whether the fields have their types. Everybody who may write to the topic can store anything."""
        names_are_text = all(isinstance(name, str) and name.isprintable() for name in (self.pipeline, self.run))
        queries = self.details.get("queries", []) if isinstance(self.details, dict) else None
        return (
            names_are_text
            and type(self.time_ms) is int
            and isinstance(queries, list)
            and all(isinstance(query, dict) and _has_numbers(query) for query in queries)
        )


def _has_numbers(query: dict[str, Any]) -> bool:
    values = (query.get(name, 0) for name in NUMBERS)
    return all(type(value) is int or (type(value) is float and isfinite(value)) for value in values)
