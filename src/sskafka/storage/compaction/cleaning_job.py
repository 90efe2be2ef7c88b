"""The cleaner's jobs and answers, which are sent as lines of JSON.

job ->      everything that the cleaner must know about a log; it opens only the segments named here
<- group    some segments have been rewritten; the broker may swap the result in
<- done     the round is complete
<- failed   the reason, and the errno if an OSError caused it
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sskafka.model.values import value
from sskafka.storage.compaction.batch_cleaning import LastOfProducer
from sskafka.storage.transactions.index import AbortedTxn

RELATIVE_OFFSET_MAX = 2**31 - 1


class SourceSegment(NamedTuple):
    base_offset: int
    end_offset: int
    """The base offset of the next segment."""
    size_bytes: int
    index_bytes: int
    time_index_bytes: int
    start: int = 0
    """Position of the first batch that is read. The batches before it lie below the log start: nobody reads them, and
    nobody notices if they are damaged."""


def group_segments(
    segments: Sequence[SourceSegment], size_max: int, index_size_max: int
) -> list[tuple[SourceSegment, ...]]:
    """Group adjacent segments that are merged into one when they are cleaned.

    Cleaning leaves segments small, so as many segments as fit into `segment.bytes`, by their sizes before the cleaning,
    are merged. Their indexes must fit too, and their offsets must fit into four bytes relative to the base offset of
    the group."""
    groups: list[list[SourceSegment]] = []
    for segment in segments:
        if groups and _fits([*groups[-1], segment], size_max, index_size_max):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [tuple(group) for group in groups]


def _fits(group: list[SourceSegment], size_max: int, index_size_max: int) -> bool:
    return (
        sum(segment.size_bytes for segment in group) <= size_max
        and sum(segment.index_bytes for segment in group) <= index_size_max
        and sum(segment.time_index_bytes for segment in group) <= index_size_max
        and group[-1].end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )


class CleaningLimits(NamedTuple):
    map_bytes: int
    map_load_factor: float
    bytes_per_second: float
    io_bytes: int
    """Bytes to read or write at once."""


@value
class CleaningJob:
    directory: str
    segments: tuple[SourceSegment, ...]
    """All closed segments before the first one that may not be cleaned yet."""
    first_dirty_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    last_of_producers: Mapping[int, LastOfProducer]
    aborted: tuple[AbortedTxn, ...]
    limits: CleaningLimits


class CleanedGroup(NamedTuple):
    """A complete and synced `<base offset>.*.cleaned`, which replaces the segments that begin at these offsets."""

    base_offsets: tuple[int, ...]
    """The first one is also the base offset of the new segment."""
    size_bytes: int


class CleaningStats(NamedTuple):
    end_offset: int
    """The log is clean below this offset."""
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int
    map_utilization: float
    seconds: float


class CleaningFailure(NamedTuple):
    reason: str
    errno: int | None = None


Answer = CleanedGroup | CleaningStats | CleaningFailure


def encode_job(job: CleaningJob) -> bytes:
    fields = {name: getattr(job, name) for name in CleaningJob.__dataclass_fields__}
    return json.dumps(fields).encode() + b"\n"


def decode_job(line: bytes) -> CleaningJob:
    fields: dict[str, Any] = json.loads(line)
    fields["segments"] = tuple(SourceSegment(*segment) for segment in fields["segments"])
    fields["last_of_producers"] = {
        int(producer_id): LastOfProducer(*last) for producer_id, last in fields["last_of_producers"].items()
    }
    fields["aborted"] = tuple(AbortedTxn(*aborted) for aborted in fields["aborted"])
    fields["limits"] = CleaningLimits(*fields["limits"])
    return CleaningJob(**fields)


_KINDS: dict[str, type[CleanedGroup] | type[CleaningStats] | type[CleaningFailure]] = {
    "group": CleanedGroup,
    "done": CleaningStats,
    "failed": CleaningFailure,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_answer(answer: Answer) -> bytes:
    return json.dumps([_NAMES[type(answer)], answer]).encode() + b"\n"


def decode_answer(line: bytes) -> Answer:
    name, fields = json.loads(line)
    if name == "group":
        base_offsets, size_bytes = fields
        return CleanedGroup(tuple(base_offsets), size_bytes)
    return _KINDS[name](*fields)
