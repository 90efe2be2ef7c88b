"""Planning on the driver, before tasks run: partitions, their start and end offsets, and the ranges of each task."""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

from sskafka.client.admin import Admin
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import ConnectionLostError, RequestTimeoutError, UnknownTopicError
from sskafka.client.offsets import NO_OFFSET, list_offsets
from sskafka.model.ids import ZERO_UUID, TopicPartition, uuid_text
from sskafka.pipelines.connector.errors import DataLossError, OptionError
from sskafka.pipelines.connector.fetching import out_of_range_text
from sskafka.pipelines.connector.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    OffsetsJson,
    TopicIds,
    cut_ranges,
    from_json,
    group_ranges,
    ids_in,
    lost_ranges,
    of_other_topics,
    ranges_between,
    split_ranges,
)
from sskafka.pipelines.connector.options import OffsetSpec, SourceOptions, Subscription

T = TypeVar("T")
Narrow: TypeAlias = Callable[
    [Iterable[OffsetRange], Callable[[Mapping[TopicPartition, int]], Offsets]], list[OffsetRange]
]

logger = logging.getLogger(__name__)


class LogEnds(NamedTuple):
    """First and last offsets of partitions, as the brokers have returned them at one time."""

    latest: Offsets
    earliest: Offsets | None = None
    """None if they were not requested."""


