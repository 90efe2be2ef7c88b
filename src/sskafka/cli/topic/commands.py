"""`sskafka topic`: the commands about topics. Flags are rpk's; Kafka's long ones work too."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated

import typer

from sskafka.cli.completion import TopicsArgument
from sskafka.cli.confirm import confirm
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
    run_on_cluster,
)
from sskafka.cli.failures import report_each
from sskafka.cli.nearest import check_settings, did_you_mean_setting
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.patterns import matching, topics_named
from sskafka.cli.topic.consume import consume
from sskafka.cli.topic.describe import describe
from sskafka.cli.topic.produce import produce
from sskafka.cli.topic.rebalance import rebalance
from sskafka.cli.usage import UsageError, key_values
from sskafka.client.admin import USE_BROKER_DEFAULT, Admin, CreatedTopic, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.configs import Resource, alter_configs
from sskafka.client.metadata import TopicView
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import uuid_text
from sskafka.model.settings_table import TOPIC_SETTINGS

app = typer.Typer(
    help="Create, list, describe, alter, delete, produce to and consume topics.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_NAMED_MAX = 5
NamesArgument = Annotated[list[str] | None, typer.Argument(metavar="NAME", show_default=False)]
TopicOption = Annotated[list[str] | None, typer.Option("--topic", hidden=True)]
"""A name in `create`; elsewhere a regular expression for the whole name, as in Kafka's tools."""


def create(
    names: NamesArgument = None,
    topic: TopicOption = None,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions; -1: the broker's default.")
    ] = USE_BROKER_DEFAULT,
    replicas: Annotated[
        int,
        typer.Option("--replication-factor", "--replicas", "-r", help="Replicas of a partition; -1: broker's default."),
    ] = USE_BROKER_DEFAULT,
    assignment: Annotated[
        str | None,
        typer.Option(
            "--replica-assignment",
            metavar="ID:ID,ID:ID,...",
            help="Brokers of each partition, the preferred leader first, instead of -p and -r.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "--topic-config", "-c", metavar="KEY=VALUE", help="Topic setting. Repeatable."),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave existing topics alone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-d", help="Only validate the request.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Create topics."""
    configs = key_values(config, "--config")
    assigned = _assignment(assignment)
    if assigned and (partitions, replicas) != (USE_BROKER_DEFAULT, USE_BROKER_DEFAULT):
        raise UsageError("--replica-assignment says how many partitions and replicas there are: omit -p and -r")
    topics = [NewTopic(name, partitions, replicas, configs, assigned) for name in all_names(names, topic)]

    outcomes = run_on_cluster(
        bootstrap, properties, lambda cluster: Admin(cluster).create_topics(topics, validate_only=dry_run)
    )
    created = [outcome for outcome in outcomes.values() if isinstance(outcome, CreatedTopic)]
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, KafkaError)}
    if if_not_exists:
        failed = {name: error for name, error in failed.items() if error.code != ErrorCode.TOPIC_ALREADY_EXISTS}
    _print_created(created, output)
    fail_for(failed, _setting_hint(failed, configs))


def _assignment(text: str | None) -> dict[int, list[int]]:
    try:
        rows = [] if text is None else [[int(node_id) for node_id in row.split(":")] for row in text.split(",")]
    except ValueError:
        raise UsageError(f"--replica-assignment {text!r} is not a list of broker ids such as 1:2,2:3") from None
    return dict(enumerate(rows))


def _print_created(created: list[CreatedTopic], output: Format) -> None:
    if output.is_data:
        print_data(
            output,
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_text(topic.topic_id),
                    "partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                }
                for topic in created
            ],
        )
    elif created:
        rows = [
            (topic.name, topic.partitions, topic.replication_factor, uuid_text(topic.topic_id)) for topic in created
        ]
        print_table(("TOPIC", "PARTITIONS", "REPLICAS", "ID"), rows)


