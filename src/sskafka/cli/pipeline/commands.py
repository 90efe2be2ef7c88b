"""`sskafka pipeline`: run data pipelines on Spark, and manage them from any terminal.

Only the commands that start Spark import it.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, BootstrapOption, PropertiesOption, client_properties
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_heading, print_item, print_table, talk
from sskafka.cli.pipeline import cases as pipeline_cases
from sskafka.cli.pipeline import recover as pipeline_recover
from sskafka.cli.pipeline import runs as pipeline_runs
from sskafka.cli.pipeline import shipped as pipeline_shipped
from sskafka.cli.pipeline.connecting import connected, require_extra
from sskafka.cli.pipeline.progress import Progress, progress_for_people
from sskafka.cli.pipeline.shipped import TopicOption, rewired
from sskafka.cli.usage import UsageError, key_values

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession
    from sskafka.pipelines.files.pipeline import Pipeline
    from sskafka.pipelines.runner.backfill import BackfillResult
    from sskafka.pipelines.runner.backfill_range import BackfillRange
    from sskafka.pipelines.runner.dead_letters import DeadLetter
    from sskafka.pipelines.runner.plan import Backlog
    from sskafka.pipelines.runner.progress import QueryProgress
    from sskafka.pipelines.runner.run import RunResult, RunSettings

app = typer.Typer(
    help="Run data pipelines on Spark; show their status, stop them, read their dead letters.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

INTERRUPTED = 130

FileArgument = Annotated[str, typer.Argument(metavar="PIPELINE", help="A file, or the name of a bundled pipeline.")]
MasterOption = Annotated[
    str, typer.Option("--master", help="Spark's master: spark://host:7077, sc://host, yarn; default local[*].")
]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting. Repeatable.")]
OwnNameOption = Annotated[str, typer.Option("--name", help="Another name, with separate progress and dead letters.")]
ProfileOption = Annotated[
    str, typer.Option("--profile", help="A profile of the file, which overrides its fields and variables.")
]
VariableOption = Annotated[
    list[str] | None, typer.Option("--var", metavar="NAME=VALUE", help="A variable of the file. Repeatable.")
]
PlaceOption = Annotated[
    list[str] | None, typer.Option("--to", metavar="SINK=LOCATION", help="Another path or topic. Repeatable.")
]
RunPlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="SINK=LOCATION|END",
        help="Another path or topic. Repeatable. Without `=`: the end of a backfill.",
    ),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="START",
        help="Backfill: read this range once, then end. A time, ms since 1970, earliest, or topic:partition:offset,...",
    ),
]


MetricsOption = Annotated[
    str, typer.Option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics of the run at /metrics.")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Run a bundled pipeline on generated records with a known result.")
]


def load(
    name: str, profile: str = "", variables: list[str] | None = None, properties: list[str] | None = None
) -> "Pipeline":
    """Return the pipeline of a file, or a shipped one by its name, with the client properties of -X."""
    from sskafka.pipelines.files.document import PipelineFileError  # noqa: PLC0415  needs the extra
    from sskafka.pipelines.files.pipeline import load_pipeline  # noqa: PLC0415  see above
    from sskafka.pipelines.files.variables import FileOptions  # noqa: PLC0415  see above
    from sskafka.pipelines.shipped import load_shipped, shipped_file  # noqa: PLC0415  see above

    path = Path(name)
    if not path.is_file() and shipped_file(name) is None:
        raise CommandError(f"there is no file {name}", "`sskafka pipeline list` shows the pipelines")
    options = FileOptions(profile, key_values(variables, "--var"))
    try:
        pipeline = load_pipeline(path, options) if path.is_file() else load_shipped(name, options=options)
    except PipelineFileError as error:
        raise CommandError(str(error)) from None
    return pipeline.with_properties(client_properties(properties))


def list_(
    places: Annotated[list[Path] | None, typer.Argument(metavar="DIRECTORY", show_default=False)] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List pipelines: your files and the bundled ones.

    DIRECTORY is . and ./pipelines if not given."""
    from sskafka.pipelines.runner.plan import sink_text  # noqa: PLC0415  not for --help
    from sskafka.pipelines.shipped import shipped_files  # noqa: PLC0415  see above

    found = [file for place in places or (Path(), Path("pipelines")) for file in sorted(place.glob("*.yaml"))]
    files = found if places else [file for file in found if looks_like_pipeline(file)]
    rows = []
    for file in (*files, *shipped_files()):
        try:
            pipeline = load(str(file))
        except CommandError as error:
            talk(f"error: {error}")
            continue
        topics = [source.pattern or ",".join(source.topics) for source in pipeline.sources]
        sinks = pipeline.masked(", ".join(map(sink_text, pipeline.sinks)))
        rows.append((pipeline.name, pipeline.masked(", ".join(topics)), sinks, str(file)))
    if output.is_data:
        print_data(output, [dict(zip(("name", "sources", "sinks", "file"), row, strict=True)) for row in rows])
    else:
        print_table(("NAME", "SOURCES", "SINKS", "FILE"), rows)


