"""What a run tells about its pipeline at its start."""

from dataclasses import replace

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import TopicSink
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.files.transform import SqlTransform
from sskafka.pipelines.runner.reporting import start_details


def test_sources_steps_and_sinks_without_secrets() -> None:
    pipeline = Pipeline(
        "shop",
        (Source("clicks", ("clicks", "taps")),),
        (TopicSink("counts", "counts"), TopicSink("raw", "raw", table="clicks")),
        SqlTransform("select 'hunter22' from clicks"),
    )
    details = start_details(replace(pipeline, secrets=frozenset({"hunter22"})))
    graph = details["graph"]
    assert graph["sources"] == [{"name": "clicks", "reads": "clicks, taps"}]
    assert graph["sinks"] == [
        {"name": "counts", "kind": "topic", "reads": "result"},
        {"name": "raw", "kind": "topic", "reads": "clicks"},
    ]
    assert "hunter22" not in str(details)
    assert graph["steps"][0]["code"].startswith("select")
