"""Dead letters: records that a pipeline could not use, with headers that say where they come from and why."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

DLQ = "dlq."
"""Prefix of the headers that dead letters have in addition to those of the original record."""

_DIGITS_MAX = 18

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Origin(NamedTuple):
    """Where a dead letter was read, and why it could not be used."""

    topic: str
    """Empty for a record that is not a dead letter."""
    partition: int
    offset: int
    error: str
    source: str


def replay_group(topic: str) -> str:
    """Return the consumer group that records which dead letters of a topic were sent back."""
    return f"{topic}-replay"


def origin_of(headers: Iterable[tuple[str, bytes | None]]) -> Origin:
    text = {
        name.removeprefix(DLQ): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(DLQ)
    }
    partition, offset = _number(text.get("partition", "")), _number(text.get("offset", ""))
    return Origin(text.get("topic", ""), partition, offset, text.get("error", ""), text.get("source", ""))


def _number(text: str) -> int:
    """Return the number, or 0 if no pipeline would write such a text."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else 0


def original_headers(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    return tuple(header for header in headers if not header[0].startswith(DLQ))
