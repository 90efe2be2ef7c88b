"""What a running pipeline shows."""

import pytest

from sskafka.cli.pipeline.progress import ProgressLines, ProgressTable, duration_text, progress_cells, progress_line
from sskafka.pipelines.runner.progress import QueryProgress

BUSY = QueryProgress("topic", 4, 100, 90, 50.0, 45.0, 500, "2026", 7, 10, {"positive": 2, "other": 0})


def test_progress_in_a_line() -> None:
    assert progress_line(BUSY) == (
        "topic: batch 4, 100 rows in (50/s), 90 out (45/s), lag 500 (10 s left), watermark 2026, 7 rows of state, "
        "2 unmet positive"
    )


def test_a_line_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines()
    lines.tell("starting")
    for queries in ([QueryProgress("topic")], [BUSY], [BUSY]):
        lines.show(queries)
    told = capsys.readouterr().err.splitlines()
    assert told[0].endswith(" s] starting")
    assert len(told) == 2


def test_a_row_a_query() -> None:
    assert progress_cells(BUSY) == ("topic", "4", "100", "50", "90", "45", "500", "10 s", "2026", "7", "positive 2")
    assert progress_cells(QueryProgress("idle"))[:2] == ("idle", "-")


def test_a_table_with_the_dead_letters_below(capsys: pytest.CaptureFixture[str]) -> None:
    table = ProgressTable()
    table.show([])
    table.show([BUSY, QueryProgress("dead-letters", 4, 100, 3)])
    table.tell("[told] above")
    table.close()
    told = capsys.readouterr().err
    assert "dead letters: 3" in told
    assert "[told] above" in told


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