class ClusterSession:
    """A cluster for callers without an event loop; connections are kept between calls."""

    def __init__(self, bootstrap: str, config: ConnectionConfig, *, waits: bool = False, lazily: bool = False) -> None:
        """Connect. `waits`: wait up to `default.api.timeout.ms` for brokers that are not available.

        `lazily`: send no request here; the first use of the session waits or fails."""
        self._runner = asyncio.Runner()
        try:
            self.cluster = (
                Cluster(bootstrap, config) if lazily else self._runner.run(_connected(bootstrap, config, waits))
            )
        except BaseException:
            self._runner.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start work that continues during later calls of `run`; `run(finished(task))` waits for it."""
        return self._runner.get_loop().create_task(work)

    def close(self) -> None:
        self._runner.run(self.cluster.close())
        self._runner.close()


async def _connected(bootstrap: str, config: ConnectionConfig, waits: bool) -> Cluster:
    """Return a cluster that has answered once, so that a query fails at once if nothing listens at the address."""
    cluster = Cluster(bootstrap, config)
    try:
        await (cluster.retrying(cluster.refresh) if waits else _first_answer(cluster))
    except BaseException:
        await cluster.close()
        raise
    return cluster


async def _first_answer(cluster: Cluster) -> None:
    """Ask the brokers in turn.

    One that accepts a connection and closes it is starting or stopping, and is asked again."""
    deadline_ms = cluster.deadline_ms()
    for attempt in count():
        try:
            await cluster.refresh()
            return
        except (ConnectionLostError, RequestTimeoutError):
            if cluster.clock.monotonic_ms() >= deadline_ms:
                raise
        await cluster.pause(attempt, deadline_ms)


class Planner:
    """Plans for a reader by asking the cluster."""

    def __init__(self, options: SourceOptions, session: ClusterSession) -> None:
        self._options = options
        self._session = session
        self._cluster = session.cluster

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the subscription as of now; raises if a topic does not exist."""
        return self._session.run(self._partitions(self._options.subscription))

    async def _partitions(self, subscription: Subscription) -> list[TopicPartition]:
        if subscription.pattern:
            return await self._matching(subscription.pattern)
        names = subscription.topics or sorted({partition.topic for partition in subscription.partitions})
        await self._cluster.retrying(lambda: self._cluster.refresh(names))
        there = [
            TopicPartition(name, number)
            for name in names
            for number in sorted((await self._cluster.retrying(partial(self._cluster.topic, name))).partitions)
        ]
        for partition in subscription.partitions:
            if partition not in there:
                raise UnknownTopicError(f"the option assign names partition {partition}, which does not exist")
        return list(subscription.partitions) or there

    async def _matching(self, pattern: str) -> list[TopicPartition]:
        try:
            matches = re.compile(pattern).search  # anywhere in the name, as in Spark's own source
        except re.error as error:
            raise OptionError("subscribePattern", f"{pattern!r} is not a regular expression: {error}") from None
        topics = await Admin(self._cluster).list_topics()
        return [
            TopicPartition(topic.name, number)
            for topic in topics
            if matches(topic.name)
            for number in sorted(topic.partitions)
        ]

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the current ids of topics, without those that no longer exist or have no id."""
        names = sorted(set(topics))
        self._session.run(self._cluster.retrying(lambda: self._cluster.refresh(names)))
        return self.known_ids(names)

    def known_ids(self, topics: Iterable[str]) -> TopicIds:
        """As `topic_ids`, but as of the last metadata request."""
        view = self._cluster.view
        found = {name: view.topics[name].topic_id for name in sorted(set(topics)) if name in view.topics}
        return {name: uuid_text(topic_id) for name, topic_id in found.items() if topic_id != ZERO_UUID}

    # Start and end offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition] | None = None) -> Offsets:
        """Return the end of each partition: the last stable offset for read_committed, else the high watermark."""
        return self._at(dict.fromkeys(self.partitions() if partitions is None else partitions, LATEST))

    def ends(self, expected: Collection[TopicPartition], *, with_earliest: bool) -> LogEnds:
        """Return the ends of all partitions of the subscription.

        Asks for those of `expected` while it asks for the metadata, and again if the metadata shows other partitions
        or a topic that was created again."""
        return self._session.run(self._ends(expected, with_earliest))

    async def _ends(self, expected: Collection[TopicPartition], with_earliest: bool) -> LogEnds:
        before = self.known_ids(partition.topic for partition in expected)
        early = asyncio.create_task(self._listed(expected, with_earliest)) if expected else None
        try:
            there = await self._partitions(self._options.subscription)
            now = self.known_ids(partition.topic for partition in there)
            if early is not None and before == now and set(there) == set(expected):
                return await early
        finally:
            if early is not None:
                early.cancel()
                await asyncio.gather(early, return_exceptions=True)
        return await self._listed(there, with_earliest)

    async def _listed(self, partitions: Collection[TopicPartition], with_earliest: bool) -> LogEnds:
        if not with_earliest:
            return LogEnds(await self._offsets_at(dict.fromkeys(partitions, LATEST)))
        latest, earliest = await asyncio.gather(
            self._offsets_at(dict.fromkeys(partitions, LATEST)), self._offsets_at(dict.fromkeys(partitions, EARLIEST))
        )
        return LogEnds(latest, earliest)

    def _at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        return self._session.run(self._offsets_at(timestamps))

    async def _offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        found = await list_offsets(self._cluster, timestamps, isolation=self._options.consumer.isolation)
        return {partition: answer.offset for partition, answer in found.items()}

    def starting(self) -> Offsets:
        return self._resolve(
            self._options.starting, "starting", unmatched_is_error=self._options.unmatched_timestamp_is_error
        )

    def ending(self) -> Offsets:
        """Return the end offsets; a timestamp after the last record means the end of the log."""
        return self._resolve(self._options.ending, "ending", unmatched_is_error=False)

    def bounds(self) -> tuple[Offsets, Offsets]:
        """Return start and end of a batch. A start after the end of the log is data loss, which `tasks` reports."""
        start, end = self.starting(), self.ending()
        for partition in sorted(start):
            if self._options.ending.is_explicit_for(partition) and start[partition] > end.get(
                partition, start[partition]
            ):
                raise OptionError(
                    "startingOffsets",
                    f"{partition} would begin at {start[partition]} and end before that, at {end[partition]}",
                )
        return start, end

    def _resolve(self, spec: OffsetSpec, which: str, *, unmatched_is_error: bool) -> Offsets:
        partitions = self.partitions()
        if spec.timestamp is not None:
            return self._by_time(dict.fromkeys(partitions, spec.timestamp), which, unmatched_is_error)
        if spec.timestamps is not None:
            _check_complete(f"{which}OffsetsByTimestamp", partitions, spec.timestamps)
            return self._by_time(spec.timestamps, which, unmatched_is_error)
        if isinstance(spec.offsets, str):
            return self.earliest(partitions) if spec.offsets == "earliest" else self.latest(partitions)
        _check_complete(f"{which}Offsets", partitions, spec.offsets)
        symbolic = {partition: offset for partition, offset in spec.offsets.items() if offset < 0}
        return {**spec.offsets, **self._at(symbolic)}

    def _by_time(self, timestamps: Mapping[TopicPartition, int], which: str, unmatched_is_error: bool) -> Offsets:
        found = self._at(timestamps)
        missing = sorted(partition for partition, offset in found.items() if offset == NO_OFFSET)
        if missing and unmatched_is_error:
            raise OptionError(
                f"{which}Timestamp",
                f"{missing[0]} has no record at or after {timestamps[missing[0]]}; "
                "startingOffsetsByTimestampStrategy=latest would begin at its end",
            )
        return {**found, **self.latest(missing)} if missing else found

    # Ranges of tasks

    def tasks_between(
        self, start: OffsetsJson, end: OffsetsJson, ends: LogEnds | None = None
    ) -> list[list[OffsetRange]]:
        """Return the ranges of each task of a micro-batch between two offsets of Spark.

        `ends` is passed if `end` was just computed from it: then the ends of the logs and the topic ids are not
        requested again."""
        begin, stop = from_json(start), from_json(end)
        now = ids_in(end) if ends is not None else self.topic_ids(partition.topic for partition in stop)
        begin = self.still_valid(begin, ids_in(start), now)
        gone = of_other_topics(stop, ids_in(end), now)
        if gone:
            skipped = sum(max(0, offset - begin.get(partition, 0)) for partition, offset in gone.items())
            self._report_data_loss(
                f"{_topics_text(gone)} deleted and created again after the micro-batch was planned: "
                f"{skipped} offsets of it are gone"
            )
            stop = {partition: offset for partition, offset in stop.items() if partition not in gone}
        return self.tasks(begin, stop, ends)

    def still_valid(self, offsets: Offsets, ids: Mapping[str, str], now: Mapping[str, str]) -> Offsets:
        """Return the offsets without those of topics that were deleted and created again, which start at their
        earliest."""
        stale = of_other_topics(offsets, ids, now)
        if not stale:
            return offsets
        self._report_data_loss(
            f"{_topics_text(stale)} deleted and created again: the {sum(stale.values())} offsets up to which the query "
            "had read are those of the old topic and are skipped; reading begins at the start of the new one"
        )
        return {partition: offset for partition, offset in offsets.items() if partition not in stale}

    def _report_data_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(what)
        logger.warning("%s", what)

    def tasks(
        self, start: Offsets, end: Offsets, ends: LogEnds | None = None, narrowed: Narrow | None = None
    ) -> list[list[OffsetRange]]:
        """Return the ranges of each task; there are fewer tasks than partitions if those are small.

        `narrowed` leaves out what need not be read, after the check that all offsets exist."""
        ranges = ranges_between(*self._checked(start, end, ends))
        if narrowed is not None:
            ranges = narrowed(ranges, self._at)
        options = self._options
        if options.max_records_per_partition is not None:
            ranges = cut_ranges(ranges, options.max_records_per_partition)
            return [[part] for part in split_ranges(ranges, options.min_partitions)]
        if options.min_partitions > len(ranges):
            return [[part] for part in split_ranges(ranges, options.min_partitions)]
        groups = group_ranges(ranges, options.records_per_task)
        if len(groups) < options.min_partitions:
            return [[part] for part in ranges]
        return groups

    def _checked(self, start: Offsets, end: Offsets, ends: LogEnds | None) -> tuple[Offsets, Offsets]:
        """Return the offsets that exist. New partitions start at their earliest offset.

        Missing offsets are data loss."""
        gone = sorted(set(start) - set(end))
        if gone and self._options.fail_on_data_loss:
            raise DataLossError(f"partitions {', '.join(map(str, gone))} were read before and no longer exist")
        latest, earliest = ends or LogEnds(self.latest(end))
        earliest = self.earliest(end) if earliest is None else earliest
        lost = lost_ranges(start, end, earliest, latest)
        if lost:
            skipped = sum(_skipped(part, earliest[part.partition], latest[part.partition]) for part in lost)
            first = _lost_text(lost[0], earliest[lost[0].partition], latest[lost[0].partition])
            self._report_data_loss(
                first if self._options.fail_on_data_loss else f"{first}; {skipped} offsets are skipped"
            )
        stop = {one: min(offset, latest[one]) for one, offset in end.items()}
        return {one: min(max(start.get(one, 0), earliest[one]), stop[one]) for one in end}, stop


def _topics_text(offsets: Iterable[TopicPartition]) -> str:
    names = sorted({partition.topic for partition in offsets})
    return f"the topic {names[0]} was" if len(names) == 1 else f"the topics {', '.join(names)} were"


def _skipped(wanted: OffsetRange, earliest: int, latest: int) -> int:
    """Return how many offsets of a range do not exist."""
    return wanted.size - max(0, min(wanted.end, latest) - max(wanted.start, earliest)) if wanted.size > 0 else 0


def _lost_text(wanted: OffsetRange, earliest: int, latest: int) -> str:
    if wanted.start < earliest or wanted.start > wanted.end:
        return out_of_range_text(wanted, earliest)
    return f"{wanted.partition}: offsets {wanted.start} to {wanted.end} were to be read, but the log ends at {latest}"


def _check_complete(option: str, partitions: list[TopicPartition], offsets: Mapping[TopicPartition, int]) -> None:
    missing, unknown = sorted(set(partitions) - set(offsets)), sorted(set(offsets) - set(partitions))
    if missing:
        raise OptionError(option, f"it does not name {', '.join(map(str, missing))}; name every partition that is read")
    if unknown:
        raise OptionError(option, f"it names {', '.join(map(str, unknown))}, which is not read by this query")
