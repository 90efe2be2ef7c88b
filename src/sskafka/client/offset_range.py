"""Start and end offsets of each partition: the -o option of `consume`, and `from` of HTTP requests.

    start, end          the first available record; new records only
    N, +N, -N           offset N; N after the start; N before the end
    @TIME               the first record at or after TIME
    FROM:TO             from one of these up to, not including, another; either may be omitted

TIME is milliseconds (13 digits) or seconds (10 digits) since 1970, an ISO date or date and time (UTC by default), or
-30s, -15m, -2h, -1d: that long ago.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from sskafka.model.ids import TopicPartition

_WORDS = {"start": "START", "beginning": "START", "earliest": "START", "oldest": "START"}
_WORDS |= {"end": "END", "latest": "END", "newest": "END"}
_AGO = re.compile(r"-(\d+)(ms|s|m|h|d)")
_TIME_MS_MAX = 2**63 - 1
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Anchor(Enum):
    START = "start"
    END = "end"
    OFFSET = "offset"
    AFTER_START = "after start"
    BEFORE_END = "before end"
    TIME = "time"


class Bound(NamedTuple):
    anchor: Anchor
    number: int = 0


class OffsetRange(NamedTuple):
    start: Bound
    stop: Bound | None
    """None: no end."""


class Span(NamedTuple):
    """A range of offsets in one partition; `stop` is exclusive."""

    start: int
    stop: int | None


def parse_offset_range(text: str, now_ms: int) -> OffsetRange:
    """Parse a range. Raise ValueError with the allowed forms."""
    if text.startswith("@"):
        return _parse_times(text, now_ms)
    start, colon, stop = text.partition(":")
    first = _parse_bound(start, now_ms) if start else Bound(Anchor.START)
    return OffsetRange(first, _parse_bound(stop, now_ms) if colon and stop else None)


def _parse_times(text: str, now_ms: int) -> OffsetRange:
    """Parse a range of times. Times may contain colons, so every colon is tried as the separator."""
    for colon in [len(text), *(match.start() for match in re.finditer(":", text))]:
        try:
            start, stop = text[1:colon], text[colon + 1 :].removeprefix("@")
            first = Bound(Anchor.TIME, parse_time(start, now_ms)) if start else Bound(Anchor.START)
            if not stop:
                return OffsetRange(first, None)
            last = Bound(Anchor.END) if stop in {"end", "latest"} else Bound(Anchor.TIME, parse_time(stop, now_ms))
            return OffsetRange(first, last)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is not a valid time; try @2024-05-01T12:00:00Z, @1714564800000 or @-15m")


def _parse_bound(text: str, now_ms: int) -> Bound:
    if text in _WORDS:
        return Bound(Anchor[_WORDS[text]])
    if text.startswith("@"):
        return Bound(Anchor.TIME, parse_time(text[1:], now_ms))
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError(f"{text!r} is not an offset; try start, end, 42, +10, -10, @TIME or FROM:TO")
    anchor = {"+": Anchor.AFTER_START, "-": Anchor.BEFORE_END}.get(text[0], Anchor.OFFSET)
    return Bound(anchor, abs(int(text)))


def parse_time(text: str, now_ms: int) -> int:
    """Return the milliseconds since 1970 of a TIME, 0 for earlier ones. Raise ValueError for other texts."""
    ago = _AGO.fullmatch(text)
    if ago:
        time_ms = now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    elif text.isdigit():
        time_ms = int(text) * (1000 if len(text) <= 10 else 1)
    else:
        moment = datetime.fromisoformat(text)
        time_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return min(max(time_ms, 0), _TIME_MS_MAX)  # negative ones have other meanings in ListOffsets


async def resolve(
    cluster: Cluster, wanted: OffsetRange, partitions: Sequence[TopicPartition], isolation: int
) -> dict[TopicPartition, Span]:
    """Return the range as offsets of each partition, limited to what is available now."""
    earliest = await _offsets(cluster, partitions, EARLIEST, isolation)
    latest = await _offsets(cluster, partitions, LATEST, isolation)
    starts = await _resolve_bound(cluster, wanted.start, earliest, latest, isolation)
    if wanted.stop is None:
        return {partition: Span(starts[partition], None) for partition in partitions}
    stops = await _resolve_bound(cluster, wanted.stop, earliest, latest, isolation)
    return {partition: Span(starts[partition], stops[partition]) for partition in partitions}


async def _resolve_bound(
    cluster: Cluster,
    bound: Bound,
    earliest: dict[TopicPartition, int],
    latest: dict[TopicPartition, int],
    isolation: int,
) -> dict[TopicPartition, int]:
    match bound.anchor:
        case Anchor.START:
            return earliest
        case Anchor.END:
            return latest
        case Anchor.OFFSET:
            wanted = dict.fromkeys(earliest, bound.number)
        case Anchor.AFTER_START:
            wanted = {partition: offset + bound.number for partition, offset in earliest.items()}
        case Anchor.BEFORE_END:
            wanted = {partition: offset - bound.number for partition, offset in latest.items()}
        case Anchor.TIME:
            found = await _offsets(cluster, list(earliest), bound.number, isolation)
            wanted = {key: latest[key] if offset == NO_OFFSET else offset for key, offset in found.items()}
    return {partition: min(max(offset, earliest[partition]), latest[partition]) for partition, offset in wanted.items()}


async def _offsets(
    cluster: Cluster, partitions: Sequence[TopicPartition], timestamp: int, isolation: int
) -> dict[TopicPartition, int]:
    found = await list_offsets(cluster, dict.fromkeys(partitions, timestamp), isolation=isolation)
    return {partition: offset.offset for partition, offset in found.items()}
