"""Pipeline files: what is read, and that every mistake is named with its line and the way out."""

import json
import re
from pathlib import Path

import pytest

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.expectation import Action
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import DeltaSink, ParquetSink, TopicSink
from sskafka.pipelines.files.source import RecordFormat, Tombstones
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform
from sskafka.pipelines.runner.naming import query_name, query_of

MINIMAL = """\
name: orders
sources:
  orders:
    topic: orders
    schema: id long not null, at timestamp
sinks:
  - console: {}
"""

FULL = """\
name: joined
sources:
  orders:
    topics: [orders, orders-eu]
    format: json
    schema:
      id: bigint not null
      user: string
      at: timestamp
    starting: latest
    event_time: at
    watermark: 10 minutes
    dedupe: [id]
    max_offsets_per_trigger: 5000
    expectations:
      - name: has_user
        check: user is not null
        action: dlq
  users:
    pattern: users-.*
    format: raw
    options: {minPartitions: 4}
transform:
  sql: |
    select * from orders join users on orders.user = users._key;
expectations:
  - {name: any, check: "1 = 1"}
sinks:
  - parquet: {path: out, partition_by: day}
  - delta: {path: table, merge_keys: [id]}
  - topic: {topic: result, key: id, guarantee: at-least-once}
trigger: available-now
output_mode: append
checkpoint: state
dead_letters: joined-dead
connector: sskafka
spark: {spark.sql.shuffle.partitions: 4}
"""


def load(tmp_path: Path, text: str) -> Pipeline:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    return load_pipeline(path)


