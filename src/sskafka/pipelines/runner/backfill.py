"""A backfill: a range of records, read as one batch, through the transformations of a pipeline into its sinks.

    check ─> offsets of the range ─> Spark ─> one sink after the other, each as one batch ─> done
                 └───────── backfill.json ────────┘

A backfill has its own name, checkpoint and run, so the pipeline itself may run at the same time. Sinks recognize the
batch by the id of the checkpoint: a backfill that was killed continues with the sinks that are not done, and a sink
that already has the batch skips it. Parquet files are written to a separate directory, because Spark's log of a
directory belongs to the one query that writes it.
"""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import DEAD_LETTERS, OutputMode, Pipeline
from sskafka.pipelines.files.sink import ParquetSink, Sink
from sskafka.pipelines.runner.backfill_range import BackfillRange, backfill_name, resolved_ranges
from sskafka.pipelines.runner.backfill_state import BackfillState, QueryDone, now_text
from sskafka.pipelines.runner.errors import PipelineRunError, run_error
from sskafka.pipelines.runner.finishing import finish
from sskafka.pipelines.runner.lineage import LineageReporter
from sskafka.pipelines.runner.progress import EXPECTATION, IN, OUT, QueryProgress
from sskafka.pipelines.runner.recovery import recover_topics
from sskafka.pipelines.runner.reporting import RunReporter
from sskafka.pipelines.runner.run import (
    POLL_S,
    OnProgress,
    RunResult,
    RunSettings,
    checkpoint_conf,
    keeping_signal_handlers,
    masking_secrets,
    prepare_topics,
)
from sskafka.pipelines.runner.spark_failures import reporting_spark_failures
from sskafka.pipelines.session import SessionSettings, Tell, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sskafka.pipelines.runner.queries import RunContext

Counts = dict[str, int | None]
"""Row counts by the name of the observation; None if the rows were not counted."""


@dataclass(frozen=True, slots=True)
class BackfillResult:
    name: str
    run: RunResult
    finished_before: str = ""
    """When an earlier run finished the backfill; then this run has done nothing."""
    is_stopped: bool = False
    """The run was stopped before all sinks had the range."""


def run_backfill(
    pipeline: Pipeline,
    chosen: BackfillRange,
    settings: RunSettings,
    *,
    again: bool = False,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda _: None,
    stop: threading.Event | None = None,
) -> BackfillResult:
    """Read the range into all sinks that do not have it yet; with `again`, into all sinks."""
    if pipeline.output_mode is OutputMode.COMPLETE:
        raise PipelineRunError(
            f"{pipeline.position('output_mode')}: complete would replace the whole table by the rows of the range; "
            "use append or update for a pipeline that is backfilled"
        )
    backfill = backfilled(pipeline, chosen)
    state = BackfillState(backfill.checkpoint_root)
    if again:
        _forget(backfill, state, settings.bootstrap)
    with masking_secrets(pipeline):
        if state.is_written(queries_of(backfill)):
            return _written_before(pipeline, backfill, state, tell)
        return _Backfill(pipeline, backfill, state, settings, tell).run(chosen, on_progress, stop or threading.Event())


def _forget(backfill: Pipeline, state: BackfillState, bootstrap: str) -> None:
    """Delete the state. It names the transactions that a killed run has left open, so these are ended first."""
    with masking_secrets(backfill), ClusterSession(bootstrap, backfill.connection) as cluster:
        recover_topics(cluster, backfill, bootstrap, uuid.uuid4().hex[:12])
    state.forget()


def _written_before(pipeline: Pipeline, backfill: Pipeline, state: BackfillState, tell: Tell) -> BackfillResult:
    """Finish a backfill whose sinks are done, unless an earlier run has done so."""
    finished = state.finished or ("" if pipeline.after else max(one.at for one in state.done.values()))
    if not finished:
        _finish(pipeline, state, tell)
    return BackfillResult(backfill.name, RunResult("", progress_of(state)), finished)


def _finish(pipeline: Pipeline, state: BackfillState, tell: Tell) -> None:
    notice = finish(pipeline)
    state.finish()
    if notice:
        tell(notice)


def backfilled(pipeline: Pipeline, chosen: BackfillRange) -> Pipeline:
    """Return the pipeline under the name of the backfill, with its own checkpoint and Parquet directories."""
    name = backfill_name(pipeline, chosen)
    suffix = name.removeprefix(pipeline.name)
    return replace(
        pipeline,
        name=name,
        checkpoint=f"{pipeline.checkpoint_root}{suffix}",
        dead_letters=pipeline.dead_letter_topic,
        sinks=tuple(_separate_location(sink, suffix.replace("@", "-")) for sink in pipeline.sinks),
    )


def _separate_location(sink: Sink, suffix: str) -> Sink:
    return replace(sink, path=f"{sink.path.rstrip('/')}{suffix}") if isinstance(sink, ParquetSink) else sink


def queries_of(pipeline: Pipeline) -> list[str]:
    return [sink.name for sink in pipeline.sinks] + ([DEAD_LETTERS] if pipeline.has_dead_letters else [])


