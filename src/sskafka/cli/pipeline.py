"""`sskafka pipeline`: run data pipelines on Spark, and look after them from any terminal.

Spark and what needs it are imported by the commands that start it.
"""

import shutil
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli import pipeline_shipped
from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, BootstrapOption
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_heading, print_json, print_table, talk
from sskafka.cli.pairs import key_values
from sskafka.cli.pipeline_shipped import TopicOption

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession
    from sskafka.pipelines.files.model import Pipeline
    from sskafka.pipelines.runner.events import Event
    from sskafka.pipelines.runner.progress import QueryProgress

app = typer.Typer(
    help="Run data pipelines on Spark; see how they do, stop them, look at their dead letters.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

SILENT_AFTER_S = 15
STOP_TIMEOUT_S = 90

FileArgument = Annotated[str, typer.Argument(metavar="PIPELINE", help="A file, or the name of a shipped pipeline.")]
MasterOption = Annotated[
    str, typer.Option("--master", help="Spark's master, such as spark://host:7077; local[*] unless given.")
]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting. Repeatable.")]


def load(name: str) -> "Pipeline":
    """The pipeline of a file, or a shipped one by its name."""
    try:
        from sskafka.pipelines.files.document import PipelineFileError  # noqa: PLC0415  needs the extra
        from sskafka.pipelines.files.parse import load_pipeline  # noqa: PLC0415  see above
        from sskafka.pipelines.shipped import load_shipped, shipped_file  # noqa: PLC0415  see above
    except ModuleNotFoundError as error:
        raise CommandError(f"pipelines need {error.name}", "pip install 'sskafka[spark]'") from None
    path = Path(name)
    if not path.is_file() and shipped_file(name) is None:
        raise CommandError(f"there is no file {name}", "`sskafka pipeline list` shows what there is")
    try:
        return load_pipeline(path) if path.is_file() else load_shipped(name)
    except PipelineFileError as error:
        raise CommandError(str(error)) from None


def connected(bootstrap: str) -> "ClusterSession":
    from sskafka.client.config import ConnectionConfig  # noqa: PLC0415  not for --help
    from sskafka.pipelines.connector.planning import ClusterSession  # noqa: PLC0415  see above

    return ClusterSession(bootstrap, ConnectionConfig(client_id="sskafka-pipeline"))


def list_(
    places: Annotated[list[Path] | None, typer.Argument(metavar="DIRECTORY", show_default=False)] = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List pipelines: those in DIRECTORY (. and ./pipelines unless given) and those that come with SSKafka."""
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
        rows.append((pipeline.name, ", ".join(topics), ", ".join(map(sink_text, pipeline.sinks)), str(file)))
    if output is Format.JSON:
        print_json([dict(zip(("name", "sources", "sinks", "file"), row, strict=True)) for row in rows])
    else:
        print_table(("NAME", "SOURCES", "SINKS", "FILE"), rows)


def looks_like_pipeline(file: Path) -> bool:
    """YAML is for many things, and some of them lie in the directory that one happens to be in."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return any(f"\n{field}:" in f"\n{text}" for field in ("sources", "sinks"))


def plan(
    name: FileArgument,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Let Spark resolve the schema.")] = True,
    master: MasterOption = "",
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Show what a pipeline would do: its graph, the schema of its result and what waits for it. Reads no data."""
    from sskafka.pipelines.runner.plan import backlog, graph, resolved_schema  # noqa: PLC0415  not for --help
    from sskafka.pipelines.session import SessionSettings, start_session  # noqa: PLC0415  see above

    pipeline = load(name)
    print_heading(f"pipeline {pipeline.name}")
    for line in graph(pipeline):
        print(line)
    with connected(bootstrap) as session:
        waiting = backlog(session, pipeline, bootstrap)
    print()
    print_table(
        ("SOURCE", "SINK", "PARTITIONS", "WAITING", "FIRST RUN"),
        [(one.source, one.query, one.partitions, one.records, "yes" if one.is_first_run else "no") for one in waiting],
    )
    if spark:
        settings = SessionSettings(f"plan {pipeline.name}", master, pipeline.spark)
        session_of_spark = start_session(settings, talk)
        print(f"\nresult: {resolved_schema(session_of_spark, pipeline, bootstrap)}")
        session_of_spark.stop()


def run(
    name: FileArgument,
    master: MasterOption = "",
    conf: ConfOption = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there now, then end.")] = False,
    own_name: Annotated[
        str, typer.Option("--name", help="Another name: its progress and dead letters are apart.")
    ] = "",
    topic: TopicOption = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="SINK=PLACE", help="Another path or topic. Repeatable.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run a shipped pipeline on made-up records whose answer is known.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Run a pipeline until it ends, Ctrl+C, or `sskafka pipeline stop`."""
    from dataclasses import replace  # noqa: PLC0415  not for --help

    from sskafka.pipelines.files.model import Trigger  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.run import RunSettings, run_pipeline  # noqa: PLC0415  see above
    from sskafka.pipelines.shipped.wiring import wired  # noqa: PLC0415  see above

    if check:
        pipeline_shipped.check([name], master=master, bootstrap=bootstrap)
        return
    topics, places = key_values(topic, "--topic"), key_values(to, "--to")
    pipeline = wired(load(name), name=own_name, topics=topics, places=places)
    if once:
        pipeline = replace(pipeline, trigger=Trigger(""))
    began = time.monotonic()
    settings = RunSettings(bootstrap, master, key_values(conf, "--conf"))
    result = run_pipeline(
        pipeline,
        settings,
        tell=lambda text: talk(f"[{time.monotonic() - began:5.1f} s] {text}"),
        on_progress=ProgressLines().show,
        stop=stop_on_signals(),
    )
    talk(f"run {result.run} of {pipeline.name} has ended: {result.rows_in} rows read")
    if pipeline.strict and result.unmet:
        counts = ", ".join(f"{name} in {count} rows" for name, count in result.unmet.items())
        raise CommandError(f"expectations were not met: {counts}")


def stop_on_signals() -> threading.Event:
    """Set by the first Ctrl+C or SIGTERM; the second one interrupts."""
    stop = threading.Event()

    def on_signal(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        talk("stopping after the micro-batch under way; once more to stop at once")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return stop


class ProgressLines:
    """A line for each query, printed when something has changed."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def show(self, queries: "Sequence[QueryProgress]") -> None:
        for query in queries:
            if query.batch >= 0 and self._shown.get(query.query) != query.batch:
                self._shown[query.query] = query.batch
                talk(progress_line(query))


def progress_line(query: "QueryProgress") -> str:
    parts = [
        f"{query.query}: batch {query.batch}",
        f"{query.rows_in} rows in ({query.in_per_s:.0f}/s)",
        f"{query.rows_out} out ({query.out_per_s:.0f}/s)",
        f"lag {query.lag}",
    ]
    if query.watermark:
        parts.append(f"watermark {query.watermark}")
    if query.state_rows:
        parts.append(f"{query.state_rows} rows of state")
    parts += (f"{count} unmet {name}" for name, count in query.unmet.items() if count)
    return ", ".join(parts)


def status(
    name: Annotated[str | None, typer.Argument(metavar="NAME", show_default=False)] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show how pipelines are doing, by the events that they publish."""
    from sskafka.pipelines.runner.events import EventLog  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import running  # noqa: PLC0415  see above

    with connected(bootstrap) as session:
        runs = running(EventLog(session, bootstrap), name)
    if name is not None and name not in runs:
        raise CommandError(f"the pipeline {name!r} has published no event", "`sskafka pipeline run FILE` runs one")
    rows = [row for events in runs.values() for row in status_rows(events, time.time() * 1000)]
    headers = ("NAME", "STATE", "RUN", "QUERY", "BATCH", "IN/S", "OUT/S", "LAG", "WATERMARK", "STATE ROWS", "ERROR")
    if output is Format.JSON:
        keys = [header.lower().replace("/", "_per_").replace(" ", "_") for header in headers]
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        print_table(headers, rows)


def status_rows(events: "list[Event]", now_ms: float) -> list[tuple[object, ...]]:
    """A row for each query of one run."""
    last = events[-1]
    reports = [event for event in events if event.type == "progress"]
    error = next((event.details.get("error", "") for event in events if event.type == "failed"), None)
    state = run_state(last, now_ms)
    queries: list[dict[str, Any]] = reports[-1].details["queries"] if reports else [{}]
    return [
        (
            last.pipeline,
            state,
            last.run,
            query.get("query"),
            query.get("batch"),
            round(query.get("in_per_s", 0)),
            round(query.get("out_per_s", 0)),
            query.get("lag"),
            query.get("watermark") or None,
            query.get("state_rows"),
            error,
        )
        for query in queries or [{}]
    ]


def run_state(last: "Event", now_ms: float) -> str:
    """A run that says nothing for long has died without a word."""
    match last.type:
        case "stopped" | "failed":
            return str(last.type)
        case "stop-requested":
            return "stopping"
        case _:
            return "running" if now_ms - last.time_ms < SILENT_AFTER_S * 1000 else "lost"


def stop(name: Annotated[str, typer.Argument(metavar="NAME")], bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP) -> None:
    """Ask a pipeline to stop, wherever it runs, and wait until it has."""
    from sskafka.pipelines.runner.events import Event, EventLog, EventType  # noqa: PLC0415  not for --help
    from sskafka.pipelines.runner.run import has_ended, running  # noqa: PLC0415  see above

    with connected(bootstrap) as session:
        log = EventLog(session, bootstrap)
        events = running(log, name).get(name)
        if events is None or has_ended(events):
            raise CommandError(f"the pipeline {name!r} does not run", "`sskafka pipeline status` shows what does")
        log.append(Event(name, events[-1].run, EventType.STOP_REQUESTED, int(time.time() * 1000)))
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not has_ended(running(log, name)[name]):
            if time.monotonic() > deadline:
                raise CommandError(f"{name!r} did not stop within {STOP_TIMEOUT_S} s", "its process may be gone")
            time.sleep(0.5)
    talk(f"pipeline {name} has stopped")


def reset(
    name: FileArgument,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without, only tell.")] = False,
) -> None:
    """Forget how far a pipeline has come: its checkpoint is deleted, the next run begins anew."""
    pipeline = load(name)
    checkpoint = Path(pipeline.checkpoint_root)
    if not checkpoint.exists():
        talk(f"there is no checkpoint at {checkpoint}: the next run begins anew anyway")
        return
    if not execute:
        talk(f"would delete {checkpoint}; the sinks keep what they have, so records may appear there again")
        talk("  try: --execute to do it")
        return
    shutil.rmtree(checkpoint)
    talk(f"deleted {checkpoint}")


def dlq(
    name: FileArgument,
    replay: Annotated[bool, typer.Option("--replay", help="Send them back to the topics they came from.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Those that were replayed before, too.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 20,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the dead letters of a pipeline, or replay them."""
    from itertools import islice  # noqa: PLC0415  not for --help

    from sskafka.pipelines.runner.dead_letters import DeadLetters, as_json  # noqa: PLC0415  see above

    pipeline = load(name)
    with connected(bootstrap) as session:
        letters = DeadLetters(session, bootstrap, pipeline.dead_letter_topic)
        if replay:
            talk(f"{letters.replay(limit if limit > 0 else None)} records were sent back")
            return
        found = list(islice(letters.waiting(everything=everything), limit))
    if output is Format.JSON:
        for letter in found:
            print(as_json(letter))
    else:
        rows = [
            (f"{one.topic}-{one.partition}", one.offset, one.error, (one.value or b"")[:60].decode(errors="replace"))
            for one in found
        ]
        print_table(("FROM", "OFFSET", "ERROR", "VALUE"), rows)


app.command("list")(list_)
app.command()(plan)
app.command()(run)
app.command()(pipeline_shipped.check)
app.command()(pipeline_shipped.generate)
app.command()(status)
app.command()(stop)
app.command()(reset)
app.command()(dlq)