def problems(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(PipelineFileError) as failure:
        load(tmp_path, text)
    assert "pipeline.yaml:" in str(failure.value)
    return [(problem.line, f"{problem.where}: {problem.text}") for problem in failure.value.problems]


def test_the_smallest_pipeline(tmp_path: Path) -> None:
    pipeline = load(tmp_path, MINIMAL)
    assert pipeline.transform == SqlTransform("select * from orders")
    assert pipeline.dead_letter_topic == "orders-dead-letters"
    assert pipeline.checkpoint_root == str(tmp_path / "checkpoints/orders")
    assert pipeline.sources[0].schema is not None
    assert pipeline.sources[0].schema.required == ("id",)
    assert not pipeline.trigger.is_available_now


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    pipeline = load(tmp_path, FULL)
    orders, users = pipeline.sources
    assert orders.topics == ("orders", "orders-eu")
    assert (orders.event_time, orders.watermark, orders.dedupe) == ("at", "10 minutes", ("id",))
    assert orders.max_offsets_per_trigger == 5000
    assert orders.expectations[0].action is Action.DLQ
    assert (users.pattern, users.format, users.options) == ("users-.*", RecordFormat.RAW, {"minPartitions": "4"})
    assert users.subscription == ("subscribePattern", "^(?:users-.*)$")  # whole names, unlike the connector's option
    assert pipeline.sinks == (
        ParquetSink("parquet", "out", ("day",)),
        DeltaSink("delta", "table", (), ("id",)),
        TopicSink("topic", "result", "id", "", "at-least-once"),
    )
    assert isinstance(pipeline.transform, SqlTransform)
    assert not pipeline.transform.sql.endswith(";")
    assert pipeline.trigger.is_available_now
    assert (pipeline.dead_letter_topic, pipeline.spark) == ("joined-dead", {"spark.sql.shuffle.partitions": "4"})


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ("name: orders", "nam: orders", 1, "there is no such field; did you mean name?"),
        ("name: orders", "name: Orders!", 1, "small letter"),
        ("    topic: orders", "    topic: or ders", 4, "characters other than"),
        ("    topic: orders", "    tpic: orders", 4, "did you mean topic"),
        ("id long not null", "id lnog", 5, "did you mean long?"),
        ("id long not null", "id long id", 5, "separated by commas"),
        ("schema: id long not null, at timestamp", "format: jsn", 5, "did you mean json?"),
        ("    schema: id long not null, at timestamp\n", "", 4, "schema is missing"),
        ("at timestamp", "at timestamp\n    watermark: 10 minutes", 6, "needs event_time"),
        ("at timestamp", "at timestamp\n    event_time: at", 6, "needs watermark"),
        ("at timestamp", "at timestamp\n    event_time: wen\n    watermark: 1 hour", 6, "there is no column 'wen'"),
        ("at timestamp", "at timestamp\n    watermark: soon", 6, "is not a time such as"),
        ("at timestamp", "at string\n    event_time: at\n    watermark: 1 hour", 6, "its schema must say timestamp"),
        ("at timestamp", "at timestamp\n    tombstones: skip", 6, "choose one of drop, dlq, keep"),
        ("at timestamp", "at timestamp\n    options: {minPartition: 4}", 6, "did you mean minPartitions?"),
        ("at timestamp", "at timestamp\n    options:\n      minPartitions: few", 7, "not a whole number"),
        ("at timestamp", "at timestamp\n    starting: '{\"orders\": 4}'", 6, "is not of the form"),
        ("  - console: {}", "  - console: {name: dead-letters}", 7, "give the sink another `name`"),
        (
            "  - console: {}",
            "  - console: {}\nexpectations: [{name: a, check: b}, {name: a, check: c}]",
            8,
            "is the name of expectations[0] already",
        ),
        ("at timestamp", "at timestamp\n    dedupe: [id]", 6, "kept for ever"),
        ("at timestamp", "at timestamp\n    expectations: {a: b}", 6, "must be a list"),
        ("  - console: {}", "  - consle: {}", 7, "a sink is one of"),
        ("  - console: {}", "  - topic: {topic: orders}", 4, "reads and writes orders"),
        ("  - console: {}", "  - console: {}\ndead_letters: orders", 4, "reads and writes orders"),
        ("topic: orders", "topic: sskafka-pipeline-events", 4, "reads and writes sskafka-pipeline-events"),
        ("  - console: {}", "  - console: {}\n  - console: {}", 7, "two sinks are called 'console'"),
        ("  - console: {}", "  - parquet: {}", 7, "path: is missing"),
        ("  - console: {}", "  - parquet: {path: x}\noutput_mode: update", 8, "Parquet files cannot be changed"),
        ("  - console: {}", "  - topic: {topic: x}\noutput_mode: complete", 8, "a topic cannot be emptied"),
        ("  - console: {}", "  - console: {}\ncheckpoint: hdfs:///lake", 8, "use hdfs://HOST:PORT/DIRECTORY"),
        ("  - console: {}", "  - console: {}\ntrigger: sometimes", 8, "neither available-now nor a time"),
        ("  - console: {}", "  - console: {}\ntransform: {sql: select 1}", 8, "reads none of the sources"),
        ("  - console: {}", "  - console: {}\ntransform: {python: nowhere.py:f}", 8, "there is no file"),
        ("  - console: {}", "  - console: {}\ntransform: {python: module}", 8, "module:function"),
        (
            "  - console: {}",
            "  - console: {}\nexpectations: [{name: a, check: b, action: dlq}]",
            8,
            "only there does a row belong",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, part: str) -> None:
    assert old in MINIMAL
    found = problems(tmp_path, MINIMAL.replace(old, new, 1))
    assert any(at == line and part in text for at, text in found), found


@pytest.mark.parametrize("pattern", ["orders.*", "orders-c.*|orders-dead-letters|users", "orders|[a-z0-9.-]+"])
def test_a_pattern_that_matches_what_the_pipeline_writes_is_refused_with_one_that_does_not(
    tmp_path: Path, pattern: str
) -> None:
    """Such a pipeline ran for ever: every batch wrote the records of the next one."""
    text = MINIMAL.replace("topic: orders", f"pattern: {pattern}").replace("console: {}", "topic: {topic: orders-c.v1}")
    ((line, problem),) = problems(tmp_path, text)
    assert (line, "reads and writes orders-c.v1, orders-dead-letters" in problem) == (4, True)
    (source,) = load(tmp_path, text.replace(pattern, re.findall("`pattern: (.*)`", problem)[0])).sources
    assert [source.reads(topic) for topic in ("orders-c.v1", "orders-dead-letters")] == [False, False]
    assert source.reads("orders-c.v10") is ("*" in pattern or "+" in pattern)


def with_check(check: str, action: str) -> str:
    rule = f"expectations:\n      - name: a\n        check: {json.dumps(check)}\n        action: {action}"
    return MINIMAL.replace("at timestamp", f"at timestamp\n    {rule}")


@pytest.mark.parametrize(
    ("check", "found"),
    [
        ("at <= current_timestamp()", "current_timestamp"),
        ("at <= Current_Timestamp", "Current_Timestamp"),
        ("id > 0 and at < now( )", "now("),
        ("unix_timestamp() > id", "unix_timestamp("),
        ("at > current_date - interval 1 day", "current_date"),
        ("rand(7) < 0.1", "rand("),
        ("note = '-- it''s \\' \"' or builtin.uuid() > 'a'", "uuid("),
        ("at <= timestamp'now'", "timestamp'now'"),
        ("at < cast(' Today' as timestamp)", "' Today' as timestamp"),
        ("at between '2020-01-01' and 'now'", "and 'now'"),
        ("at <= 'tomorrow'", "<= 'tomorrow'"),
        ('at < "now"', '< "now"'),
    ],
)
def test_a_rule_for_dead_letters_depends_on_the_record_alone(tmp_path: Path, check: str, found: str) -> None:
    """Two queries evaluated it at different times, and some records were in neither output."""
    ((line, text),) = problems(tmp_path, with_check(check, "dlq"))
    assert (line, f"check: {found} may differ" in text) == (8, True), text
    assert load(tmp_path, with_check(check, "drop"))


@pytest.mark.parametrize(
    "check",
    [
        "at <= _timestamp + interval 5 minutes",
        "user = 'now' and note <> 'now' and note != 'rand()'",
        "`current_date` is null and t.now > 0 -- not now()",
        "brand(id) > 0 and unix_timestamp(at) > 0 and user is not null and current_balance > 0",
        "note like 'it''s \\\\' and rand is null",
    ],
)
def test_a_rule_that_only_looks_like_one_of_time_or_chance_is_accepted(tmp_path: Path, check: str) -> None:
    assert load(tmp_path, with_check(check, "dlq"))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, MINIMAL.replace("topic: orders", "topic: a b").replace("console", "nothing"))
    assert [line for line, _ in found] == [4, 7]


