"""The report on runs of `sskafka perf grid`: one HTML file with the runs, the results of each cell, and charts.

Runs are compared with the first one, cell by cell.
"""

import json
import random
from collections.abc import Iterator, Sequence
from html import escape
from statistics import geometric_mean

from sskafka.evaluation.chart import COLOURS, Panel, Series, draw_grid, draw_panels
from sskafka.evaluation.results import FORMAT, Cell, Row, Run
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task
from sskafka.pipelines.shipped.reading import delta_path, delta_rows

REPORT_FILE = "report.html"
PHASES = ("produce", "consume")
_HEAD = """<!doctype html><meta charset="utf-8"><title>Evaluation</title>
<style>body { font: 15px/1.5 system-ui, sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: 2px 12px; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }</style>"""


def rows_of(pipeline: Pipeline) -> list[Row]:
    """Return all measurements, run by run."""
    rows = [Row(**fields) for fields in delta_rows(pipeline)]
    return sorted(rows, key=lambda row: (row.started_at, row.run_id, row.cell, row.phase))


def write_report(pipeline: Pipeline) -> str:
    """Write the report next to the directory of the rows, and return a sentence that names its path."""
    rows = rows_of(pipeline)
    target = delta_path(pipeline).parent / REPORT_FILE
    target.write_text("\n".join(report(rows)), encoding="utf-8")
    return f"{len(rows)} rows of {len(runs_of(rows))} run(s) are compared in {target}"


def runs_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    return runs


def report(rows: Sequence[Row]) -> Iterator[str]:
    runs = runs_of(rows)
    yield _HEAD
    yield "<h1>Evaluation</h1>"
    if not runs:
        yield "<p>No run is in the topic yet: <code>sskafka perf grid --results-topic evaluation</code> makes one.</p>"
        return
    yield from _table(("run", "started", "version", "machine", "record", "acks", "codec", *_RATIOS), _run_lines(runs))
    if len(runs) > 1:
        yield "<h2>Runs compared</h2>"
        yield draw_panels(list(_panels(runs)), "throughput over partitions, each run on its largest cluster")
    for phase in PHASES:
        yield f"<h2>{phase.title()}, records/s</h2>"
        yield from _table(("brokers x replication x partitions", *runs), _cell_lines(runs, phase))
    for run_id, of_run in runs.items():
        yield f"<h2>{escape(run_id)}</h2>"
        yield draw_grid(of_run, f"{of_run[0].record_size} B records, acks={of_run[0].acks}, {of_run[0].cpus} cores")


_RATIOS = ("produce, to the first", "consume, to the first")


def _run_lines(runs: dict[str, list[Row]]) -> Iterator[Sequence[str]]:
    first = next(iter(runs.values()))
    for run_id, rows in runs.items():
        row = rows[0]
        machine = f"{row.machine}, {row.cpus} cores"
        ratios = [_text_of(ratio(first, rows, phase)) for phase in PHASES]
        record = f"{row.record_size} B"
        yield run_id, row.started_at, row.version, machine, record, row.acks, row.compression, *ratios


def ratio(first: Sequence[Row], other: Sequence[Row], phase: str) -> float | None:
    """Return how much faster a run was than the first: the geometric mean over the cells that both have measured."""
    before, after = _speeds(first, phase), _speeds(other, phase)
    shared = [after[cell] / before[cell] for cell in after if before.get(cell, 0) > 0 and after[cell] > 0]
    return geometric_mean(shared) if shared else None


def _speeds(rows: Sequence[Row], phase: str) -> dict[Cell, float]:
    return {row.cell: row.records_per_second for row in rows if row.phase == phase}


def _text_of(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _cell_lines(runs: dict[str, list[Row]], phase: str) -> Iterator[Sequence[str]]:
    speeds = {run_id: _speeds(rows, phase) for run_id, rows in runs.items()}
    for cell in sorted({cell for of_run in speeds.values() for cell in of_run}):
        numbers = [f"{of_run[cell]:,.0f}" if cell in of_run else "-" for of_run in speeds.values()]
        yield f"{cell.brokers} x {cell.replication} x {cell.partitions}", *numbers


def _panels(runs: dict[str, list[Row]]) -> Iterator[Panel]:
    """Yield charts of throughput by partitions with one line per run, each on the largest cluster that it measured."""
    for phase in PHASES:
        series = []
        for number, (run_id, rows) in enumerate(runs.items()):
            largest = max((row.brokers, row.replication) for row in rows)
            points = sorted(
                (row.partitions, row.records_per_second)
                for row in rows
                if row.phase == phase and (row.brokers, row.replication) == largest
            )
            series.append(Series(run_id, COLOURS[number % len(COLOURS)], "", points))
        yield Panel(phase.title(), "records/s", series)


def _table(headers: Sequence[str], lines: Iterator[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(header)}</th>" for header in headers) + "</tr>"
    for line in lines:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>"
    yield "</table>"


# Known input

_LATENCIES = tuple(name for name in Row._fields if name.startswith("latency_"))


def exercise(task: Task) -> Exercise:
    """Two runs, one of which was sent twice."""
    first, second = made_up_run("first", task.seed), made_up_run("second", task.seed + 1)
    messages = [_message(row) for row in (*first, *second, *first)]
    return Exercise({"measured": messages}, [tuple(row) for row in (*first, *second)], _found)


def made_up_run(run_id: str, seed: int) -> list[Row]:
    chance = random.Random(seed)
    cells = [Cell(brokers, partitions, 1) for brokers in (1, 3) for partitions in (1, 2, 4)]
    return [_made_up(run_id, cell, phase, chance) for cell in cells for phase in PHASES]


def _made_up(run_id: str, cell: Cell, phase: str, chance: random.Random) -> Row:
    speed = round(chance.uniform(1e5, 1e6), 1)
    latencies = sorted(round(chance.uniform(1, 50), 3) for _ in range(6))
    run = Run(run_id, "2026-01-01T00:00:00Z", "0.1.0", "x86_64 Python 3.11", 2, 100, "all", "none")
    records = round(speed * 4)
    load = {"clients": 2, "seconds": 4.0, "records": records, "size_bytes": records * 100}
    speeds = {"records_per_second": speed, "mb_per_second": round(speed / 10486, 3)}
    fields = {**run._asdict(), **cell._asdict(), **load, **speeds, **dict(zip(_LATENCIES, latencies, strict=True))}
    return Row(format=FORMAT, phase=phase, **fields)


def _message(row: Row) -> Message:
    return Message(row.run_id, json.dumps(row.to_json()).encode())


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    return [tuple(row) for row in rows_of(pipeline)]
