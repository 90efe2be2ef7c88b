"""`sskafka pipeline status` and `stop`: watch and stop runs from any terminal, by their published events."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, BootstrapOption, PropertiesOption, client_properties
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.pipeline.connecting import connected
from sskafka.cli.pipeline.progress import duration_text

if TYPE_CHECKING:
    from sskafka.model.pipeline_runs import RunView
    from sskafka.pipelines.runner.events import EventLog

STOP_TIMEOUT_S = 90
STOP_POLL_S = 0.3

NameArgument = Annotated[
    str | None, typer.Argument(metavar="NAME", show_default=False, help="A pipeline; default: all.")
]


def status(
    name: NameArgument = None,
    history: Annotated[bool, typer.Option("--history", help="All runs, the newest first, and how they ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of past runs.")] = 20,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show how pipelines are doing, or their past runs.

    Shows rows/s in and out, lag, watermark, rows of state and dead letters, from the events that runs publish."""
    from sskafka.model.pipeline_runs import newest_runs  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.events import EventLog  # noqa: PLC0415  not for --help

    with connected(bootstrap, client_properties(properties)) as session:
        runs = runs_so_far(EventLog(session, bootstrap), name)
    if history:
        rows = [history_row(run) for run in reversed(runs[-limit:])]
    else:
        rows = [row for run in newest_runs(runs).values() for row in status_rows(run)]
    if output.is_data:
        print_data(output, rows)
    elif rows:
        print_table([heading(field) for field in rows[0]], [list(row.values()) for row in map(for_people, rows)])
    else:
        talk("no pipeline has run on this cluster yet")


def runs_so_far(log: "EventLog", name: str | None) -> "list[RunView]":
    from sskafka.model.pipeline_runs import runs_of  # noqa: PLC0415  not for --help

    runs = runs_of(log.everything(), time.time() * 1000)
    found = [run for run in runs if name in {None, run.pipeline}]
    if name is not None and not found:
        raise CommandError(
            f"no pipeline {name!r} has run on this cluster", "`sskafka pipeline status` shows the pipelines that run"
        )
    return found


def status_rows(run: "RunView") -> list[dict[str, Any]]:
    """Return a row for each query of one run."""
    return [
        {
            "name": run.pipeline,
            "state": str(run.state),
            "run": run.run,
            "query": query.get("query"),
            "batch": None if query.get("batch", -1) < 0 else query["batch"],
            "rows_in": query.get("rows_in"),
            "in_per_s": round(query.get("in_per_s", 0)),
            "rows_out": query.get("rows_out"),
            "out_per_s": round(query.get("out_per_s", 0)),
            "lag": query.get("lag"),
            "watermark": query.get("watermark") or None,
            "state_rows": query.get("state_rows"),
            "dead_letters": run.dead_letters,
            "reads": query.get("reads") or None,
            "error": run.error or None,
        }
        for query in run.queries or ({},)
    ]


def history_row(run: "RunView") -> dict[str, Any]:
    return {
        "name": run.pipeline,
        "run": run.run,
        "state": str(run.state),
        "started": datetime.fromtimestamp(run.started_ms / 1000, UTC).isoformat(timespec="seconds"),
        "seconds": round((run.last_event_ms - run.started_ms) / 1000),
        "rows_in": run.rows_in,
        "rows_out": run.rows_out,
        "dead_letters": run.dead_letters,
        "error": run.error or None,
    }


def heading(field: str) -> str:
    return field.replace("_per_s", "/s").replace("_", " ").upper()


def for_people(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "seconds": duration_text(row["seconds"])} if "seconds" in row else row


def stop(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Ask a pipeline to stop, wherever it runs, and wait for it.

    It stops after the current micro-batch."""
    from sskafka.model.pipeline_events import Event, EventType  # noqa: PLC0415  not for --help
    from sskafka.model.pipeline_runs import OVER, RunState  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.events import EventLog  # noqa: PLC0415  not for --help

    with connected(bootstrap, client_properties(properties)) as session:
        log = EventLog(session, bootstrap)
        run = runs_so_far(log, name)[-1]
        if run.state is RunState.LOST:
            silent = duration_text(time.time() - run.last_event_ms / 1000)
            raise CommandError(
                f"the pipeline {name!r} has been silent for {silent}", "its process is gone; run it again"
            )
        if run.state in OVER:
            raise CommandError(
                f"the pipeline {name!r} is not running", "`sskafka pipeline status` shows running pipelines"
            )
        begin = log.end()
        log.append(Event(name, run.run, EventType.STOP_REQUESTED, int(time.time() * 1000)))
        talk(f"run {run.run} of {name} is asked to stop")
        wait_for_end(log, run.run, begin)
    talk(f"pipeline {name} has stopped")


def wait_for_end(log: "EventLog", run: str, begin: int) -> None:
    from sskafka.model.pipeline_events import ENDED  # noqa: PLC0415  not for --help

    deadline = time.monotonic() + STOP_TIMEOUT_S
    while not any(event.run == run and event.type in ENDED for event in log.since(begin)):
        if time.monotonic() > deadline:
            raise CommandError(
                f"run {run} did not stop within {STOP_TIMEOUT_S} s",
                "its batch may take a long time: `sskafka pipeline status` shows it",
            )
        time.sleep(STOP_POLL_S)
