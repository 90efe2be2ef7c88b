"""The readers that Spark calls for `spark.read` and `spark.readStream.format("sskafka")`.

Spark creates readers in several processes and pickles them to tasks, so they contain options only and connect when they
are used.
"""

import asyncio
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.filters import Narrowing, narrowing_of
from sskafka.pipelines.connector.kept_sessions import kept_session
from sskafka.pipelines.connector.offsets import (
    OffsetRange,
    Offsets,
    OffsetsJson,
    TopicIds,
    beginning_at,
    first_start,
    from_json,
    ids_in,
    is_same_place,
    limited,
    to_json,
)
from sskafka.pipelines.connector.options import SourceOptions
from sskafka.pipelines.connector.planning import ClusterSession, LogEnds, Planner
from sskafka.pipelines.connector.progress import maybe_commit_progress
from sskafka.pipelines.connector.read_ahead import ReadAhead, install, is_small
from sskafka.pipelines.connector.spark_process import skip_imported_objects

GROUP_QUIET_S = 60
_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


class RangesPartition(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(tuple(ranges))
        self.ranges = tuple(ranges)


def _read(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    skip_imported_objects()
    if isinstance(partition, RangesPartition):
        with kept_session(options.bootstrap, options.connection) as session:
            yield from read_ranges(options, partition.ranges, session)


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        with ClusterSession(self._options.bootstrap, self._options.connection) as session:
            planner = Planner(self._options, session)
            tasks = planner.tasks(*planner.bounds(), narrowed=self._narrowing.narrowed)
            return [RangesPartition(ranges) for ranges in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)


class FilteringReader(BatchReader):
    """A batch reader for the process in which Spark pushes filters down (`is_pushing_filters`)."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        self._narrowing, left = narrowing_of(filters)
        return iter(left)


def is_pushing_filters() -> bool:
    """Return whether this is the process in which Spark pushes filters down, by the module that it has imported.

    In other processes a reader must not have `pushFilters`: if spark.sql.python.filterPushdown.enabled is false, which
    is the default, Spark refuses such a reader instead of reading without filters."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING in sys.modules or getattr(main, "name", "") == _PUSHING


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._session: ClusterSession | None = None
        self._initial: OffsetsJson | None = None
        self._target: Offsets | None = None
        """The end of a query with Trigger.AvailableNow."""
        self._target_ids: TopicIds = {}
        self._ends: LogEnds | None = None
        """The ends of the partitions when they were last requested."""
        self._planned: OffsetsJson | None = None
        """The end offsets that were returned last, if they are within `_ends`."""
        self._reads_ahead = install()
        self._ahead: ReadAhead | None = None
        """The rows of the micro-batch that was planned last, if it is small."""
        self._has_moved = False
        """Whether the last end was after its start: then the next batch is likely to need the earliest offsets, too."""
        self._committed: Offsets | None = None
        self._group_commit: tuple[Offsets, asyncio.Task[bool]] | None = None
        """The commit to the group that is in progress. It ends when the tasks are planned, or if there are none."""
        self._quiet_until = 0.0
        """No commits to the group before this time: after a failed commit, a query must not wait for the next one."""
        self._triggered_at = -math.inf
        """When minOffsetsPerTrigger last started a batch; the first batch need not wait."""

    def initialOffset(self) -> OffsetsJson:
        """Return where the first batch starts. Spark asks twice, and the end of the log may have moved in between."""
        if self._initial is None:
            planner = self._planner()
            starting = planner.starting()
            self._initial = to_json(starting, _ids_of(planner, starting))
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        planner = self._planner()
        self._target = planner.latest()
        self._target_ids = _ids_of(planner, self._target)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        self._begin_group_commit(from_json(start))
        try:
            end = self._next_end(start, limit)
            self._has_moved = not is_same_place(start, end)
            if self._reads_ahead:
                self._read_ahead(start, end)
        except BaseException:
            self._finish_group_commit()
            raise
        if not self._has_moved:
            self._finish_group_commit()
        return end

    def _next_end(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        begin, self._planned = from_json(start), None
        if self._options.pause_file and os.path.exists(self._options.pause_file):
            return self._answered(start, start)
        planner = self._planner()
        expected = () if self._ends is None else self._ends.latest.keys()
        self._ends = planner.ends(expected, with_earliest=self._has_moved)
        latest = self._ends.latest
        ids = planner.known_ids(partition.topic for partition in latest)
        known = ids_in(start)
        if known and known != ids:
            begin = planner.still_valid(begin, known, ids)
        if self._target is None and self._must_wait(begin, latest):
            return self._answered(start, start)
        end = latest if self._target is None else self._target
        ids = ids if self._target is None else self._target_ids
        if isinstance(limit, ReadMaxRows):
            fresh = [partition for partition in end if partition not in begin]
            end = limited({**planner.earliest(fresh), **begin}, end, limit.max_rows)
        answer = self._answered(start, to_json(end, ids))
        self._planned = answer if self._target is None else None
        return answer

    def _answered(self, start: OffsetsJson, end: OffsetsJson) -> OffsetsJson:
        """Return the end of the batch as Spark stores it.

        Spark runs the first batch of a query also if it has no records, and later ones if the text of the end differs
        from that of the start."""
        if start == self._initial and ids_in(start) == ids_in(end):
            return beginning_at(start, end)
        return start if is_same_place(start, end) else end

    def _must_wait(self, begin: Offsets, latest: Offsets) -> bool:
        """Return whether too few records are available for a batch, and maxTriggerDelay has not passed."""
        least, now = self._options.min_offsets_per_trigger, time.monotonic()
        if least is None:
            return False
        waiting = sum(max(0, offset - begin.get(partition, 0)) for partition, offset in latest.items())
        if waiting < least and (now - self._triggered_at) * 1000 < self._options.max_trigger_delay_ms:
            return True
        self._triggered_at = now
        return False

    def reportLatestOffset(self) -> OffsetsJson | None:
        return None if self._ends is None else to_json(self._ends.latest)

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        tasks = self._tasks(start, end)
        self._finish_group_commit()
        return [RangesPartition(ranges) for ranges in tasks]

    def _tasks(self, start: OffsetsJson, end: OffsetsJson) -> list[list[OffsetRange]]:
        if self._ahead is not None and self._ahead.is_between(start, end):
            return [self._ahead.ranges]
        start = first_start(end) or start  # Spark repeats a first batch, and `latest` is another offset now
        return self._planner().tasks_between(start, end, self._ends if end == self._planned else None)

    def _read_ahead(self, start: OffsetsJson, end: OffsetsJson) -> None:
        """Send the fetch of a small micro-batch now: its response arrives while Spark writes its offset log."""
        self._drop_rows()
        if self._has_moved and end == self._planned:
            tasks = self._tasks(start, end)
            if is_small(tasks):
                self._ahead = ReadAhead(self._connected(), self._options, tasks[0], start, end)

    def take_rows(self, start: OffsetsJson, end: OffsetsJson) -> list[pa.RecordBatch] | None:
        """Return the rows of the micro-batch, if they were read ahead."""
        if self._ahead is None or not self._ahead.is_between(start, end):
            return None
        ahead, self._ahead = self._ahead, None
        return ahead.rows()

    def _drop_rows(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, partition)

    def commit(self, end: OffsetsJson) -> None:
        self._commit_to_group(from_json(end))

    def _commit_to_group(self, done: Offsets) -> None:
        """Commit the start of the next batch to the group. Spark calls `commit` for the last batch late or never."""
        self._begin_group_commit(done)
        self._finish_group_commit()

    def _begin_group_commit(self, done: Offsets) -> None:
        """Start the commit, which continues while the next batch is planned."""
        self._finish_group_commit()
        if done != self._committed and time.monotonic() >= self._quiet_until:
            session = self._connected()
            commit = session.begin(maybe_commit_progress(session.cluster, self._options.group_id, done))
            self._group_commit = done, commit

    def _finish_group_commit(self) -> None:
        telling, self._group_commit = self._group_commit, None
        if telling is None:
            return
        done, task = telling
        if self._connected().run(_result_of(task)):
            self._committed = done
        else:
            self._quiet_until = time.monotonic() + GROUP_QUIET_S

    def stop(self) -> None:
        self._drop_rows()
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _planner(self) -> Planner:
        return Planner(self._options, self._connected())

    def _connected(self) -> ClusterSession:
        if self._session is None:
            self._session = ClusterSession(self._options.bootstrap, self._options.connection)
        return self._session


async def _result_of(task: "asyncio.Task[bool]") -> bool:
    return await task


def _ids_of(planner: Planner, offsets: Offsets) -> TopicIds:
    return planner.topic_ids(partition.topic for partition in offsets)
