"""`sskafka config`: the settings of topics, brokers and groups, and what a change of them takes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
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
from sskafka.cli.failures import CommandError
from sskafka.cli.nearest import check_settings, did_you_mean, did_you_mean_setting
from sskafka.cli.options import DryRunOption, FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.usage import UsageError, key_values
from sskafka.client.cluster import Cluster
from sskafka.client.configs import ConfigResourceType, DescribedConfig, Resource, alter_configs, describe_configs
from sskafka.model.config_description import ConfigSource
from sskafka.model.dynamic_configs import known_setting
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.properties import PropertiesError, parse_properties
from sskafka.model.setting import Setting, format_value
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

app = typer.Typer(
    help="Show, compare and change settings of topics, brokers and groups.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

TopicOption = Annotated[list[str] | None, typer.Option("--topic", "-t", help="Topic.", show_default=False)]
BrokerOption = Annotated[list[int] | None, typer.Option("--broker", help="Node id of a broker.", show_default=False)]
BrokerDefaultsOption = Annotated[bool, typer.Option("--broker-defaults", help="What all brokers of the cluster use.")]
GroupOption = Annotated[list[str] | None, typer.Option("--group", "-g", help="Consumer group.", show_default=False)]
_SECRET = "(secret)"
_TABLES: Mapping[ConfigResourceType, Mapping[str, Setting]] = {
    ConfigResourceType.TOPIC: TOPIC_SETTINGS,
    ConfigResourceType.BROKER: BROKER_SETTINGS,
    ConfigResourceType.GROUP: GROUP_SETTINGS,
}


@app.command()
def describe(
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also settings that have their default.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the settings of one topic, broker or group, where each is set, and whether a change needs a restart."""
    resource = _one(_resources(topic, broker, broker_defaults, group))
    found = _described([resource], bootstrap, properties)[resource]
    shown = [config for config in found if every or not _is_default(config)]
    if output.is_data:
        print_data(output, [_as_json(config, resource) for config in shown])
        return
    rows = [(one.name, _value(one), ConfigSource(one.source).name, _takes(one)) for one in shown]
    print_table(("NAME", "VALUE", "SET BY", "A CHANGE TAKES"), rows)
    if not every:
        talk(f"{len(found) - len(shown)} settings have their default; --all shows them, too")


@app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the setting.")],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Print the value of one setting, and nothing else."""
    resource = _one(_resources(topic, broker, broker_defaults, group))
    configs = {config.name: config for config in _described([resource], bootstrap, properties)[resource]}
    if name not in configs:
        raise _unknown(name, list(configs), resource)
    print("" if configs[name].value is None else configs[name].value)


@app.command("set")
def set_command(
    values: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option("--add-config-file", metavar="FILE", help="File with lines NAME=VALUE, for secrets."),
    ] = None,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Set values; they apply at once and survive restarts."""
    resources = _resources(topic, broker, broker_defaults, group)
    wanted: dict[str, str | None] = {**_in_file(file), **dict(key_values(values or [], "NAME=VALUE"))}
    if not wanted:
        raise UsageError("name the settings: NAME=VALUE, or a file of them with --add-config-file")
    _alter(resources, wanted, bootstrap, properties, dry_run=dry_run)


@app.command()
def unset(
    names: Annotated[list[str], typer.Argument(metavar="NAME")],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Remove values, so that the settings have their defaults again."""
    resources = _resources(topic, broker, broker_defaults, group)
    check_settings(names, _TABLES[resources[0].type])
    _alter(resources, dict.fromkeys(names), bootstrap, properties, dry_run=dry_run)


