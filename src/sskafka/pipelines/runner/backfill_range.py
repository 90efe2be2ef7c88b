"""The range of a backfill: start and end offset of each partition.

    earliest, latest                    the ends of the log
    2026-01-31T12:00:00Z, 2026-01-31    a time; UTC if it has no zone
    1769860800000                       the same in milliseconds since 1970
    orders:0:100,orders:1:250           offsets; only the partitions that are named are read

`--from` is the first offset that is read, and `--to` the first one that is not. A time means the offset of the first
record at or after it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.offsets import Offsets, OffsetsJson, from_json, to_json
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.runner.errors import PipelineRunError

FORMS = "earliest, latest, a time such as 2026-01-31T12:00:00Z, milliseconds since 1970, or topic:partition:offset,..."
_DIGEST_LENGTH = 10
_NAMED_PARTS = 3


class RangeError(PipelineRunError):
    """The range cannot be read."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: exactly one of the three fields is set."""

    word: str = ""
    time_ms: int | None = None
    offsets: tuple[tuple[TopicPartition, int], ...] = ()

    def options(self, which: str) -> dict[str, str]:
        """Return the options of the connector for this bound; `which` is starting or ending."""
        if self.time_ms is not None:
            return {f"{which}Timestamp": str(self.time_ms)}
        if self.offsets:
            return {f"{which}Offsets": json.dumps(to_json(dict(self.offsets)))}
        return {f"{which}Offsets": self.word}

    def of(self, partitions: set[TopicPartition]) -> "Bound":
        """Return the bound for these partitions only."""
        return Bound(self.word, self.time_ms, tuple(one for one in self.offsets if one[0] in partitions))

    @property
    def partitions(self) -> set[TopicPartition]:
        return {partition for partition, _ in self.offsets}

    def __str__(self) -> str:
        if self.time_ms is not None:
            return datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
        return self.word or ",".join(f"{one.topic}:{one.partition}:{offset}" for one, offset in sorted(self.offsets))


class BackfillRange(NamedTuple):
    """The range of a backfill as the user has specified it."""

    start: Bound
    end: Bound

    def __str__(self) -> str:
        return f"from {self.start} to {self.end}"


def parse_range(start: str, end: str) -> BackfillRange:
    """Parse `--from` and `--to`; an empty text means the end of the log."""
    chosen = BackfillRange(_bound("--from", start or "earliest"), _bound("--to", end or "latest"))
    if chosen.start.word == "latest":
        raise RangeError("--from latest would read nothing; name a time or an offset")
    if chosen.end.word == "earliest":
        raise RangeError("--to earliest would read nothing; name a time or an offset")
    first, last = chosen.start.time_ms, chosen.end.time_ms
    if first is not None and last is not None and first >= last:
        raise RangeError(f"--from {chosen.start} is not before --to {chosen.end}")
    if chosen.start.offsets and chosen.end.offsets:
        differing = chosen.start.partitions ^ chosen.end.partitions
        if differing:
            raise RangeError(f"{min(differing)} is named in only one of --from and --to; name it in both")
    return chosen