def looks_like_pipeline(file: Path) -> bool:
    """Return whether the file is a pipeline. The directory may contain other YAML files."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return any(f"\n{field}:" in f"\n{text}" for field in ("sources", "sinks"))


def plan(
    name: FileArgument,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Let Spark resolve the schema.")] = True,
    master: MasterOption = "",
    own_name: OwnNameOption = "",
    topic: TopicOption = None,
    to: PlaceOption = None,
    profile: ProfileOption = "",
    var: VariableOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show graph, schema and backlog of a pipeline without reading data."""
    from sskafka.pipelines.runner.plan import backlog, graph  # noqa: PLC0415  not for --help

    pipeline = rewired(load(name, profile, var, properties), own_name, topic, to)
    with connected(bootstrap, pipeline.kafka) as session:
        waiting = backlog(session, pipeline, bootstrap)
    if output.is_data:
        print_data(
            output, plan_fields(pipeline, waiting, schema_by_spark(pipeline, master, bootstrap) if spark else None)
        )
        return
    print_heading(f"pipeline {pipeline.name}")
    print("\n".join(graph(pipeline)), end="\n\n")
    print_table(
        ("SOURCE", "SINK", "PARTITIONS", "WAITING", "FIRST RUN"),
        [(one.source, one.query, one.partitions, one.records, "yes" if one.is_first_run else "no") for one in waiting],
    )
    if spark:
        schema = schema_by_spark(pipeline, master, bootstrap)
        print()
        print_table(("COLUMN", "TYPE"), schema)


def schema_by_spark(pipeline: "Pipeline", master: str, bootstrap: str) -> list[tuple[str, str]]:
    from sskafka.pipelines.runner.plan import resolved_schema  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import masking_secrets  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.spark_failures import reporting_spark_failures  # noqa: PLC0415  see above
    from sskafka.pipelines.session import SessionSettings, start_session, stop_session  # noqa: PLC0415  see above

    try:
        with masking_secrets(pipeline), reporting_spark_failures("run the command again"):
            spark = start_session(SessionSettings(f"plan {pipeline.name}", master, pipeline.spark), talk)
            return resolved_schema(spark, pipeline, bootstrap)
    finally:
        stop_session()


def plan_fields(
    pipeline: "Pipeline", waiting: "Sequence[Backlog]", schema: list[tuple[str, str]] | None
) -> dict[str, Any]:
    from dataclasses import asdict  # noqa: PLC0415  not for --help

    from sskafka.pipelines.runner.plan import graph  # noqa: PLC0415  see above

    columns = None if schema is None else [{"name": name, "type": kind} for name, kind in schema]
    return {
        "name": pipeline.name,
        "graph": list(graph(pipeline)),
        "backlog": list(map(asdict, waiting)),
        "schema": columns,
    }


