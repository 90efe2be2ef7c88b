"""`sskafka perf grid`: measure clusters of several sizes with several topic layouts."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, PropertiesOption, client_properties, run
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.evaluation.chart import draw_grid
from sskafka.evaluation.grid import PHASES, GridPlan, GridProgress, new_run, run_grid
from sskafka.evaluation.load import Window
from sskafka.evaluation.results import Cell, Row, Run, keep_results, write_results

T = TypeVar("T")

RESULTS_FILE = "results.json"
PICTURE_FILE = "grid.svg"


def grid(
    partitions: Annotated[str, typer.Option("--partitions", help="Numbers of partitions to measure.")] = "1,2,4,8",
    brokers: Annotated[str, typer.Option("--brokers", help="Sizes of clusters to measure.")] = "1,2,3",
    replication: Annotated[str, typer.Option("--replication", help="Replication factors to measure.")] = "1,3",
    producers: Annotated[int, typer.Option("--producers", min=1, help="Producer processes.")] = 2,
    consumers: Annotated[int, typer.Option("--consumers", min=1, help="Consumer processes.")] = 2,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long each measurement takes.")] = 4.0,
    record_size: Annotated[int, typer.Option("--record-size", "-s", min=0, help="Size of a value in bytes.")] = 100,
    compression: Annotated[str, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")] = "none",
    acks: Annotated[str, typer.Option("--acks", help="all, 1 or 0.")] = "all",
    by_record: Annotated[
        bool, typer.Option("--by-record", help="Use SSKafka's Producer and Consumer, which then limit the rate.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Data directory of the clusters; a temporary one if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--results", help="Directory for results; default ./sskafka-evaluation/RUN.")
    ] = None,
    results_topic: Annotated[
        str | None, typer.Option("--results-topic", help="Also write the results to this topic of the cluster at -b.")
    ] = None,
    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            envvar="SSKAFKA_BOOTSTRAP",
            help="The cluster of --results-topic; it is not measured.",
        ),
    ] = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Measure partitions x brokers x replication: start the clusters, load them, and plot the results."""
    plan = GridPlan(
        partitions=_numbers(partitions, "--partitions"),
        brokers=_numbers(brokers, "--brokers"),
        replications=_numbers(replication, "--replication"),
        producers=producers,
        consumers=consumers,
        seconds=seconds,
        record_size=record_size,
        properties={"compression.type": compression, "acks": acks, **client_properties(properties)},
        is_by_batch=not by_record,
    )
    if not list(plan.cells()):
        raise typer.BadParameter("no cluster has enough brokers for these replication factors", param_hint="--brokers")
    measured = new_run(plan)
    target = out or Path("sskafka-evaluation") / measured.run_id
    rows = _measure(plan, measured, directory)
    _write(target, measured, rows)
    if results_topic is not None:
        keep_results(bootstrap, results_topic, measured, rows)
        talk(f"kept {len(rows)} rows in topic {results_topic}")
    if output.is_data:
        print_data(output, [row.to_json() for row in rows])
    else:
        print_rows(rows)


def _measure(plan: GridPlan, measured: Run, directory: Path | None) -> list[Row]:
    with ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sskafka-grid-")))
        progress = stack.enter_context(progress_of(plan))
        try:
            return run(_until_signal(run_grid(plan, measured, directory / measured.run_id, progress)))
        except asyncio.CancelledError:
            raise CommandError("the measurement was stopped; its clusters are stopped too") from None


async def _until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine. SIGTERM ends it like Ctrl+C: everything that it has started is stopped first."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _write(target: Path, measured: Run, rows: Sequence[Row]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    write_results(target / RESULTS_FILE, measured, rows)
    title = f"{measured.record_size} B records, acks={measured.acks}, {measured.cpus} cores, {measured.started_at}"
    (target / PICTURE_FILE).write_text(draw_grid(rows, title), encoding="utf-8")
    talk(f"results: {target / RESULTS_FILE}   picture: {target / PICTURE_FILE}")


def print_rows(rows: Sequence[Row]) -> None:
    """Print a line for each cell: the throughput of producers and consumers."""
    by_cell: dict[Cell, dict[str, Row]] = {}
    for row in rows:
        by_cell.setdefault(row.cell, {})[row.phase] = row
    headers = ("BROKERS", "REPLICATION", "PARTITIONS", "PRODUCE/S", "MB/S", "P50-MS", "P99-MS", "CONSUME/S", "MB/S")
    print_table(headers, [_cells(cell, phases["produce"], phases["consume"]) for cell, phases in by_cell.items()])


def _cells(cell: Cell, produced: Row, consumed: Row) -> tuple[object, ...]:
    return (
        cell.brokers,
        cell.replication,
        cell.partitions,
        f"{produced.records_per_second:,.0f}",
        f"{produced.mb_per_second:.1f}",
        f"{produced.latency_p50_ms:.1f}",
        f"{produced.latency_p99_ms:.1f}",
        f"{consumed.records_per_second:,.0f}",
        f"{consumed.mb_per_second:.1f}",
    )


def _numbers(text: str, option: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise typer.BadParameter(f"{text!r} is not a comma-separated list of numbers above 0", param_hint=option)
    return sorted({int(word) for word in words})


@contextmanager
def progress_of(plan: GridPlan) -> Iterator[GridProgress]:
    """Show progress on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere."""
    total = len(list(plan.cells())) * len(PHASES)
    if sys.stderr.isatty():
        with _bar(total) as progress:
            yield progress
    else:
        yield _lines(total)


def _lines(total: int) -> GridProgress:
    done = 0

    def ended(row: Row) -> None:
        nonlocal done
        done += 1
        talk(f"[{done}/{total}] {describe(row.cell, row.phase)}: {row.records_per_second:,.0f} records/s")

    return GridProgress(lambda brokers: talk(_starting(brokers)), lambda cell, phase: None, lambda window: None, ended)


@contextmanager
def _bar(total: int) -> Iterator[GridProgress]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        doing, records = "", 0

        def starts(cell: Cell, phase: str) -> None:
            nonlocal doing, records
            doing, records = describe(cell, phase), 0
            bar.update(task, description=doing)

        def moved(window: Window) -> None:
            nonlocal records
            records += window.records
            bar.update(task, description=f"{doing}: {records:,} records")

        yield GridProgress(
            lambda brokers: bar.update(task, description=_starting(brokers)),
            starts,
            moved,
            lambda row: bar.advance(task),
        )


def describe(cell: Cell, phase: str) -> str:
    brokers, partitions = _counted(cell.brokers, "broker"), _counted(cell.partitions, "partition")
    return f"{brokers}, replication {cell.replication}, {partitions}, {phase}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _starting(brokers: int) -> str:
    return f"starting a cluster of {brokers}"