def _bound(option: str, text: str) -> Bound:
    if text in {"earliest", "latest"}:
        return Bound(word=text)
    if text.isdigit():
        return Bound(time_ms=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return Bound(offsets=_offsets(option, text))
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Bound(time_ms=int(aware.timestamp() * 1000))


def _offsets(option: str, text: str) -> tuple[tuple[TopicPartition, int], ...]:
    found: dict[TopicPartition, int] = {}
    for part in text.split(","):
        fields = part.strip().rsplit(":", _NAMED_PARTS - 1)
        if len(fields) != _NAMED_PARTS or not fields[0] or not fields[1].isdigit() or not fields[2].isdigit():
            raise RangeError(f"{option} {text!r} is none of {FORMS}")
        partition = TopicPartition(fields[0], int(fields[1]))
        if partition in found:
            raise RangeError(f"{option} names {partition} twice")
        found[partition] = int(fields[2])
    return tuple(sorted(found.items()))


def backfill_name(pipeline: Pipeline, chosen: BackfillRange) -> str:
    """Return a name that is the same for the same range of the same topics, in whatever form the range is written."""
    topics = [(source.name, *source.subscription) for source in pipeline.sources]
    text = json.dumps([str(chosen.start), str(chosen.end), topics])
    return f"{pipeline.name}@backfill-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]}"


# Offsets


class SourceRange(NamedTuple):
    """The offsets that are read from the topics of one source."""

    start: OffsetsJson
    end: OffsetsJson

    @property
    def size(self) -> int:
        """Number of offsets, which may exceed the number of records."""
        first = from_json(self.start)
        return sum(offset - first[partition] for partition, offset in from_json(self.end).items())

    def options(self) -> dict[str, str]:
        """Return the options of a batch read."""
        assigned: dict[str, list[int]] = {}
        for partition in from_json(self.start):
            assigned.setdefault(partition.topic, []).append(partition.partition)
        return {
            "assign": json.dumps(assigned),
            "startingOffsets": json.dumps(self.start),
            "endingOffsets": json.dumps(self.end),
        }


def resolved_ranges(
    session: ClusterSession, pipeline: Pipeline, chosen: BackfillRange, bootstrap: str
) -> dict[str, SourceRange]:
    """Return the offsets of the range as of now, by source."""
    _refuse_unknown_partitions(session, pipeline, chosen, bootstrap)
    return {source.name: _resolved(session, pipeline, source, chosen, bootstrap) for source in pipeline.sources}


def _refuse_unknown_partitions(
    session: ClusterSession, pipeline: Pipeline, chosen: BackfillRange, bootstrap: str
) -> None:
    read = {
        partition
        for source in pipeline.sources
        for partition in _planner(session, pipeline, source, {}, bootstrap).partitions()
    }
    for partition in sorted((chosen.start.partitions | chosen.end.partitions) - read):
        raise RangeError(f"{partition} is not read by {pipeline.name}: its sources have no such partition")


def _resolved(
    session: ClusterSession, pipeline: Pipeline, source: Source, chosen: BackfillRange, bootstrap: str
) -> SourceRange:
    partitions = set(_planner(session, pipeline, source, {}, bootstrap).partitions())
    start, end = chosen.start.of(partitions), chosen.end.of(partitions)
    named = start.partitions | end.partitions
    if (chosen.start.offsets or chosen.end.offsets) and not named:
        raise RangeError(f"the range names no partition of the source {source.name}; name the partitions to read")
    options = {**start.options("starting"), **end.options("ending")}
    planner = _planner(session, pipeline, source, options, bootstrap, named)
    return _checked(planner.starting(), planner.ending(), is_by_offset=bool(start.offsets and end.offsets))


def _checked(start: Offsets, end: Offsets, *, is_by_offset: bool) -> SourceRange:
    """Return the range. If timestamps in a log are not in order, the end may be before the start; then it is empty."""
    for partition in sorted(start):
        if is_by_offset and start[partition] > end[partition]:
            raise RangeError(f"{partition} would begin at {start[partition]} and end before that, at {end[partition]}")
    return SourceRange(to_json(start), to_json({one: max(start[one], end[one]) for one in start}))


def _planner(
    session: ClusterSession,
    pipeline: Pipeline,
    source: Source,
    options: Mapping[str, str],
    bootstrap: str,
    named: set[TopicPartition] | None = None,
) -> Planner:
    subscription, what = source.subscription
    subscribed = {"assign": json.dumps(_by_topic(named))} if named else {subscription: what}
    options = {
        **pipeline.client_options,
        **connection_options(source),
        BOOTSTRAP: bootstrap,
        "kafka.isolation.level": "read_committed",
        "startingOffsetsByTimestampStrategy": "latest",
        **subscribed,
        **options,
    }
    return Planner(source_options(options, streaming=False), session)


def _by_topic(partitions: set[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def connection_options(source: Source) -> dict[str, str]:
    """Return the options of a source without those for the start of a stream."""
    return {
        name: value for name, value in source.options.items() if not name.lower().startswith(("starting", "ending"))
    }
