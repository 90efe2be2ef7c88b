"""One run of a pipeline, from the checks before Spark starts to its end.

    check ─> topics ─> Spark ─> queries ─> [ progress ] ─> no new batches ─> stop
                    └────────── events, requests to stop: reporting.py ─────────┘

A run ends when its queries end (trigger available-now), when one of them fails, on SIGINT or SIGTERM, or when a request
to stop is in the topic of events. A stop waits for the current micro-batches, so that the checkpoint ends between
batches.
"""

import json
import logging
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sskafka.client.admin import NewTopic
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.topics import create_topics, replica_notice
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import ParquetSink
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.runner.errors import PipelineRunError, run_error
from sskafka.pipelines.runner.events import EventLog
from sskafka.pipelines.runner.finishing import finish
from sskafka.pipelines.runner.leftovers import Leftovers, parquet_paths
from sskafka.pipelines.runner.lineage import LineageReporter
from sskafka.pipelines.runner.progress import QueryProgress, QueryTotals, dead_letters
from sskafka.pipelines.runner.recovery import recover_topics, topic_sinks
from sskafka.pipelines.runner.reporting import RunReporter
from sskafka.pipelines.runner.spark_failures import reporting_spark_failures
from sskafka.pipelines.session import (
    LOCAL_CHECKPOINTS,
    SessionSettings,
    Tell,
    launch_java_early,
    start_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from sskafka.pipelines.runner.retries import Restarts

POLL_S = 0.2
PROGRESS_EVERY_S = 1.0
BATCH_END_WAIT_S = 600.0
BATCH_END_WAIT_AFTER_FAILURE_S = 20.0
BATCH_END_POLL_S = 0.03
REPORTS_CONF = {"spark.sql.streaming.numRecentProgressUpdates": "20"}
"""Enough for a second, because a batch takes at least a fifth of a second."""

STOP_TIMED_OUT = "java.util.concurrent.TimeoutException"

logger = logging.getLogger(__name__)

OnProgress = Callable[[list[QueryProgress]], None]


@dataclass(frozen=True, slots=True)
class RunSettings:
    bootstrap: str
    master: str = ""
    conf: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResult:
    run: str
    queries: list[QueryProgress]

    @property
    def rows_in(self) -> int:
        """Each query reads the topics itself; this is the count of the query that has read most."""
        return max((query.rows_in for query in self.queries), default=0)

    @property
    def dead_letters(self) -> int:
        return dead_letters(self.queries)

    @property
    def unmet(self) -> dict[str, int]:
        """Number of rows that did not meet an expectation, by name; each query counts them itself."""
        counts: dict[str, int] = {}
        for query in self.queries:
            for name, count in query.unmet.items():
                counts[name] = max(count, counts.get(name, 0))
        return {name: count for name, count in counts.items() if count}


def run_pipeline(
    pipeline: Pipeline,
    settings: RunSettings,
    *,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda _: None,
    stop: threading.Event | None = None,
) -> RunResult:
    """Run until the pipeline ends; raises PipelineRunError if it fails, with secrets masked."""
    with masking_secrets(pipeline):
        return _run(pipeline, settings, tell, on_progress, stop or threading.Event())


@contextmanager
def masking_secrets(pipeline: Pipeline) -> Iterator[None]:
    """Mask secrets in errors: Spark repeats options and settings in its messages.

    An error that contains a secret becomes a PipelineRunError."""
    try:
        yield
    except Exception as error:
        text, hint = str(error), str(getattr(error, "hint", ""))
        if (pipeline.masked(text), pipeline.masked(hint)) == (text, hint):
            raise
        raise PipelineRunError(pipeline.masked(text), pipeline.masked(hint)) from None  # the cause has the secret


def _run(
    pipeline: Pipeline, settings: RunSettings, tell: Tell, on_progress: OnProgress, stop: threading.Event
) -> RunResult:
    run_id = uuid.uuid4().hex[:12]
    conf = {**REPORTS_CONF, **checkpoint_conf(pipeline), **pipeline.spark, **settings.conf}
    name, is_immediate = f"sskafka {pipeline.name}", pipeline.trigger.is_immediate
    session = SessionSettings(name, settings.master, conf, local_checkpoints=False, has_short_batches=is_immediate)
    with ClusterSession(settings.bootstrap, pipeline.connection) as cluster:
        tell(f"connected to {settings.bootstrap}")
        launch_java_early(session)
        prepare_topics(cluster, pipeline, settings.bootstrap, tell)
        recover_topics(cluster, pipeline, settings.bootstrap, run_id)
    lineage = LineageReporter(pipeline, settings.bootstrap, run_id, tell)
    with lineage, RunReporter(pipeline, settings.bootstrap, run_id, stop, tell) as reporter:
        with reporting_spark_failures():
            with keeping_signal_handlers():
                spark = start_session(session, tell)
            run = _Run(pipeline, settings.bootstrap, spark, reporter, stop)
            result = run.go(run_id, tell, on_progress)
        notice = finish(pipeline)
    if notice:
        tell(notice)
    return result


@contextmanager
def keeping_signal_handlers() -> Iterator[None]:
    """Restore signal handlers that a Spark session replaces: it would cancel all jobs on Ctrl+C, even within a
    batch."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def checkpoint_conf(pipeline: Pipeline) -> dict[str, str]:
    """Return the setting for checkpoints on local disks if the pipeline has its checkpoint and files there."""
    files = [sink.path for sink in pipeline.sinks if isinstance(sink, ParquetSink)]
    if any("://" in place for place in (pipeline.checkpoint_root, *files)):
        return {}
    return dict(LOCAL_CHECKPOINTS)


def prepare_topics(cluster: ClusterSession, pipeline: Pipeline, bootstrap: str, tell: Tell) -> None:
    """Raise if a source topic does not exist, and create the topics that the pipeline writes.

    Topics that exist and have too few replicas are reported."""
    for source in pipeline.sources:
        Planner(planning_options(pipeline, source, bootstrap), cluster).partitions()
    create_topics(cluster, [NewTopic(sink.topic, sink.partitions or -1) for sink in topic_sinks(pipeline)])
    EventLog(cluster, bootstrap).create()
    notice = replica_notice(cluster, pipeline.written_topics, bootstrap)
    if notice:
        tell(notice)


def planning_options(pipeline: Pipeline, source: Source, bootstrap: str) -> Any:
    subscription, what = source.subscription
    subscribed = {BOOTSTRAP: bootstrap, "startingOffsets": source.starting, subscription: what}
    return source_options({**pipeline.client_options, **subscribed, **source.options}, streaming=True)


class _Run:
    """The queries of a run, from their start to their end."""

    def __init__(
        self, pipeline: Pipeline, bootstrap: str, spark: "SparkSession", reporter: RunReporter, stop: threading.Event
    ) -> None:
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._spark = spark
        self._reporter = reporter
        self._stop = stop
        self._totals: dict[str, QueryTotals] = {}
        self._last_reported: dict[str, str] = {}
        """The start of the newest report that was added, by query."""
        self._leftovers = [Leftovers(path) for path in parquet_paths(pipeline)]

    def go(self, run_id: str, tell: Tell, on_progress: OnProgress) -> RunResult:
        from sskafka.pipelines.runner.connectors import check_connector  # noqa: PLC0415  Spark is there now
        from sskafka.pipelines.runner.queries import RunContext, start_again, start_queries  # noqa: PLC0415  see above
        from sskafka.pipelines.runner.retries import Restarts  # noqa: PLC0415  see above

        if self._stop.is_set():  # a stop was requested while Spark started
            self._raise_if_taken_over()
            return RunResult(run_id, [])
        notice = check_connector(self._spark, self._pipeline)
        if notice:
            tell(notice)
        tell("starting the queries")
        with tempfile.TemporaryDirectory(prefix="sskafka-run-") as directory:
            pause = Path(directory) / "pause"
            context = RunContext(self._spark, self._pipeline, self._bootstrap, str(pause), run_id)
            try:
                queries = start_queries(context)
            except Exception as error:
                raise run_error(error) from error
            tell(f"running {len(queries)} queries: {', '.join(map(self._name, queries))}")
            try:
                self._watch(queries, Restarts(partial(start_again, context)), on_progress)
            finally:
                stop_queries(queries, pause)
        return self._finished(run_id, queries, on_progress)

    def _watch(self, queries: "list[StreamingQuery]", restarts: "Restarts", on_progress: OnProgress) -> None:
        told_at = 0.0
        while not self._stop.is_set():
            restarts.restart_failed(queries)
            if not any(query.isActive for query in queries) or any(query.exception() is not None for query in queries):
                return
            if time.monotonic() - told_at >= PROGRESS_EVERY_S:
                told_at = time.monotonic()
                self._tell_progress(queries, on_progress)
            self._stop.wait(POLL_S)

    def _tell_progress(self, queries: "list[StreamingQuery]", on_progress: OnProgress) -> list[QueryProgress]:
        for query in queries:
            totals = self._totals.setdefault(self._name(query), QueryTotals(self._name(query)))
            for report in self._new_reports(query):
                totals.add(json.loads(report.json))
        for leftovers in self._leftovers:
            leftovers.maybe_set_aside()
        progress = [totals.progress for totals in self._totals.values()]
        self._reporter.progress(progress)
        on_progress(progress)
        return progress

    def _new_reports(self, query: "StreamingQuery") -> "Sequence[StreamingQueryProgress]":
        """Return new reports. Usually there are none, and Java would write JSON for each report that is requested."""
        newest = query.lastProgress
        if newest is None or self._last_reported.get(self._name(query)) == newest.timestamp:
            return ()
        self._last_reported[self._name(query)] = newest.timestamp
        return query.recentProgress

    def _finished(self, run_id: str, queries: "list[StreamingQuery]", on_progress: OnProgress) -> RunResult:
        progress = self._tell_progress(queries, on_progress)
        self._raise_if_taken_over()  # queries fail because of this, each with another message
        for query in queries:
            failure = query.exception()
            if failure is not None:
                raise run_error(failure, f"{self._name(query)}: ") from failure
        return RunResult(run_id, progress)

    def _raise_if_taken_over(self) -> None:
        if self._reporter.taken_over_by:
            raise PipelineRunError(f"run {self._reporter.taken_over_by} of the same pipeline has taken over")

    def _name(self, query: "StreamingQuery") -> str:
        from sskafka.pipelines.runner.naming import query_of  # noqa: PLC0415  Spark is there now

        return query_of(self._pipeline, query.name or "")


def stop_queries(queries: "list[StreamingQuery]", pause: Path) -> None:
    """Stop each query between two micro-batches: sources that see the pause file start no new one.

    A batch that takes very long is interrupted all the same, and so is a query whose source does not see the file
    because it is Spark's own or runs on another machine. The next run repeats the batch."""
    pause.touch()
    has_failed = any(query.exception() is not None for query in queries)
    deadline = time.monotonic() + (BATCH_END_WAIT_AFTER_FAILURE_S if has_failed else BATCH_END_WAIT_S)
    begun = [newest_batch(query) for query in queries]
    for query, batch in zip(queries, begun, strict=True):
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            if newest_batch(query) > batch + 1:
                break
            time.sleep(BATCH_END_POLL_S)
        _stop(query)


def _stop(query: "StreamingQuery") -> None:
    """Stop one query. Spark waits a minute for its batch (spark.sql.streaming.stopTimeout).

    A batch that waits for brokers takes longer, and ends with Spark. That must not hide the reason why the run ends."""
    try:
        query.stop()
    except Exception as error:
        if STOP_TIMED_OUT not in str(error):
            raise
        logger.warning("the query %s did not stop in time; the next run repeats its batch", query.name)


def newest_batch(query: "StreamingQuery") -> int:
    """Return the number of the last completed batch; -1 before the first."""
    progress = query.lastProgress
    return -1 if progress is None else progress.batchId
