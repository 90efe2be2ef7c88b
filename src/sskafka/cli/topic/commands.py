"""`sskafka topic`: the commands about topics. Flags are rpk's; Kafka's long ones work too."""

from typing import Annotated

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import report_each
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_json, print_table, talk
from sskafka.cli.topic.consume import consume
from sskafka.cli.topic.describe import describe
from sskafka.cli.topic.produce import produce
from sskafka.cli.usage import key_values
from sskafka.client.admin import USE_BROKER_DEFAULT, Admin, CreatedTopic, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.configs import Resource, alter_configs
from sskafka.client.metadata import TopicView
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import uuid_text

app = typer.Typer(
    help="Create, list, describe, alter, delete, produce to and consume topics.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

NamesArgument = Annotated[list[str] | None, typer.Argument(metavar="NAME", show_default=False)]
TopicOption = Annotated[list[str] | None, typer.Option("--topic", hidden=True)]


def create(
    names: NamesArgument = None,
    topic: TopicOption = None,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions; -1: the broker's default.")
    ] = USE_BROKER_DEFAULT,
    replicas: Annotated[
        int,
        typer.Option("--replication-factor", "--replicas", "-r", help="Copies of each; -1: the broker's default."),
    ] = USE_BROKER_DEFAULT,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "--topic-config", "-c", metavar="KEY=VALUE", help="Topic setting. Repeatable."),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave existing topics alone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-d", help="Only validate the request.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Create topics."""
    configs = key_values(config, "--config")
    topics = [NewTopic(name, partitions, replicas, configs) for name in all_names(names, topic)]

    async def work() -> dict[str, CreatedTopic | KafkaError]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await Admin(cluster).create_topics(topics, validate_only=dry_run)

    outcomes = run(work())
    created = [outcome for outcome in outcomes.values() if isinstance(outcome, CreatedTopic)]
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, KafkaError)}
    if if_not_exists:
        failed = {name: error for name, error in failed.items() if error.code != ErrorCode.TOPIC_ALREADY_EXISTS}
    _print_created(created, output)
    fail_for(failed)


def _print_created(created: list[CreatedTopic], output: Format) -> None:
    if output is Format.JSON:
        print_json(
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_text(topic.topic_id),
                    "partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                }
                for topic in created
            ]
        )
    elif created:
        rows = [
            (topic.name, topic.partitions, topic.replication_factor, uuid_text(topic.topic_id)) for topic in created
        ]
        print_table(("TOPIC", "PARTITIONS", "REPLICAS", "ID"), rows)


def list_(
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Include internal topics.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List topics."""

    async def work() -> list[TopicView]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await Admin(cluster).list_topics(internal=internal)

    topics = run(work())
    if output is Format.JSON:
        print_json(
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": replication_factor(topic),
                    "internal": topic.is_internal,
                }
                for topic in topics
            ]
        )
    else:
        rows = [(topic.name, len(topic.partitions), replication_factor(topic)) for topic in topics]
        print_table(("NAME", "PARTITIONS", "REPLICAS"), rows)


def replication_factor(topic: TopicView) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


def alter(
    names: NamesArgument = None,
    topic: TopicOption = None,
    partitions: Annotated[int | None, typer.Option("--partitions", "-p", help="New number of partitions.")] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "--topic-config", "--set", "-c", metavar="KEY=VALUE", help="Set. Repeatable."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config", "--delete", metavar="KEY", help="Reset this setting to its default. Repeatable."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-d", help="Only validate the request.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Change the settings of topics, or increase their number of partitions."""
    chosen = all_names(names, topic)
    changes: dict[str, str | None] = {**key_values(config, "--config"), **dict.fromkeys(delete_config or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to change: give --partitions, --config or --delete-config")

    async def work() -> dict[str, KafkaError]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await _alter(cluster, chosen, partitions, changes, dry_run)

    failed = run(work())
    for name in chosen:
        if name not in failed:
            talk(f"topic {name} {'could be' if dry_run else 'was'} altered")
    fail_for(failed)


async def _alter(
    cluster: Cluster, names: list[str], partitions: int | None, changes: dict[str, str | None], dry_run: bool
) -> dict[str, KafkaError]:
    failed: dict[str, KafkaError] = {}
    if changes:
        resources = {Resource.topic(name): changes for name in names}
        outcomes = await alter_configs(cluster, resources, validate_only=dry_run)
        failed |= {resource.name: error for resource, error in outcomes.items() if error is not None}
    if partitions is not None:
        counts = {name: partitions for name in names if name not in failed}
        raised = await Admin(cluster).create_partitions(counts, validate_only=dry_run)
        failed |= {name: error for name, error in raised.items() if error is not None}
    return failed


def delete(
    names: NamesArgument = None,
    topic: TopicOption = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Ignore missing topics.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Delete topics and all their records."""
    chosen = all_names(names, topic)

    async def work() -> dict[str, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await Admin(cluster).delete_topics(chosen)

    failed = {name: error for name, error in run(work()).items() if error is not None}
    if if_exists:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        failed = {name: error for name, error in failed.items() if error.code != unknown}
    for name in chosen:
        if name not in failed:
            talk(f"topic {name} was deleted")
    fail_for(failed)


def all_names(names: list[str] | None, option: list[str] | None) -> list[str]:
    """Return names given as arguments or, as in Kafka's tools, with --topic."""
    chosen = list(dict.fromkeys([*(names or ()), *(option or ())]))
    if not chosen:
        raise typer.BadParameter("name a topic", param_hint="NAME")
    return chosen


def fail_for(failed: dict[str, KafkaError]) -> None:
    """Report the error of each topic. The command fails if any topic failed."""
    report_each(failed)
    if failed:
        raise typer.Exit(1)


app.command()(create)
app.command("list")(list_)
app.command()(describe)
app.command()(alter)
app.command()(delete)
app.command()(produce)
app.command()(consume)