@pytest.mark.parametrize(("text", "part"), [("a: [", "not YAML"), ("- a", "is a mapping"), ("", "is a mapping")])
def test_what_is_no_mapping(tmp_path: Path, text: str, part: str) -> None:
    assert part in problems(tmp_path, text)[0][1]


def test_a_function_in_a_file_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("def clean(spark, sources):\n    return sources['orders']\n")
    pipeline = load(tmp_path, MINIMAL + "transform: {python: steps.py:clean}\n")
    assert pipeline.transform == PythonTransform("steps.py", "clean")
    found = problems(tmp_path, MINIMAL + "transform: {python: steps.py:claen}\n")
    assert "it has clean" in found[0][1]
    (tmp_path / "steps.py").write_text("def clean(:\n")
    assert "steps.py:1" in problems(tmp_path, MINIMAL + "transform: {python: steps.py:clean}\n")[0][1]


def test_several_sources_need_a_transformation(tmp_path: Path) -> None:
    text = MINIMAL.replace("sinks:", "  users: {topic: users, format: raw}\nsinks:")
    assert "how they are joined" in problems(tmp_path, text)[0][1]


@pytest.mark.parametrize(
    ("record_format", "tombstones", "has_dead_letters"),
    [
        ("format: json\n    schema: id long", Tombstones.DLQ, True),
        ("format: text", Tombstones.KEEP, False),
        ("format: raw", Tombstones.KEEP, False),
        ("format: raw\n    tombstones: dlq", Tombstones.DLQ, True),
        ("format: json\n    schema: id long\n    tombstones: drop", Tombstones.DROP, True),
    ],
)
def test_records_without_a_value(
    tmp_path: Path, record_format: str, tombstones: Tombstones, has_dead_letters: bool
) -> None:
    text = MINIMAL.replace("schema: id long not null, at timestamp", record_format)
    (source,) = load(tmp_path, text).sources
    assert (source.tombstones, source.has_dead_letters) == (tombstones, has_dead_letters)


def test_what_only_spark_can_find_wrong_has_its_line_too(tmp_path: Path) -> None:
    pipeline = load(tmp_path, FULL.replace("  sql: |\n", "  sql: |\n\n"))
    file = tmp_path / "pipeline.yaml"
    assert pipeline.position("transform.sql", below=1) == f"{file}:27: transform.sql"
    assert pipeline.position("sources.orders.expectations[0].check").startswith(f"{file}:17: ")
    assert pipeline.position("sinks[1].delta.merge_keys").startswith(f"{file}:31: ")
    assert pipeline.position("nowhere") == "nowhere"


TO_A_TOPIC = MINIMAL.replace("  - console: {}", "  - topic: {topic: out}")


def test_sparks_own_connector_promises_no_more_than_it_holds(tmp_path: Path) -> None:
    def guarantee(text: str) -> str:
        (sink,) = load(tmp_path, text).sinks
        assert isinstance(sink, TopicSink)
        return sink.guarantee

    assert guarantee(TO_A_TOPIC) == "exactly-once"
    assert guarantee(TO_A_TOPIC + "connector: auto\n") == "exactly-once"
    assert guarantee(TO_A_TOPIC + "connector: kafka\n") == "at-least-once"
    written = TO_A_TOPIC.replace("topic: out}", "topic: out, guarantee: exactly-once}")
    assert guarantee(written + "connector: sskafka\n") == "exactly-once"
    ((line, text),) = problems(tmp_path, written + "connector: kafka\n")
    assert line == 7
    assert "writes at least once; use connector: sskafka or auto" in text


def test_the_name_of_a_query_tells_its_topics(tmp_path: Path) -> None:
    pipeline = load(tmp_path, FULL)
    name = query_name(pipeline, "delta")
    assert name == "joined.delta from orders, orders-eu, users-.*"
    assert query_of(pipeline, name) == "delta"
