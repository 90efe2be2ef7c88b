"""The range of a backfill as it is written, its name, and what its checkpoint remembers."""

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.checkpoint import offsets_digest, query_id_of
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import ParquetSink
from sskafka.pipelines.runner import backfill
from sskafka.pipelines.runner.backfill import BackfillResult, backfilled, counted, queries_of, run_backfill
from sskafka.pipelines.runner.backfill_range import Bound, RangeError, SourceRange, backfill_name, parse_range
from sskafka.pipelines.runner.backfill_state import BackfillState, QueryDone
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.run import RunResult, RunSettings

FILE = """\
name: orders
sources:
  orders: {topic: orders, schema: id long}
sinks:
  - parquet: {path: out/orders}
  - console: {}
"""
NOON_MS = 1_769_860_800_000


@pytest.fixture
def keeping_signal_handlers() -> Iterator[None]:
    """A run takes signals for itself."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    path = tmp_path / "orders.yaml"
    path.write_text(FILE)
    return load_pipeline(path)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", Bound("earliest")),
        ("2026-01-31T12:00:00Z", Bound(time_ms=NOON_MS)),
        ("2026-01-31T12:00", Bound(time_ms=NOON_MS)),
        ("2026-01-31T13:00:00+01:00", Bound(time_ms=NOON_MS)),
        ("2026-01-31", Bound(time_ms=NOON_MS - 12 * 3_600_000)),
        (str(NOON_MS), Bound(time_ms=NOON_MS)),
        ("a:1:7, a:0:5", Bound(offsets=((TopicPartition("a", 0), 5), (TopicPartition("a", 1), 7)))),
    ],
)
def test_how_an_end_of_a_range_is_written(text: str, bound: Bound) -> None:
    assert parse_range(text, "").start == bound
    assert parse_range(text, "").end == Bound("latest")


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [
        ("yesterday", "", "--from 'yesterday' is none of earliest, latest, a time such as"),
        ("", "orders:0", "--to 'orders:0' is none of"),
        ("orders:x:1", "", "is none of"),
        ("latest", "", "--from latest would read nothing"),
        ("", "earliest", "--to earliest would read nothing"),
        ("2026-02-01", "2026-01-01", "--from 2026-02-01T00:00:00Z is not before --to 2026-01-01T00:00:00Z"),
        ("a:0:1,a:0:2", "", "names a-0 twice"),
        ("a:0:1,a:1:2", "a:0:5", "a-1 is named in only one of --from and --to"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(start: str, end: str, part: str) -> None:
    with pytest.raises(RangeError) as failure:
        parse_range(start, end)
    assert part in str(failure.value)


def test_the_same_range_has_the_same_name_however_it_is_written(pipeline: Pipeline) -> None:
    name = backfill_name(pipeline, parse_range("2026-01-31T12:00Z", "latest"))
    assert name.startswith("orders@backfill-")
    assert backfill_name(pipeline, parse_range(str(NOON_MS), "")) == name
    assert backfill_name(pipeline, parse_range(str(NOON_MS + 1), "")) != name
    other = replace(pipeline, sources=(replace(pipeline.sources[0], topics=("other",)),))
    assert backfill_name(other, parse_range(str(NOON_MS), "")) != name


def test_a_backfill_shares_nothing_with_its_pipeline_but_the_sinks(pipeline: Pipeline) -> None:
    filled = backfilled(pipeline, parse_range("earliest", ""))
    digest = filled.name.removeprefix("orders@backfill-")
    assert filled.checkpoint_root == f"{pipeline.checkpoint_root}@backfill-{digest}"
    assert filled.dead_letter_topic == "orders-dead-letters"
    (parquet, _) = filled.sinks
    assert isinstance(parquet, ParquetSink)
    assert parquet.path == f"out/orders-backfill-{digest}"
    assert queries_of(filled) == ["parquet", "console", "dead-letters"]


def test_options_name_the_partitions_and_offsets() -> None:
    chosen = SourceRange({"a": {"0": 5, "2": 0}}, {"a": {"0": 9, "2": 0}})
    assert chosen.size == 4
    assert {name: json.loads(text) for name, text in chosen.options().items()} == {
        "assign": {"a": [0, 2]},
        "startingOffsets": {"a": {"0": 5, "2": 0}},
        "endingOffsets": {"a": {"0": 9, "2": 0}},
    }


def test_a_checkpoint_remembers_offsets_and_what_is_done(tmp_path: Path) -> None:
    root = str(tmp_path / "orders@backfill-1")
    state = BackfillState(root)
    assert not state.is_written([])
    ranges = {"orders": SourceRange({"a": {"0": 5}}, {"a": {"0": 9}})}
    state.begin(ranges)
    state.begin_query("parquet")
    query_id = query_id_of(f"{root}/parquet")
    assert query_id
    assert offsets_digest(f"{root}/parquet", 0)
    state.finish_query("parquet", QueryDone(4, 3, "2026-01-01T00:00:00Z", {"positive": 1}))
    again = BackfillState(root)
    again.begin_query("parquet")
    assert (again.ranges, query_id_of(f"{root}/parquet")) == (ranges, query_id)
    assert again.done["parquet"] == QueryDone(4, 3, "2026-01-01T00:00:00Z", {"positive": 1})
    assert again.is_written(["parquet"])
    assert not again.is_written(["parquet", "delta"])
    again.forget()
    assert not BackfillState(root).ranges


def test_counts_that_nobody_has_are_unknown() -> None:
    done = counted({"sskafka_in_a": 3, "sskafka_in_b": 4, "sskafka_out": 5, "expectation_x": 2, "expectation_y": 0})
    assert (done.rows_in, done.rows_out, done.unmet) == (7, 5, {"x": 2})
    assert counted({"sskafka_in_a": 3, "sskafka_in_b": None, "sskafka_out": None}).rows_in is None


def test_a_finished_backfill_says_so_and_asks_no_broker(pipeline: Pipeline, keeping_signal_handlers: None) -> None:
    state = BackfillState(backfilled(pipeline, parse_range("earliest", "a:0:9")).checkpoint_root)
    state.begin({"orders": SourceRange({"a": {"0": 5}}, {"a": {"0": 9}})})
    for query in ("parquet", "console", "dead-letters"):
        state.finish_query(query, QueryDone(4, 3, f"2026-01-0{len(query) % 9 + 1}T00:00:00Z"))
    command = [
        "pipeline",
        "run",
        str(pipeline.path),
        "-b",
        "127.0.0.1:9",
        "--to",
        "a:0:9",
        "--to",
        "parquet=out/orders",
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "was finished at 2026-01-08T00:00:00Z: 4 rows read, written 3 to parquet, 3 to console" in done.output
    assert "Nothing was read; --again runs it once more" in done.output


def test_a_function_that_failed_is_called_again_and_nothing_else_is_done(
    tmp_path: Path, keeping_signal_handlers: None
) -> None:
    path, function = tmp_path / "orders.yaml", tmp_path / "ending.py"
    path.write_text(f"{FILE}after: ending.py:end\n")
    function.write_text("def end(pipeline):\n    raise ValueError('no disk')\n")
    state = BackfillState(backfilled(load_pipeline(path), parse_range("earliest", "a:0:9")).checkpoint_root)
    state.begin({"orders": SourceRange({"a": {"0": 5}}, {"a": {"0": 9}})})
    for query in ("parquet", "console", "dead-letters"):
        state.finish_query(query, QueryDone(4, 3, "2026-01-01T00:00:00Z"))

    def run() -> tuple[int, str]:
        done = CliRunner().invoke(app, ["pipeline", "run", str(path), "-b", "127.0.0.1:9", "--to", "a:0:9"])
        return done.exit_code, done.output + str(done.exception or "")

    for _ in range(2):
        exit_code, text = run()
        assert exit_code == 1
        assert "after: ending.py:end has failed: ending.py:2, in end: ValueError: no disk" in text
    function.write_text("def end(pipeline):\n    return f'{pipeline.name} is complete'\n")
    exit_code, text = run()
    assert exit_code == 0, text
    assert "orders is complete" in text
    assert f"{load_pipeline(path).name}@backfill-" in text
    assert " has ended: 4 rows read, written 3 to parquet" in text
    exit_code, text = run()
    assert exit_code == 0
    assert "was finished at 20" in text
    assert "orders is complete" not in text


@pytest.mark.parametrize(("number", "expected"), [(0, 1), (signal.SIGTERM, 1), (signal.SIGINT, 130)])
def test_a_backfill_that_was_stopped_has_not_succeeded(
    pipeline: Pipeline,
    keeping_signal_handlers: None,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    expected: int,
) -> None:
    """The number 0 is `sskafka pipeline stop` from another terminal."""

    def stopped(*_: object, **__: object) -> BackfillResult:
        if number:
            signal.raise_signal(number)
        return BackfillResult("orders@backfill-1", RunResult("one", []), is_stopped=True)

    monkeypatch.setattr(backfill, "run_backfill", stopped)
    done = CliRunner().invoke(app, ["pipeline", "run", str(pipeline.path), "-b", "127.0.0.1:9", "--to", "a:0:9"])
    assert done.exit_code == expected, done.output
    assert "orders@backfill-1 was stopped; start it again with the same range to continue" in done.output


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--again"], "--again is for backfills: name their range with --from and --to"),
        (["--to", "latest", "--to", "a:0:1"], "--to names two ends of a range: latest, a:0:1"),
        (["--from", "yesterday"], "--from 'yesterday' is none of earliest"),
    ],
)
def test_options_that_make_no_range_are_refused(
    pipeline: Pipeline, keeping_signal_handlers: None, options: list[str], part: str
) -> None:
    done = CliRunner().invoke(app, ["pipeline", "run", str(pipeline.path), "-b", "127.0.0.1:9", *options])
    assert done.exit_code != 0
    assert part in (done.output or str(done.exception)) or part in str(done.exception)


def test_complete_mode_cannot_be_backfilled(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(FILE.replace("  - parquet: {path: out/orders}\n", "") + "output_mode: complete\n")
    with pytest.raises(PipelineRunError, match=r"orders.yaml:6: output_mode: complete would replace the whole table"):
        run_backfill(load_pipeline(path), parse_range("earliest", ""), RunSettings("127.0.0.1:9"))
