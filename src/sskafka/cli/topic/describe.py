"""`sskafka topic describe`: a topic's partitions, leaders, offsets and settings."""

from typing import Annotated, Any, NamedTuple

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_heading, print_json, print_table
from sskafka.client.cluster import Cluster
from sskafka.client.configs import DescribedConfig, Resource, describe_configs
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.config_description import ConfigSource
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition, uuid_text


class PartitionOffsets(NamedTuple):
    """None if an offset is not available now."""

    log_start_offset: int | None
    high_watermark: int | None


class TopicDescription(NamedTuple):
    topic: TopicView
    configs: list[DescribedConfig]
    offsets: dict[int, PartitionOffsets]


def describe(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", show_default=False)] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", hidden=True)] = None,
    summary: Annotated[bool, typer.Option("--print-summary", "-s", help="Only the summary (or with -c, -p).")] = False,
    configs: Annotated[bool, typer.Option("--print-configs", "-c", help="Only the settings.")] = False,
    partitions: Annotated[bool, typer.Option("--print-partitions", "-p", help="Only the partitions.")] = False,
    every: Annotated[bool, typer.Option("--print-all", "-a", help="Everything.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Describe topics: partitions with leaders and offsets, and settings."""
    chosen = [*(names or ()), *(topic or ())]
    if not chosen:
        raise typer.BadParameter("name a topic", param_hint="NAME")

    async def work() -> list[TopicDescription]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return [await _describe(cluster, name) for name in chosen]

    described = run(work())
    if output is Format.JSON:
        print_json([_as_json(description) for description in described])
        return
    if every or not (summary or configs or partitions):
        summary = configs = partitions = True
    for description in described:
        _print(description, summary, configs, partitions)


async def _describe(cluster: Cluster, name: str) -> TopicDescription:
    cluster.forget(name)
    topic = await cluster.topic(name)
    offsets = {number: await _offsets(cluster, TopicPartition(name, number)) for number in sorted(topic.partitions)}
    configs = await describe_configs(cluster, Resource.topic(name))
    return TopicDescription(topic, sorted(configs), offsets)


async def _offsets(cluster: Cluster, partition: TopicPartition) -> PartitionOffsets:
    view = cluster.view.partition(partition)
    if view is None or view.leader not in cluster.view.brokers:
        return PartitionOffsets(None, None)
    try:
        first = await list_offsets(cluster, {partition: EARLIEST})
        last = await list_offsets(cluster, {partition: LATEST})
    except KafkaError:
        return PartitionOffsets(None, None)
    return PartitionOffsets(first[partition].offset, last[partition].offset)


def _source(entry: DescribedConfig) -> str:
    try:
        return ConfigSource(entry.source).name
    except ValueError:
        return str(entry.source)


def _value(entry: DescribedConfig) -> str:
    return "(hidden)" if entry.is_sensitive else entry.value or ""


def _partitions(description: TopicDescription) -> list[tuple[PartitionView, PartitionOffsets]]:
    by_number = sorted(description.topic.partitions.items())
    return [(partition, description.offsets[number]) for number, partition in by_number]


def _as_json(description: TopicDescription) -> dict[str, Any]:
    topic = description.topic
    return {
        "name": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "offline_replicas": partition.offline_replicas,
                "log_start_offset": offsets.log_start_offset,
                "high_watermark": offsets.high_watermark,
            }
            for partition, offsets in _partitions(description)
        ],
        "configs": [
            {"name": entry.name, "value": None if entry.is_sensitive else entry.value, "source": _source(entry)}
            for entry in description.configs
        ],
    }


def _print(description: TopicDescription, summary: bool, configs: bool, partitions: bool) -> None:
    if summary:
        _print_summary(description.topic)
    if configs:
        print_heading("CONFIGS")
        rows = [(entry.name, _value(entry), _source(entry)) for entry in description.configs]
        print_table(("KEY", "VALUE", "SOURCE"), rows)
        print()
    if partitions:
        print_heading("PARTITIONS")
        headers = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "LOG-START-OFFSET", "HIGH-WATERMARK")
        print_table(
            headers,
            [
                (
                    partition.partition,
                    partition.leader,
                    partition.leader_epoch,
                    partition.replicas,
                    partition.isr,
                    *offsets,
                )
                for partition, offsets in _partitions(description)
            ],
        )


def _print_summary(topic: TopicView) -> None:
    replicas = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
    print_heading("SUMMARY")
    for label, value in (
        ("NAME", topic.name),
        ("ID", uuid_text(topic.topic_id)),
        ("PARTITIONS", len(topic.partitions)),
        ("REPLICAS", replicas),
    ):
        print(f"{label:<12}{value}")
    print()
