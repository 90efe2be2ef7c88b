"""`sskafka topic describe`: a topic's partitions, leaders, offsets and settings."""

from typing import Annotated, Any, NamedTuple

import typer

from sskafka.cli.completion import TopicsArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_heading, print_table, talk
from sskafka.cli.patterns import topics_named
from sskafka.cli.topic.unhealthy import (
    PARTITION_COLUMNS,
    AtMinIsrOption,
    UnavailableOption,
    UnderMinIsrOption,
    UnderReplicatedOption,
    list_unhealthy,
    partition_row,
)
from sskafka.cli.watching import WatchOption, shown_again
from sskafka.client.cluster import Cluster
from sskafka.client.configs import DescribedConfig, Resource, describe_configs
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from sskafka.model.config_description import ConfigSource
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition, uuid_text


class PartitionOffsets(NamedTuple):
    """None if an offset is not available now."""

    log_start_offset: int | None
    high_watermark: int | None


class Sections(NamedTuple):
    """The parts of a description that the options select. Without options: everything except settings that have their
    default."""

    summary: bool
    configs: bool
    partitions: bool
    every: bool

    @property
    def is_default(self) -> bool:
        return not any(self)

    @property
    def shows_summary(self) -> bool:
        return self.summary or self.every or self.is_default

    @property
    def shows_partitions(self) -> bool:
        return self.partitions or self.every or self.is_default

    @property
    def shows_configs(self) -> bool:
        return self.configs or self.every or self.is_default

    @property
    def shows_defaults(self) -> bool:
        return self.configs or self.every


class TopicDescription(NamedTuple):
    topic: TopicView
    configs: list[DescribedConfig]
    offsets: dict[int, PartitionOffsets]


def describe(
    names: TopicsArgument = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", hidden=True)] = None,
    summary: Annotated[bool, typer.Option("--print-summary", "-s", help="Only the summary; also with -c, -p.")] = False,
    configs: Annotated[bool, typer.Option("--print-configs", "-c", help="Only the settings, with defaults.")] = False,
    partitions: Annotated[bool, typer.Option("--print-partitions", "-p", help="Only the partitions.")] = False,
    every: Annotated[bool, typer.Option("--print-all", "-a", help="Everything, with defaults.")] = False,
    under_replicated: UnderReplicatedOption = False,
    unavailable: UnavailableOption = False,
    at_min_isr: AtMinIsrOption = False,
    under_min_isr: UnderMinIsrOption = False,
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Describe topics: partitions with leaders and offsets, then the settings that are not defaults.

    --under-replicated, --unavailable, --at-min-isr and --under-min-isr list such partitions, of all topics if none is
    named."""
    asked = {
        "under_replicated": under_replicated,
        "offline": unavailable,
        "at_min_isr": at_min_isr,
        "under_min_isr": under_min_isr,
    }
    if conditions := [name for name, is_asked in asked.items() if is_asked]:
        client = client_properties(properties)
        run(list_unhealthy(bootstrap, client, names or (), topic or (), conditions, watch, output))
        return
    if not names and not topic:
        raise typer.BadParameter("name a topic", param_hint="NAME")
    sections = Sections(summary, configs, partitions, every)

    def show(described: list[TopicDescription]) -> None:
        if output.is_data:
            print_data(output, [_as_json(description) for description in described])
            return
        for number, description in enumerate(described):
            if number:
                print()
            _print(description, sections)

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = await topics_named(cluster, names or (), topic or ())

            async def ask() -> list[TopicDescription]:
                return [await _describe(cluster, name) for name in chosen]

            await shown_again(watch, ask, show)

    run(work())


async def _describe(cluster: Cluster, name: str) -> TopicDescription:
    cluster.forget(name)
    topic = await cluster.retrying(lambda: cluster.topic(name))
    configs = await describe_configs(cluster, Resource.topic(name))
    return TopicDescription(topic, sorted(configs), await _offsets(cluster, topic))


async def _offsets(cluster: Cluster, topic: TopicView) -> dict[int, PartitionOffsets]:
    """Return the offsets of all partitions; those without a leader have none."""
    led = [number for number, one in topic.partitions.items() if one.leader in cluster.view.brokers]
    partitions = [TopicPartition(topic.name, number) for number in led]
    try:
        first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
        last = await list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    except KafkaError:
        first = last = {}
    return {
        number: PartitionOffsets(
            _offset(first.get(TopicPartition(topic.name, number))),
            _offset(last.get(TopicPartition(topic.name, number))),
        )
        for number in topic.partitions
    }


def _offset(found: FoundOffset | None) -> int | None:
    return None if found is None else found.offset


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


def _print(description: TopicDescription, sections: Sections) -> None:
    if sections.shows_summary:
        _print_summary(description.topic)
    if sections.shows_partitions:
        print_heading("PARTITIONS")
        print_table(
            (*PARTITION_COLUMNS, "LOG-START-OFFSET", "HIGH-WATERMARK"),
            [(*partition_row(partition), *offsets) for partition, offsets in _partitions(description)],
        )
    if sections.shows_configs:
        if sections.shows_partitions:
            print()
        _print_configs(description.configs, every=sections.shows_defaults)


def _print_configs(configs: list[DescribedConfig], *, every: bool) -> None:
    shown = [entry for entry in configs if every or entry.source != ConfigSource.DEFAULT_CONFIG]
    print_heading("CONFIGS")
    print_table(("KEY", "VALUE", "SOURCE"), [(entry.name, _value(entry), _source(entry)) for entry in shown])
    if len(shown) < len(configs):
        talk(f"{len(configs) - len(shown)} settings have their default; -a shows them, too")


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
