"""The demo's display: addresses, statistics and the newest sessions. A live table on a terminal, else plain lines."""

import shutil
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sskafka.cli.output import talk

if TYPE_CHECKING:
    from sskafka.pipelines.runner.progress import QueryProgress
    from sskafka.pipelines.shipped.sessions import Session

ROWS = 12
HEADERS = ("USER", "STARTED", "MINUTES", "CLICKS", "PAGES", "FIRST", "LAST")


class Screen:
    """Updated from two threads: clicks and sessions from the event loop, progress from the Spark thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.clicks = 0
        self.sessions = 0
        self.progress: Sequence[QueryProgress] = ()
        self._tell = tell
        self._spark_address = ""
        self._newest: deque[Session] = deque(maxlen=ROWS)
        self._live: Any = None
        self.is_terminal = sys.stdout.isatty()

    def introduce(self, bootstrap: str, pages: Sequence[str], home: Path) -> None:
        program, broker = program_name(), bootstrap.partition(",")[0]
        talk(f"  console:       {' '.join(pages)}")
        talk(f"  Kafka clients: {bootstrap}")
        talk(f"  files:         {home}/sessions (Parquet), {home}/cluster (brokers)")
        talk(f"  look inside:   {program} topic consume sessions -b {broker}")
        talk(f"                 {program} pipeline status -b {broker}")
        talk(f"                 {program} group describe sessions.parquet -b {broker}")
        talk("producing clicks; the first sessions appear some seconds after Spark has started. Ctrl+C ends the demo")

    @property
    def spark_address(self) -> str:
        return self._spark_address

    @spark_address.setter
    def spark_address(self, address: str) -> None:
        if address and not self._spark_address:
            self._tell(f"Spark's page: {address}")
        self._spark_address = address

    def show(self, sessions: "Sequence[Session]") -> None:
        """Show new sessions. On a terminal the statistics are redrawn even if there are none."""
        sessions = sorted(sessions, key=lambda session: session.ended)
        self.sessions += len(sessions)
        self._newest.extend(sessions)
        if self.is_terminal:
            self._draw()
        elif sessions:
            self._print(sessions)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def status(self) -> str:
        from sskafka.pipelines.runner.progress import dead_letters  # noqa: PLC0415  needs the extra

        if all(query.batch < 0 for query in self.progress):
            return f"{self.clicks} clicks; Spark is processing its first batch"
        lag = max((query.lag for query in self.progress), default=0)
        rate = max((query.in_per_s for query in self.progress), default=0)
        state = max((query.state_rows for query in self.progress), default=0)
        watermark = max((query.watermark for query in self.progress), default="") or "-"
        return (
            f"{self.clicks} clicks, {self.sessions} sessions, Spark reads {rate:.0f}/s, lag {lag}, "
            f"{state} rows of state, {dead_letters(self.progress)} dead letters, watermark {watermark}"
        )

    def _print(self, sessions: "Sequence[Session]") -> None:
        talk(self.status())
        for session in sessions[-ROWS:]:
            print("  ".join(cells(session)), flush=True)

    def _draw(self) -> None:
        from rich.console import Console, Group  # noqa: PLC0415  only for people
        from rich.live import Live  # noqa: PLC0415  see above
        from rich.table import Table  # noqa: PLC0415  see above

        if not self.progress:  # while Spark starts, its stages are printed
            return
        table = Table(*HEADERS, box=None, pad_edge=False)
        for session in reversed(self._newest):
            table.add_row(*cells(session))
        shown = Group("", table, "", self.status(), f"Spark: {self._spark_address}   Ctrl+C ends the demo")
        if self._live is None:
            self._live = Live(console=Console(highlight=False), auto_refresh=False)
            self._live.start()
        self._live.update(shown, refresh=True)


def program_name() -> str:
    """Return the command to call this program, which may lie in a virtual environment that is not active."""
    here = Path(sys.argv[0])
    return here.name if shutil.which(here.name) or not here.is_file() else str(here)


def cells(session: "Session") -> tuple[str, ...]:
    minutes = (session.ended - session.started).total_seconds() / 60
    return (
        session.user,
        f"{session.started:%Y-%m-%d %H:%M:%S}",
        f"{minutes:.0f}",
        str(session.clicks),
        str(session.pages),
        session.first_page,
        session.last_page,
    )