def list_(
    names: TopicsArgument = None,
    topic: TopicOption = None,
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Include internal topics.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List topics, all or those that match a pattern."""
    patterns = [*(names or ()), *(f"^(?:{regex})$" for regex in topic or ())]

    found = {
        one.name: one
        for one in run_on_cluster(bootstrap, properties, lambda cluster: Admin(cluster).list_topics(internal=internal))
    }
    topics = [found[name] for name in matching(patterns, found)]
    if output.is_data:
        print_data(
            output,
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": replication_factor(topic),
                    "internal": topic.is_internal,
                }
                for topic in topics
            ],
        )
    else:
        rows = [(topic.name, len(topic.partitions), replication_factor(topic)) for topic in topics]
        print_table(("NAME", "PARTITIONS", "REPLICAS"), rows, if_empty=_no_topics(found, internal=internal))


def _no_topics(found: Collection[str], *, internal: bool) -> str:
    if found:
        return f"none of {len(found)} topics matches"
    return "there are no topics" if internal else "there are no topics; --internal lists internal ones, too"


def replication_factor(topic: TopicView) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


def alter(
    names: TopicsArgument = None,
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
    all_names(names, topic)
    check_settings(delete_config or (), TOPIC_SETTINGS)
    changes: dict[str, str | None] = {**key_values(config, "--config"), **dict.fromkeys(delete_config or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to change: give --partitions, --config or --delete-config")

    async def work() -> dict[str, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = await topics_named(cluster, names or (), topic or ())
            failed = await _alter(cluster, chosen, partitions, changes, dry_run)
            return {name: failed.get(name) for name in chosen}

    _tell_outcomes(run(work()), "could be altered" if dry_run else "was altered", changes)


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
    names: TopicsArgument = None,
    topic: TopicOption = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Ignore missing topics.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Delete topics and all their records."""
    all_names(names, topic)

    async def work() -> dict[str, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = await topics_named(cluster, names or (), topic or (), missing_ok=if_exists)
            if dry_run:
                return dict.fromkeys(chosen)
            confirm(f"deletes {_named(chosen)}, with all records", yes=yes)
            return await Admin(cluster).delete_topics(chosen)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    outcomes = {
        name: None if if_exists and error is not None and error.code == unknown else error
        for name, error in run(work()).items()
    }
    _tell_outcomes(outcomes, "would be deleted" if dry_run else "was deleted")


def _named(topics: list[str]) -> str:
    named = ", ".join(topics[:_NAMED_MAX])
    more = f" and {len(topics) - _NAMED_MAX} more" if len(topics) > _NAMED_MAX else ""
    return f"{'topic' if len(topics) == 1 else f'{len(topics)} topics:'} {named}{more}"


def _tell_outcomes(outcomes: Mapping[str, KafkaError | None], done: str, configs: Iterable[str] = ()) -> None:
    for name, error in outcomes.items():
        if error is None:
            talk(f"topic {name} {done}")
    failed = {name: error for name, error in outcomes.items() if error is not None}
    fail_for(failed, _setting_hint(failed, configs))


def _setting_hint(failed: Mapping[str, KafkaError], names: Iterable[str]) -> str:
    """Return which setting was probably meant, if one of these names is wrong."""
    is_wrong = any(error.code == ErrorCode.INVALID_CONFIG for error in failed.values())
    return did_you_mean_setting(names, TOPIC_SETTINGS) if is_wrong else ""


def all_names(names: list[str] | None, option: list[str] | None) -> list[str]:
    """Return names given as arguments or, as in Kafka's tools, with --topic."""
    chosen = list(dict.fromkeys([*(names or ()), *(option or ())]))
    if not chosen:
        raise typer.BadParameter("name a topic", param_hint="NAME")
    return chosen


def fail_for(failed: Mapping[str, KafkaError], hint: str = "") -> None:
    """Report the error of each topic. The command fails if any topic failed."""
    report_each(failed, hint)
    if failed:
        raise typer.Exit(1)


app.command()(create)
app.command("list")(list_)
app.command()(describe)
app.command()(alter)
app.command()(delete)
app.command()(rebalance)
app.command()(produce)
app.command()(consume)
