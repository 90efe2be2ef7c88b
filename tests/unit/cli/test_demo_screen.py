"""What the demo shows: a table on a terminal, lines elsewhere."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sskafka.cli.demo_screen import ROWS, Screen, program_name
from sskafka.pipelines.runner.progress import QueryProgress
from sskafka.pipelines.shipped.sessions import Session

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def session(number: int) -> Session:
    return Session(f"user-{number}", NOON, NOON + timedelta(minutes=number), number + 1, 1, "/", "/cart")


@pytest.fixture
def screen() -> Screen:
    made = Screen(lambda text: None)
    made.clicks = 40
    made.progress = [
        QueryProgress("topic", 1, lag=3, watermark="2026-01-01T12:00:00.000Z", in_per_s=50.2, state_rows=7),
        QueryProgress("dead-letters", rows_out=1),
    ]
    return made


def test_lines_where_nobody_looks(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.show([])
    screen.show([session(number) for number in range(ROWS + 1)])
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == "user-1  2026-01-01 12:00:00  1  2  1  /  /cart"
    assert len(shown.out.splitlines()) == ROWS
    assert shown.err == (
        "40 clicks, 13 sessions, Spark reads 50/s, lag 3, 7 rows of state, 1 dead letters, "
        "watermark 2026-01-01T12:00:00.000Z\n"
    )


def test_a_table_that_stays_in_its_place_on_a_terminal(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.is_terminal = True
    queries, screen.progress = screen.progress, ()
    screen.show([])
    assert capsys.readouterr().out == "", "while Spark starts its stages are told"
    screen.progress = queries
    screen.show([session(1), session(2)])
    screen.close()
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if "user-" in line).split()[0] == "user-2"
    assert any("40 clicks, 2 sessions" in line for line in lines)


def test_addresses_are_told(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.introduce("localhost:1,localhost:2", ["http://localhost:8001/"], Path("/demo"))
    told = capsys.readouterr().err
    assert told.splitlines()[0].split() == ["console:", "http://localhost:8001/"]
    for part in (
        "localhost:1,localhost:2",
        "/demo/sessions (Parquet)",
        "-b localhost:1\n",
    ):
        assert part in told


def test_the_address_of_spark_is_told_once() -> None:
    told: list[str] = []
    screen = Screen(told.append)
    for address in ("", "http://127.0.0.1:4040", "http://127.0.0.1:4040"):
        screen.spark_address = address
    assert told == ["Spark's page: http://127.0.0.1:4040"]


def test_before_the_first_batch_there_are_no_numbers(screen: Screen) -> None:
    screen.progress = [QueryProgress("topic"), QueryProgress("parquet")]
    assert screen.status() == "40 clicks; Spark is processing its first batch"


def test_commands_are_shown_as_they_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "sskafka"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == str(program)
    monkeypatch.setenv("PATH", str(program.parent))
    assert program_name() == "sskafka"