def progress_of(state: BackfillState) -> list[QueryProgress]:
    return [
        QueryProgress(name, 0, one.rows_in or 0, one.rows_out or 0, unmet=one.unmet) for name, one in state.done.items()
    ]


class _Backfill:
    def __init__(
        self, pipeline: Pipeline, backfill: Pipeline, state: BackfillState, settings: RunSettings, tell: Tell
    ) -> None:
        self._pipeline = pipeline
        self._backfill = backfill
        self._state = state
        self._settings = settings
        self._tell = tell

    def run(self, chosen: BackfillRange, on_progress: OnProgress, stop: threading.Event) -> BackfillResult:
        run_id, bootstrap, backfill = uuid.uuid4().hex[:12], self._settings.bootstrap, self._backfill
        self._prepare(chosen, run_id)
        conf = {**checkpoint_conf(backfill), **backfill.spark, **self._settings.conf}
        session = SessionSettings(f"sskafka {backfill.name}", self._settings.master, conf)
        lineage = LineageReporter(backfill, bootstrap, run_id, self._tell)
        with lineage, RunReporter(backfill, bootstrap, run_id, stop, self._tell) as reporter:
            with reporting_spark_failures():
                with keeping_signal_handlers():
                    spark = start_session(session, self._tell)
                self._write_all(spark, run_id, reporter, on_progress, stop)
            if reporter.taken_over_by:
                raise PipelineRunError(f"run {reporter.taken_over_by} of the same backfill has taken over")
            lineage.is_aborted = not self._state.is_written(queries_of(backfill))
            if not lineage.is_aborted:
                _finish(self._pipeline, self._state, self._tell)
        result = RunResult(run_id, progress_of(self._state))
        return BackfillResult(backfill.name, result, is_stopped=lineage.is_aborted)

    def _prepare(self, chosen: BackfillRange, run_id: str) -> None:
        bootstrap, backfill = self._settings.bootstrap, self._backfill
        with ClusterSession(bootstrap, backfill.connection) as cluster:
            self._tell(f"connected to {bootstrap}")
            prepare_topics(cluster, backfill, bootstrap, self._tell)
            if not self._state.ranges:
                self._state.begin(resolved_ranges(cluster, backfill, chosen, bootstrap))
            for query in queries_of(backfill):
                self._state.begin_query(query)
            recover_topics(cluster, backfill, bootstrap, run_id)
        count = sum(one.size for one in self._state.ranges.values())
        self._tell(f"{backfill.name} reads {count} offsets {chosen}")

    def _write_all(
        self,
        spark: "SparkSession",
        run_id: str,
        reporter: RunReporter,
        on_progress: OnProgress,
        stop: threading.Event,
    ) -> None:
        from sskafka.pipelines.runner.backfill_writing import write_query  # noqa: PLC0415  Spark is there now
        from sskafka.pipelines.runner.connectors import check_connector  # noqa: PLC0415  see above
        from sskafka.pipelines.runner.queries import RunContext  # noqa: PLC0415  see above

        notice = check_connector(spark, self._backfill)
        if notice:
            self._tell(notice)
        context = RunContext(spark, self._backfill, self._settings.bootstrap, "", run_id, dict(self._state.ranges))
        for index, query in enumerate(queries_of(self._backfill)):
            if query in self._state.done:
                self._tell(f"{query} already has the range")
                continue
            counts = self._written(context, partial(write_query, context, index), query, stop)
            if counts is None:
                return
            self._state.finish_query(query, counted(counts))
            progress = progress_of(self._state)
            reporter.progress(progress)
            on_progress(progress)

    def _written(
        self,
        run: "RunContext",
        write: Callable[[], Counts],
        query: str,
        stop: threading.Event,
    ) -> Counts | None:
        """Write a sink and return its counts; None if the run was asked to stop before the sink had the range."""
        if stop.is_set():
            return None
        self._tell(f"{query}: writing")
        try:
            with interrupted_by(stop, run.spark):
                return write()
        except Exception as error:
            if stop.is_set():
                return None
            raise run_error(error, f"{query}: ") from error


@contextmanager
def interrupted_by(stop: threading.Event, spark: "SparkSession") -> Iterator[None]:
    """Cancel Spark's jobs of this thread when `stop` is set within the block.

    The block runs in the caller's thread: in a new thread, Spark has no active session and does not find data sources
    that are written in Python."""
    tag, is_over = f"backfill-{uuid.uuid4().hex}", threading.Event()

    def watch() -> None:
        while not is_over.wait(POLL_S):
            if stop.is_set():
                spark.interruptTag(tag)  # repeatedly: a sink has several jobs

    watcher = threading.Thread(target=watch, name="backfill-stop", daemon=True)
    spark.addTag(tag)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        spark.removeTag(tag)


def counted(counts: Counts) -> QueryDone:
    read = [count for name, count in counts.items() if name.startswith(IN)]
    known = [count for count in read if count is not None]
    unmet = {name.removeprefix(EXPECTATION): count for name, count in counts.items() if name.startswith(EXPECTATION)}
    return QueryDone(
        sum(known) if len(known) == len(read) else None,
        counts.get(OUT),
        now_text(),
        {name: count for name, count in unmet.items() if count},
    )