@app.command()
def diff(
    topic: TopicOption = None,
    broker: BrokerOption = None,
    group: GroupOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compare the settings of several topics, brokers or groups, or of one with the defaults."""
    resources = _resources(topic, broker, False, group)
    described = _described(resources, bootstrap, properties)
    columns: dict[str, Mapping[str, str | None]] = {
        _name(resource): {one.name: _value(one) for one in found} for resource, found in described.items()
    }
    if len(resources) == 1:
        columns["default"] = {one.name: _default(one, resources[0]) for one in described[resources[0]]}
    names = sorted({name for values in columns.values() for name in values})
    different = [name for name in names if len({values.get(name) for values in columns.values()}) > 1]
    if output.is_data:
        print_data(output, [{"name": name, **{at: columns[at].get(name) for at in columns}} for name in different])
    elif different:
        print_table(("NAME", *columns), [(name, *(columns[at].get(name) for at in columns)) for name in different])
    else:
        talk("all settings are the same")


def _resources(
    topics: Sequence[str] | None, brokers: Sequence[int] | None, broker_defaults: bool, groups: Sequence[str] | None
) -> list[Resource]:
    found = [
        *map(Resource.topic, topics or ()),
        *map(Resource.broker, brokers or ()),
        *([Resource.broker(None)] if broker_defaults else ()),
        *map(Resource.group, groups or ()),
    ]
    if not found:
        raise UsageError("name what has the settings: --topic, --broker, --broker-defaults or --group")
    if len({resource.type for resource in found}) > 1:
        raise UsageError("topics, brokers and groups have different settings: name only one kind")
    return found


def _one(resources: list[Resource]) -> Resource:
    if len(resources) > 1:
        raise UsageError("name one topic, broker or group; `sskafka config diff` compares several")
    return resources[0]


def _described(
    resources: Sequence[Resource], bootstrap: str, properties: list[str] | None
) -> dict[Resource, list[DescribedConfig]]:
    async def work() -> dict[Resource, list[DescribedConfig]]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            await _check_there(cluster, resources)
            return {one: sorted(await describe_configs(cluster, one)) for one in resources}

    return run(work())


async def _check_there(cluster: Cluster, resources: Sequence[Resource]) -> None:
    """Raise an error for a topic that does not exist and for a broker that does not run: only it knows its settings."""
    live = {broker.node_id for broker in await cluster.brokers()}
    for resource in resources:
        if resource.type is ConfigResourceType.TOPIC:
            await cluster.retrying(partial(cluster.topic, resource.name))
        elif resource.type is ConfigResourceType.BROKER and resource.name and int(resource.name) not in live:
            raise CommandError(f"broker {resource.name} does not run", "`sskafka broker list` shows the brokers")


def _alter(
    resources: Sequence[Resource],
    values: Mapping[str, str | None],
    bootstrap: str,
    properties: list[str] | None,
    *,
    dry_run: bool,
) -> None:
    async def work() -> dict[Resource, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            await _check_there(cluster, resources)
            return await alter_configs(cluster, dict.fromkeys(resources, values), validate_only=dry_run)

    for resource, error in run(work()).items():
        if error is not None:
            raise CommandError(f"{_name(resource)}: {error}", _hint(error, resource, values))
        for name, value in values.items():
            change = f"{name} is {_shown(name, value)}" if value is not None else f"{name} has its default"
            talk(f"{_name(resource)}: {change}{' (dry run: nothing was changed)' if dry_run else ''}")


def _hint(error: KafkaError, resource: Resource, names: Iterable[str]) -> str:
    if error.code in {ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST}:
        meant = did_you_mean_setting(names, _TABLES[resource.type])
        return (
            meant
            or f"`sskafka config describe --all {_option(resource)}` lists the settings and says which can be changed"
        )
    return ""


def _unknown(name: str, known: Sequence[str], resource: Resource) -> CommandError:
    hint = did_you_mean(name, known) or f"`sskafka config describe --all {_option(resource)}` lists them"
    return CommandError(f"{_name(resource)} has no setting {name!r}", hint)


def _name(resource: Resource) -> str:
    kind = resource.type.name.lower()
    return f"{kind} {resource.name}" if resource.name else f"{kind} defaults"


def _option(resource: Resource) -> str:
    kind = resource.type.name.lower()
    return f"--{kind} {resource.name}" if resource.name else f"--{kind}-defaults"


def _is_default(config: DescribedConfig) -> bool:
    return config.source == ConfigSource.DEFAULT_CONFIG


def _in_file(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        return parse_properties(file.read_text())
    except (OSError, PropertiesError) as error:
        raise CommandError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _shown(name: str, value: str) -> str:
    setting = known_setting(name)
    return _SECRET if setting is not None and setting.sensitive else value


def _value(config: DescribedConfig) -> str | None:
    return _SECRET if config.is_sensitive else config.value


def _takes(config: DescribedConfig) -> str:
    return "a restart" if config.is_read_only else "effect at once"


def _default(config: DescribedConfig, resource: Resource) -> str | None:
    """Return the built-in default; the value itself for secrets and for settings that only another broker has."""
    setting = _TABLES[resource.type].get(config.name)
    return _value(config) if setting is None or config.is_sensitive else format_value(setting.default)


def _as_json(config: DescribedConfig, resource: Resource) -> dict[str, object]:
    return {
        "name": config.name,
        "value": config.value,
        "default": _default(config, resource),
        "source": ConfigSource(config.source).name,
        "is_read_only": config.is_read_only,
        "is_sensitive": config.is_sensitive,
    }