def run(
    name: FileArgument,
    master: MasterOption = "",
    conf: ConfOption = None,
    once: Annotated[bool, typer.Option("--once", help="Process the available records, then exit.")] = False,
    own_name: OwnNameOption = "",
    topic: TopicOption = None,
    to: RunPlaceOption = None,
    start: FromOption = "",
    again: Annotated[bool, typer.Option("--again", help="Run a finished backfill again.")] = False,
    profile: ProfileOption = "",
    var: VariableOption = None,
    metrics: MetricsOption = "",
    check: CheckOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Run a pipeline until it ends, Ctrl+C, or `pipeline stop`.

    With --from or --to it is a backfill: a range of records goes through the same transformations into the same sinks,
    next to the running pipeline. Each row is written once, however often the backfill is started."""
    if check:
        pipeline_shipped.check([name], master=master, bootstrap=bootstrap, properties=properties)
        return
    locations, end = locations_and_end(to)
    pipeline = rewired(load(name, profile, var, properties), own_name, topic, locations)
    if once:
        pipeline = with_available_now(pipeline)
    if again and not (start or end):
        raise UsageError("--again is for backfills: name their range with --from and --to")
    from sskafka.pipelines.runner.backfill_range import parse_range  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import RunSettings  # noqa: PLC0415  see above

    backfill = parse_range(start, end) if start or end else None
    settings = RunSettings(bootstrap, master, key_values(conf, "--conf"))
    result, summary, exit_code = run_to_end(name, pipeline, settings, backfill, metrics, again=again)
    talk(summary)
    if exit_code:
        raise typer.Exit(exit_code)
    if pipeline.strict and result.unmet:
        counts = ", ".join(f"{name} in {count} rows" for name, count in result.unmet.items())
        raise CommandError(f"expectations were not met: {counts}")


def with_available_now(pipeline: "Pipeline") -> "Pipeline":
    from dataclasses import replace  # noqa: PLC0415  not for --help

    from sskafka.pipelines.files.pipeline import Trigger  # noqa: PLC0415  see above

    return replace(pipeline, trigger=Trigger(""))


def run_to_end(
    name: str,
    pipeline: "Pipeline",
    settings: "RunSettings",
    backfill: "BackfillRange | None",
    metrics: str,
    *,
    again: bool,
) -> "tuple[RunResult, str, int]":
    """Run the pipeline or its backfill; return the result, a summary for the user, and the exit code."""
    from sskafka.pipelines.runner.backfill import run_backfill  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import run_pipeline  # noqa: PLC0415  see above

    progress = progress_for_people()
    stop = StopOnSignals(progress.tell)
    try:
        with serving_metrics(pipeline, metrics, progress) as show:
            if backfill is None:
                result = run_pipeline(pipeline, settings, tell=progress.tell, on_progress=show, stop=stop.event)
                return result, run_summary(name, pipeline, result), stop.exit_code
            filled = run_backfill(
                pipeline, backfill, settings, again=again, tell=progress.tell, on_progress=show, stop=stop.event
            )
            return filled.run, backfill_summary(name, filled), stop.exit_code or int(filled.is_stopped)
    finally:
        progress.close()


def script() -> None:
    """Print the path of the program that spark-submit runs.

    spark-submit $(sskafka pipeline script) PIPELINE takes the options of `sskafka pipeline run`."""
    from sskafka.cli.submit import sskafka_pipeline  # noqa: PLC0415  only its path is needed

    print(sskafka_pipeline.__file__)


@contextmanager
def serving_metrics(
    pipeline: "Pipeline", address: str, progress: "Progress"
) -> "Iterator[Callable[[list[QueryProgress]], None]]":
    """Show progress on the terminal, and to Prometheus if an address is given."""
    if not address:
        yield progress.show
        return
    from sskafka.pipelines.runner.metrics import MetricsServer  # noqa: PLC0415  not for --help

    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"--metrics {address!r} is not HOST:PORT")
    try:
        bound = MetricsServer(pipeline.name, host, int(port))
    except OSError as error:
        raise CommandError(f"--metrics {address}: {error.strerror or error}", "another port or address") from error
    with bound as server:
        progress.tell(f"metrics at http://{server.address}/metrics")

        def show(queries: "list[QueryProgress]") -> None:
            progress.show(queries)
            server.update(queries)

        yield show


def locations_and_end(to: list[str] | None) -> tuple[list[str], str]:
    """Split the values of `--to`: locations of sinks contain `=`, the end of a range does not."""
    locations = [text for text in to or () if "=" in text]
    ends = [text for text in to or () if "=" not in text]
    if len(ends) > 1:
        raise UsageError(f"--to names two ends of a range: {', '.join(ends)}")
    return locations, "".join(ends)


def backfill_summary(name: str, backfill: "BackfillResult") -> str:
    if backfill.finished_before:
        return (
            f"{backfill.name} was finished at {backfill.finished_before}: {counts_text(backfill.run)}. "
            "Nothing was read; --again runs it once more, and sinks that append get its rows a second time"
        )
    if backfill.is_stopped:
        return f"{backfill.name} was stopped; start it again with the same range to continue"
    run = f"run {backfill.run.run} of " if backfill.run.run else ""  # without a run, only `after` was called
    return f"{run}{backfill.name} has ended: {counts_text(backfill.run)}" + (
        f"; `sskafka pipeline dlq {name}` shows the dead letters" if backfill.run.dead_letters else ""
    )


def counts_text(result: "RunResult") -> str:
    written = ", ".join(f"{query.rows_out} to {query.query}" for query in result.queries)
    return f"{result.rows_in} rows read, written {written}"


def run_summary(name: str, pipeline: "Pipeline", result: "RunResult") -> str:
    text = f"run {result.run} of {pipeline.name} has ended: {result.rows_in} rows read"
    if not result.dead_letters:
        return text
    return f"{text}, {result.dead_letters} dead letters: `sskafka pipeline dlq {name}` shows them"


class StopOnSignals:
    """Sets an event at the first Ctrl+C or SIGTERM. The second one interrupts the process."""

    def __init__(self, tell: Any) -> None:
        self.event = threading.Event()
        self.number = 0
        self._tell = tell
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    @property
    def exit_code(self) -> int:
        return INTERRUPTED if self.number == signal.SIGINT else 0

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        self._tell("stopping after the current micro-batch; press Ctrl+C again to stop at once")
        self.event.set()


def reset(
    name: FileArgument,
    execute: Annotated[
        bool, typer.Option("--execute", help="Apply the changes; without it, they are only shown.")
    ] = False,
    own_name: OwnNameOption = "",
    to: PlaceOption = None,
    profile: ProfileOption = "",
    var: VariableOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Make the next run of a pipeline start from the beginning.

    The pipeline's progress is deleted; the data that it has written is kept."""
    from sskafka.pipelines.runner.resetting import steps_to_reset  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import masking_secrets  # noqa: PLC0415  see above

    pipeline = rewired(load(name, profile, var, properties), own_name, None, to)
    with masking_secrets(pipeline), connected(bootstrap, pipeline.kafka) as session:
        refuse_running(session, pipeline, bootstrap)
        steps = list(steps_to_reset(session, pipeline, bootstrap, time.strftime("%Y%m%dT%H%M%S")))
        if not steps:
            talk(f"{pipeline.name} has no progress: its next run starts from the beginning")
        for step in steps:
            print(pipeline.masked(step.text if execute else f"would {step.text}"))
            if execute:
                step.work()
    if steps and not execute:
        talk("  try: --execute to do it; topics and Delta tables keep their data, and the next run writes it again")


def recover(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A pipeline, or the checkpoint directory of a query.")],
    declare: pipeline_recover.DeclareOption = "",
    batch: pipeline_recover.BatchOption = None,
    moved: pipeline_recover.MovedOption = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Apply the changes; without it, they are only shown.")
    ] = False,
    query_name: pipeline_recover.QueryNameOption = "",
    control_topic: pipeline_recover.ControlTopicOption = "",
    own_name: OwnNameOption = "",
    to: PlaceOption = None,
    profile: ProfileOption = "",
    var: VariableOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show what queries that write topics have decided, and settle it.

    Decided transactions are committed, undecided ones are aborted. --declare states what is true of a batch that no run
    can complete. Without --execute nothing is changed."""
    if Path(name).is_dir():
        chosen = client_properties(properties)
        sinks = [pipeline_recover.sink_of_checkpoint(Path(name), query_name, bootstrap, chosen, control_topic)]
        pipeline_recover.recover(
            sinks, lambda _: None, declare=declare, batch=batch, moved=moved, execute=execute, bootstrap=bootstrap,
            properties=chosen, output=output,
        )  # fmt: skip
        return
    pipeline = rewired(load(name, profile, var, properties), own_name, None, to)
    pipeline_recover.recover(
        pipeline_recover.sinks_of_pipeline(pipeline, bootstrap),
        lambda session: refuse_running(session, pipeline, bootstrap),
        declare=declare,
        batch=batch,
        moved=moved,
        execute=execute,
        bootstrap=bootstrap,
        properties=pipeline.kafka,
        output=output,
    )


def refuse_running(session: "ClusterSession", pipeline: "Pipeline", bootstrap: str) -> None:
    from sskafka.model.pipeline_runs import OVER, newest_runs, runs_of  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.events import EventLog  # noqa: PLC0415  not for --help

    run = newest_runs(runs_of(EventLog(session, bootstrap).everything(), time.time() * 1000)).get(pipeline.name)
    if run is not None and run.state not in OVER:
        raise CommandError(f"{pipeline.name} is running", f"`sskafka pipeline stop {pipeline.name}` first")


def dlq(
    name: FileArgument,
    replay: Annotated[bool, typer.Option("--replay", help="Send them back to the topics they came from.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Include those that were already replayed.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number; 0: all.")] = 20,
    own_name: OwnNameOption = "",
    profile: ProfileOption = "",
    var: VariableOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show or replay the dead letters of a pipeline."""
    from itertools import islice  # noqa: PLC0415  not for --help

    from sskafka.pipelines.runner.dead_letters import DeadLetters  # noqa: PLC0415  see above

    pipeline = rewired(load(name, profile, var, properties), own_name, None)
    with connected(bootstrap, pipeline.kafka) as session:
        letters = DeadLetters(session, bootstrap, pipeline.dead_letter_topic)
        if replay:
            talk(f"{letters.replay(limit or None)} records were sent back")
        found = list(islice(letters.waiting(everything=everything and not replay), limit + 1 if limit else None))
    if replay:
        talk("more are waiting: -n 0 sends all" if found else "none is left")
        return
    print_letters(found[:limit] if limit else found, output)
    if limit and len(found) > limit:
        talk("there are more: -n 0 shows all")


def print_letters(letters: "Sequence[DeadLetter]", output: Format) -> None:
    from sskafka.pipelines.runner.dead_letters import letter_fields  # noqa: PLC0415  not for --help

    if output.is_data:
        for letter in letters:
            print_item(output, letter_fields(letter))
        return
    rows = [
        (f"{one.topic}-{one.partition}", one.offset, one.error, (one.value or b"")[:60].decode(errors="replace"))
        for one in letters
    ]
    print_table(("FROM", "OFFSET", "ERROR", "VALUE"), rows)


app.callback()(require_extra)
app.command("list")(list_)
app.command()(plan)
app.command()(run)
app.command()(script)
app.command("test")(pipeline_cases.run_tests)
app.command()(pipeline_shipped.check)
app.command()(pipeline_shipped.generate)
app.command()(pipeline_runs.status)
app.command()(pipeline_runs.stop)
app.command()(reset)
app.command()(recover)
app.command()(dlq)
