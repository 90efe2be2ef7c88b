"""Progress of a grid, on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sskafka.cli.output import talk
from sskafka.evaluation.grid import PHASES, GridPlan, GridProgress
from sskafka.evaluation.load import Window
from sskafka.evaluation.results import Cell, Row


@contextmanager
def progress_of(plan: GridPlan) -> Iterator[GridProgress]:
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
