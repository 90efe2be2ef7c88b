"""`sskafka pipeline recover`: the transaction state of queries that write topics, and manual recovery of batches."""

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.output import Format, print_data, print_heading, print_table, talk
from sskafka.cli.pipeline.connecting import connected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sskafka.pipelines.connector.planning import ClusterSession
    from sskafka.pipelines.files.pipeline import Pipeline
    from sskafka.pipelines.runner.recovery import ExactSink
    from sskafka.pipelines.runner.settling import Status

DECLARABLE = ("written", "missing")


def recover(
    sinks: "list[ExactSink]",
    refuse_running: "Callable[[ClusterSession], None]",
    *,
    declare: str,
    batch: int | None,
    moved: bool,
    execute: bool,
    bootstrap: str,
    properties: "Mapping[str, str]",
    output: Format,
) -> None:
    from sskafka.pipelines.runner.settling import Declared, Settling  # noqa: PLC0415  not for --help

    if declare and declare not in DECLARABLE:
        raise CommandError(f"--declare {declare}: use {' or '.join(DECLARABLE)}")
    if batch is not None and not declare:
        raise CommandError("--batch needs --declare: give both")
    run = f"recover-{uuid.uuid4().hex[:8]}"
    with connected(bootstrap, properties) as session:
        if execute:
            refuse_running(session)
        queries = [(sink, Settling(session, sink, run)) for sink in sinks]
        if output.is_data:
            print_data(output, [status_fields(sink, query.status()) for sink, query in queries])
        else:
            for sink, query in queries:
                print_status(sink, query.status())
        steps = [
            step
            for _, query in queries
            for step in query.steps(Declared(declare) if declare else None, batch, moved=moved)
        ]
        for step in steps:
            talk(step.text if execute else f"would {step.text}")
            if execute:
                step.work()
    if steps and not execute:
        talk("  try: --execute to do it")
    elif not steps:
        talk("there is nothing to settle")


def print_status(sink: "ExactSink", status: "Status") -> None:
    print_heading(f"{sink.name} -> topic {sink.topic} (checkpoint id {sink.query_id})")
    last = status.decision
    if last is None:
        print("the control topic has no record of this query\n")
        return
    print(f"last batch decided: {last.batch if last.batch >= 0 else 'none'}, {last.phase}; {last.rows} rows")
    print(f"owner: {last.owner}, epoch {last.epoch}; checkpoint: {last.checkpoint or 'not known'}")
    if last.phase == "partial":
        print("rows are missing: the next run supplies them if Spark writes the same rows again, and stops if not")
    if status.parts:
        rows = [(one.slot, one.transactional_id, count(one.rows), one.fate, one.state) for one in status.parts]
        print_table(("SLOT", "TRANSACTION", "ROWS", "FATE", "STATE NOW"), rows)
    for name in status.open_ids:
        print(f"open and not decided: {name}")
    print()


def count(rows: int) -> str:
    return str(rows) if rows >= 0 else "-"


def status_fields(sink: "ExactSink", status: "Status") -> dict[str, Any]:
    last = status.decision
    return {
        "query": sink.name,
        "topic": sink.topic,
        "query_id": sink.query_id,
        "batch": None if last is None else last.batch,
        "phase": None if last is None else str(last.phase),
        "epoch": None if last is None else last.epoch,
        "owner": None if last is None else str(last.owner),
        "checkpoint": None if last is None else last.checkpoint,
        "parts": [one._asdict() for one in status.parts],
        "open": status.open_ids,
    }


def sink_of_checkpoint(
    directory: Path, query_name: str, bootstrap: str, properties: "Mapping[str, str]", control_topic: str
) -> "ExactSink":
    """Return the sink of a streaming query that no pipeline file describes."""
    from sskafka.pipelines.connector.checkpoint import query_id_of  # noqa: PLC0415  not for --help
    from sskafka.pipelines.connector.client_properties import as_options  # noqa: PLC0415  see above
    from sskafka.pipelines.connector.options import BOOTSTRAP, sink_options  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.recovery import ExactSink  # noqa: PLC0415  see above

    query_id = query_id_of(str(directory))
    if query_id is None:
        raise CommandError(f"{directory} is not a checkpoint of Spark: it has no file metadata with an id")
    own = {BOOTSTRAP: bootstrap, "transactionalIdPrefix": query_name, "checkpointLocation": str(directory)}
    options = {**as_options(properties), **own}
    if control_topic:
        options["controlTopic"] = control_topic
    return ExactSink(query_name or query_id, "?", query_id, sink_options(options))


def sinks_of_pipeline(pipeline: "Pipeline", bootstrap: str) -> "list[ExactSink]":
    from sskafka.pipelines.runner.recovery import exact_sinks  # noqa: PLC0415  not for --help

    found = exact_sinks(pipeline, bootstrap)
    if not found:
        raise CommandError(f"{pipeline.name} has no checkpoint of a query that writes a topic exactly once")
    return found


DeclareOption = Annotated[
    str,
    typer.Option(
        "--declare", metavar="written|missing", help="Declare that a batch of unknown state was written, or is missing."
    ),
]
BatchOption = Annotated[
    int | None, typer.Option("--batch", min=0, help="The batch for --declare; default: the last one.")
]
MovedOption = Annotated[bool, typer.Option("--moved", help="The checkpoint was moved here, not copied.")]
QueryNameOption = Annotated[
    str, typer.Option("--query-name", help="NAME is a checkpoint: the queryName or transactionalIdPrefix of its query.")
]
ControlTopicOption = Annotated[
    str, typer.Option("--control-topic", help="NAME is a checkpoint: its query's option controlTopic.")
]
