"""Progress of a running pipeline: a live table on a terminal, a line for each batch elsewhere."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sskafka.cli.output import talk

if TYPE_CHECKING:
    from sskafka.pipelines.runner.progress import QueryProgress

HEADERS = ("QUERY", "BATCH", "ROWS IN", "IN/S", "ROWS OUT", "OUT/S", "LAG", "LEFT", "WATERMARK", "STATE ROWS", "UNMET")


class Progress(Protocol):
    def tell(self, text: str) -> None: ...
    def show(self, queries: "Sequence[QueryProgress]") -> None: ...
    def close(self) -> None: ...


def progress_for_people() -> Progress:
    return ProgressTable() if sys.stderr.isatty() else ProgressLines()


class Stopwatch:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def told(self, text: str) -> str:
        return f"[{time.monotonic() - self._began:5.1f} s] {text}"


class ProgressLines:
    """Prints a line for each query after each of its batches.

    If the reader of the lines closes the pipe, as `head` does, the run ends: `show` raises, which is called between
    batches. `tell` never raises, because threads and signal handlers call it."""

    def __init__(self) -> None:
        self._stopwatch = Stopwatch()
        self._shown: dict[str, int] = {}
        self._is_closed = False

    def tell(self, text: str) -> None:
        self._print(self._stopwatch.told(text))

    def show(self, queries: "Sequence[QueryProgress]") -> None:
        for query in queries:
            if query.batch >= 0 and self._shown.get(query.query) != query.batch:
                self._shown[query.query] = query.batch
                self._print(progress_line(query))
        if self._is_closed:
            from sskafka.pipelines.runner.errors import AGAIN, PipelineRunError  # noqa: PLC0415  not for --help

            raise PipelineRunError(
                "the program that reads the messages of the run has closed its end of the pipe",
                f"{AGAIN}; 2> FILE keeps the messages",
            )

    def _print(self, text: str) -> None:
        try:
            talk(text)
        except BrokenPipeError:
            self._is_closed = True

    def close(self) -> None:
        pass


def progress_line(query: "QueryProgress") -> str:
    parts = [
        f"{query.query}: batch {query.batch}",
        f"{query.rows_in} rows in ({query.in_per_s:.0f}/s)",
        f"{query.rows_out} out ({query.out_per_s:.0f}/s)",
        f"lag {query.lag}",
    ]
    if query.left_s is not None:
        parts[-1] += f" ({duration_text(query.left_s)} left)"
    if query.watermark:
        parts.append(f"watermark {query.watermark}")
    if query.state_rows:
        parts.append(f"{query.state_rows} rows of state")
    parts += (f"{count} unmet {name}" for name, count in query.unmet.items() if count)
    return ", ".join(parts)


class ProgressTable:
    """A table that is redrawn in place, with messages above it."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  only for people
        from rich.live import Live  # noqa: PLC0415  see above

        self._stopwatch = Stopwatch()
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live: Any = Live(console=self._console, auto_refresh=False)
        self._is_drawn = False

    def tell(self, text: str) -> None:
        self._console.print(self._stopwatch.told(text))

    def show(self, queries: "Sequence[QueryProgress]") -> None:
        from rich.console import Group  # noqa: PLC0415  see above
        from rich.table import Table  # noqa: PLC0415  see above

        from sskafka.pipelines.runner.progress import dead_letters  # noqa: PLC0415  needs the extra

        if not queries:
            return
        if not self._is_drawn:
            self._is_drawn = True
            self._live.start()
        table = Table(box=None, pad_edge=False)
        for header in HEADERS:
            table.add_column(header, justify="left" if header in {"QUERY", "WATERMARK", "UNMET"} else "right")
        for query in queries:
            table.add_row(*progress_cells(query))
        self._live.update(Group(table, f"dead letters: {dead_letters(queries)}   Ctrl+C stops"), refresh=True)

    def close(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._live.stop()


def progress_cells(query: "QueryProgress") -> tuple[str, ...]:
    return (
        query.query,
        "-" if query.batch < 0 else str(query.batch),
        str(query.rows_in),
        f"{query.in_per_s:.0f}",
        str(query.rows_out),
        f"{query.out_per_s:.0f}",
        str(query.lag),
        "-" if query.left_s is None else duration_text(query.left_s),
        query.watermark or "-",
        str(query.state_rows),
        ", ".join(f"{name} {count}" for name, count in query.unmet.items() if count) or "-",
    )


def duration_text(seconds: float) -> str:
    """Return the duration as text: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
