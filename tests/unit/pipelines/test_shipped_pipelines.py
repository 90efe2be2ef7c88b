"""Shipped pipelines without Spark: their files, the answers worked out for them, and how those are compared."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.files.sink import ParquetSink, TopicSink
from sskafka.pipelines.files.transform import PythonTransform
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.finishing import finish
from sskafka.pipelines.shipped import load_shipped, shipped_names
from sskafka.pipelines.shipped.archive import Gap, gaps
from sskafka.pipelines.shipped.audit import Counts
from sskafka.pipelines.shipped.evaluation import made_up_run, ratio, report
from sskafka.pipelines.shipped.exercise import Task, differences
from sskafka.pipelines.shipped.selfcheck import apart, make_exercise, topics_of
from sskafka.pipelines.shipped.sessions import Click, sessions_of
from sskafka.pipelines.shipped.wiring import WiringError, wired

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_files_and_checkpoints_lie_where_the_pipeline_is_run(tmp_path: Path) -> None:
    assert shipped_names() == ["archive", "audit", "cdc", "evaluation", "latest", "sessions"]
    for name in shipped_names():
        pipeline = load_shipped(name, tmp_path)
        assert pipeline.name == name
        assert pipeline.checkpoint_root == str(tmp_path / "checkpoints" / name)
    with pytest.raises(LookupError, match="there are archive, audit"):
        load_shipped("nothing")


def test_a_pipeline_is_pointed_at_other_topics_and_places() -> None:
    pipeline = wired(
        load_shipped("sessions"), name="mine", topics={"clicks": "a,b"}, locations={"parquet": "x", "topic": "y"}
    )
    assert pipeline.name == "mine"
    assert pipeline.sources[0].topics == ("a", "b")
    parquet, topic = pipeline.sinks
    assert isinstance(parquet, ParquetSink)
    assert isinstance(topic, TopicSink)
    assert (parquet.path, topic.topic) == ("x", "y")
    with pytest.raises(WiringError, match="no table 'click'; it has clicks"):
        wired(pipeline, topics={"click": "a"})
    with pytest.raises(WiringError, match="no sink 'delta'; it has parquet, topic"):
        wired(pipeline, locations={"delta": "a"})


@pytest.mark.parametrize(
    "options",
    [{"topics": {"clicks": "sessions"}}, {"locations": {"topic": "clicks"}}, {"topics": {"clicks": "x-dead-letters"}}],
)
def test_options_that_make_a_pipeline_read_what_it_writes_are_refused(options: dict[str, dict[str, str]]) -> None:
    with pytest.raises(WiringError, match="clicks: the pipeline reads and writes"):
        wired(load_shipped("sessions"), name="x", **options)


def test_names_apart_share_no_topic() -> None:
    first, second = (apart(load_shipped("sessions"), token) for token in ("one", "two"))
    assert topics_of(first) == {"clicks": "sessions-clicks-one"}
    assert first.name != second.name
    assert {sink.topic for sink in (*first.sinks, *second.sinks) if isinstance(sink, TopicSink)} == {
        "sessions-topic-one",
        "sessions-topic-two",
    }


@pytest.mark.parametrize("name", shipped_names())
def test_the_same_task_makes_the_same_exercise(name: str) -> None:
    task = Task(200, 3, {"events": "e", "counts": "c", "records": "r"})
    first, again, other = (make_exercise(name, one) for one in (task, task, task._replace(seed=4)))
    assert (first.messages, list(first.expected)) == (again.messages, list(again.expected))
    assert first.messages != other.messages
    assert list(first.expected)


def test_differences_count_rows_and_say_which() -> None:
    assert differences([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]) == []
    assert differences([(1, "a"), (2, "b")], [(2, "b"), (2, "b")]) == ["missing: 1, a", "wrong: 2, b"]
    assert differences([(number,) for number in range(12)], [])[-1] == "missing: 2 more rows"


def test_sessions_end_with_a_pause() -> None:
    minutes = (0, 10, 39, 70, 101)
    clicks = [Click("u", f"/{minute}", NOON + timedelta(minutes=minute)) for minute in minutes]
    found = [(session.clicks, session.pages, session.first_page, session.last_page) for session in sessions_of(clicks)]
    assert found == [(3, 3, "/0", "/39"), (1, 1, "/70", "/70"), (1, 1, "/101", "/101")]


def test_gaps_of_an_archive() -> None:
    offsets = (0, 1, 2, 2, 5)
    rows = [{"topic": "t", "partition": 0, "offset": offset} for offset in offsets]
    assert gaps([*rows, {"topic": "t", "partition": 1, "offset": 9}]) == [Gap("t", 0, 2, 2, 2), Gap("t", 0, 3, 4, 0)]


def test_counts_are_given_out_once_and_only_for_minutes_that_are_over() -> None:
    counts = Counts("p")
    for seconds in (0, 59, 60):
        counts.note("t", NOON + timedelta(seconds=seconds))
    (first,) = counts.take(NOON + timedelta(seconds=60))
    assert first.value == b'{"producer": "p", "topic": "t", "minute": "2026-01-01T12:00:00+00:00", "published": 2}'
    assert len(list(counts.take(NOON + timedelta(hours=1)))) == 1
    assert list(counts.take(NOON + timedelta(hours=1))) == []


def test_runs_are_compared_cell_by_cell() -> None:
    first = made_up_run("first", 1)
    faster = [row._replace(run_id="faster", records_per_second=row.records_per_second * 2) for row in first[:4]]
    assert ratio(first, faster, "produce") == pytest.approx(2)
    assert ratio(first, [], "produce") is None
    text = "\n".join(report([*first, *faster]))
    assert text.count("<svg") == 3
    assert "Runs compared" in text
    assert "<td>2.00</td>" in text
    assert "No run is in the topic" in "\n".join(report([]))


def test_the_function_at_the_end_is_called(tmp_path: Path) -> None:
    (tmp_path / "notice.py").write_text("def tell(pipeline):\n    return f'{pipeline.name} is done'\n")
    pipeline = load_shipped("sessions", tmp_path)
    assert finish(pipeline) == ""
    assert finish(replace(pipeline, after=PythonTransform("notice.py", "tell"))) == "sessions is done"
    with pytest.raises(PipelineRunError, match="has no function nothing"):
        finish(replace(pipeline, after=PythonTransform("notice.py", "nothing")))
    with pytest.raises(PipelineRunError, match="cannot be imported"):
        finish(replace(pipeline, after=PythonTransform("no_such_module", "nothing")))
    (tmp_path / "wrong.py").write_text("def tell(pipeline):\n    return 1 / 0\n")
    with pytest.raises(
        PipelineRunError, match=r"wrong\.py:tell has failed: wrong\.py:2, in tell: ZeroDivisionError"
    ) as e:
        finish(replace(pipeline, after=PythonTransform("wrong.py", "tell")))
    assert "the records are written" in e.value.hint
    (tmp_path / "broken.py").write_text("\nRATES = missing\n")
    with pytest.raises(PipelineRunError, match=r"broken\.py cannot be imported: broken\.py:2, in <module>: NameError"):
        finish(replace(pipeline, after=PythonTransform("broken.py", "tell")))


def test_fields_that_shipped_pipelines_brought_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "name: wrong\nsources: {a: {topic: t, format: text}}\nsinks:\n"
        "  - delta: {path: d, delete_column: gone}\nstrict: maybe\nafter: missing.py:f\n"
    )
    with pytest.raises(PipelineFileError) as failure:
        load_pipeline(path)
    assert [problem.split(": ", 2)[1] for problem in str(failure.value).splitlines()] == [
        "sinks[0].delta.delete_column",
        "strict",
        "after",
    ]
