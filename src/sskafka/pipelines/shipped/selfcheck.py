"""Run a bundled pipeline on input with a known result, on the given cluster, and compare.

Topics, files and groups have unique names; the topics are deleted at the end of the check.
"""

import asyncio
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from sskafka.client.accumulator import Delivery
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ProducerConfig
from sskafka.client.producer import ProducerEngine
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.files.pipeline import Pipeline, Trigger
from sskafka.pipelines.files.sink import TopicSink
from sskafka.pipelines.runner.run import RunSettings, run_pipeline
from sskafka.pipelines.session import Tell
from sskafka.pipelines.shipped import load_shipped
from sskafka.pipelines.shipped.exercise import Exercise, Message, Task, differences
from sskafka.pipelines.shipped.wiring import wired

PARTITIONS = 3
DEFAULT_RECORDS = 1_000
DEFAULT_SEED = 7
_KEEP_FOR_EVER = {"retention.ms": "-1"}  # known input has its own timestamps, which may be old


@dataclass(frozen=True, slots=True)
class CheckSettings:
    run: RunSettings
    records: int = DEFAULT_RECORDS
    seed: int = DEFAULT_SEED
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of Kafka's clients, which may contain passwords."""


def make_exercise(name: str, task: Task) -> Exercise:
    made: Exercise = import_module(f"sskafka.pipelines.shipped.{name}").exercise(task)
    return made


def check(name: str, settings: CheckSettings, tell: Tell = lambda _: None) -> list[str]:
    """Return the differences from the known result; empty if the pipeline works."""
    with tempfile.TemporaryDirectory(prefix=f"sskafka-check-{name}-") as directory:
        pipeline = apart(load_shipped(name, Path(directory)).with_properties(settings.properties), secrets.token_hex(4))
        exercise = make_exercise(name, Task(settings.records, settings.seed, topics_of(pipeline)))
        try:
            asyncio.run(produce(settings.run.bootstrap, topics_of(pipeline), exercise.messages, pipeline.connection))
            tell(f"wrote {sum(map(len, exercise.messages.values()))} records")
            run_pipeline(replace(pipeline, trigger=Trigger("")), settings.run, tell=tell)
            return differences(exercise.expected, exercise.found(pipeline, settings.run.bootstrap))
        finally:
            asyncio.run(_delete(settings.run.bootstrap, _all_topics(pipeline), pipeline.connection))


def apart(pipeline: Pipeline, token: str) -> Pipeline:
    """Return the pipeline with names that nothing else uses."""
    topics = {source.name: f"{pipeline.name}-{source.name}-{token}" for source in pipeline.sources}
    locations = {
        sink.name: f"{pipeline.name}-{sink.name}-{token}" for sink in pipeline.sinks if isinstance(sink, TopicSink)
    }
    return wired(pipeline, name=f"{pipeline.name}-{token}", topics=topics, locations=locations)


def topics_of(pipeline: Pipeline) -> dict[str, str]:
    """Return topics by table; bundled pipelines read one topic per table."""
    return {source.name: source.topics[0] for source in pipeline.sources}


async def produce(
    bootstrap: str,
    topics: Mapping[str, str],
    messages: Mapping[str, Sequence[Message]],
    config: ConnectionConfig | None = None,
) -> None:
    """Create missing topics, and write the messages in order."""
    async with Cluster(bootstrap, config or ConnectionConfig()) as cluster:
        await cluster.refresh()
        wanted = [NewTopic(topic, PARTITIONS, configs=_KEEP_FOR_EVER) for topic in topics.values()]
        for outcome in (await Admin(cluster).create_topics(wanted)).values():
            if isinstance(outcome, KafkaError) and outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise outcome
        async with ProducerEngine(cluster, ProducerConfig()) as producer:
            sent = [await send(producer, topics[table], message) for table, own in messages.items() for message in own]
            await producer.flush()
            await asyncio.gather(*sent)


async def send(producer: ProducerEngine, topic: str, message: Message) -> asyncio.Future[Delivery]:
    return await producer.send(
        topic,
        message.value,
        key=None if message.key is None else message.key.encode(),
        partition=message.partition,
        timestamp=message.timestamp_ms,
    )


def _all_topics(pipeline: Pipeline) -> list[str]:
    written = [sink.topic for sink in pipeline.sinks if isinstance(sink, TopicSink)]
    return [
        *topics_of(pipeline).values(),
        *written,
        *([pipeline.dead_letter_topic] if pipeline.has_dead_letters else []),
    ]


async def _delete(bootstrap: str, topics: Iterable[str], config: ConnectionConfig) -> None:
    """Delete topics; those that do not exist are ignored."""
    async with Cluster(bootstrap, config) as cluster:
        await Admin(cluster).delete_topics(topics)
