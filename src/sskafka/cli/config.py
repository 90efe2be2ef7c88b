"""`sskafka config`: the settings of topics, brokers, groups and client ids, and whether a change needs a restart.

The settings of a client id are its quotas; `sskafka quota` has those of users and IP addresses, too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from sskafka.cli.completion import complete_broker, complete_group, complete_setting, complete_topic
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
from sskafka.cli.sizes import number_text
from sskafka.cli.usage import UsageError, key_values
from sskafka.client.client_quotas import alter_quotas, describe_quotas
from sskafka.client.cluster import Cluster
from sskafka.client.configs import ConfigResourceType, Resource, alter_configs, describe_configs
from sskafka.metadata.client_quotas import CLIENT_ID, CLIENT_KEYS
from sskafka.metadata.image import QuotaEntity
from sskafka.model.config_description import ConfigSource
from sskafka.model.dynamic_configs import known_setting
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.properties import PropertiesError, parse_properties
from sskafka.model.setting import Setting, Update, format_value
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

app = typer.Typer(
    help="Show, compare and change settings of topics, brokers, groups and client ids.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

TopicOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", help="Topic.", show_default=False, autocompletion=complete_topic),
]
BrokerOption = Annotated[
    list[int] | None,
    typer.Option("--broker", help="Node id of a broker.", show_default=False, autocompletion=complete_broker),
]
BrokerDefaultsOption = Annotated[bool, typer.Option("--broker-defaults", help="Settings that all brokers share.")]
GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", help="Consumer group.", show_default=False, autocompletion=complete_group),
]
ClientOption = Annotated[
    list[str] | None, typer.Option("--client-id", "--client", help="Client id: its quotas.", show_default=False)
]
_SECRET = "(secret)"
_TABLES: Mapping[ConfigResourceType, Mapping[str, Setting]] = {
    ConfigResourceType.TOPIC: TOPIC_SETTINGS,
    ConfigResourceType.BROKER: BROKER_SETTINGS,
    ConfigResourceType.GROUP: GROUP_SETTINGS,
}


class ClientId(NamedTuple):
    name: str

    @property
    def entity(self) -> QuotaEntity:
        return ((CLIENT_ID, self.name),)


Owner = Resource | ClientId
"""What has the settings."""


class ShownConfig(NamedTuple):
    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT_CONFIG.name

    @property
    def shown_value(self) -> str | None:
        return _SECRET if self.is_sensitive else self.value


@app.command()
def describe(
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    client_id: ClientOption = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also settings that have their default.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the settings of one topic, broker, group or client id, where each is set, and when a change applies."""
    owner = _one(_owners(topic, broker, broker_defaults, group, client_id))
    found = _described([owner], bootstrap, properties)[owner]
    shown = [config for config in found if every or not config.is_default]
    if output.is_data:
        print_data(output, [_as_json(config, owner) for config in shown])
        return
    rows = [(one.name, one.shown_value, one.source, _when(one)) for one in shown]
    print_table(("NAME", "VALUE", "SET BY", "CHANGE APPLIES"), rows)
    if not every:
        talk(f"{len(found) - len(shown)} settings have their default; --all shows them, too")


@app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the setting.", autocompletion=complete_setting)],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    client_id: ClientOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the value of one setting, and nothing else; a JSON object with --output json."""
    owner = _one(_owners(topic, broker, broker_defaults, group, client_id))
    configs = {config.name: config for config in _described([owner], bootstrap, properties)[owner]}
    if name not in configs:
        raise _unknown(name, list(configs), owner)
    if output.is_data:
        print_data(output, _as_json(configs[name], owner))
    else:
        print("" if configs[name].value is None else configs[name].value)


@app.command("set")
def set_command(
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", show_default=False, autocompletion=complete_setting),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--add-config-file", metavar="FILE", help="File with lines NAME=VALUE, for secrets."),
    ] = None,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    client_id: ClientOption = None,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Set values; they apply at once and survive restarts."""
    owners = _owners(topic, broker, broker_defaults, group, client_id)
    wanted: dict[str, str | None] = {**_in_file(file), **dict(key_values(values or [], "NAME=VALUE"))}
    if not wanted:
        raise UsageError("name the settings: NAME=VALUE, or a file of them with --add-config-file")
    _alter(owners, wanted, bootstrap, properties, dry_run=dry_run)


@app.command()
def unset(
    names: Annotated[list[str], typer.Argument(metavar="NAME", autocompletion=complete_setting)],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    group: GroupOption = None,
    client_id: ClientOption = None,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Remove values, so that the settings have their defaults again."""
    owners = _owners(topic, broker, broker_defaults, group, client_id)
    check_settings(names, _known(owners[0]))
    _alter(owners, dict.fromkeys(names), bootstrap, properties, dry_run=dry_run)


@app.command()
def diff(
    topic: TopicOption = None,
    broker: BrokerOption = None,
    group: GroupOption = None,
    client_id: ClientOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compare the settings of several topics, brokers, groups or client ids, or of one with the defaults."""
    owners = _owners(topic, broker, False, group, client_id)
    described = _described(owners, bootstrap, properties)
    columns: dict[str, Mapping[str, str | None]] = {
        _name(owner): {one.name: one.shown_value for one in found} for owner, found in described.items()
    }
    if len(owners) == 1:
        columns["default"] = {one.name: _default(one, owners[0]) for one in described[owners[0]]}
    names = sorted({name for values in columns.values() for name in values})
    different = [name for name in names if len({values.get(name) for values in columns.values()}) > 1]
    if output.is_data:
        print_data(output, [{"name": name, **{at: columns[at].get(name) for at in columns}} for name in different])
    elif different:
        print_table(("NAME", *columns), [(name, *(columns[at].get(name) for at in columns)) for name in different])
    else:
        talk("all settings are the same")


def _owners(
    topics: Sequence[str] | None,
    brokers: Sequence[int] | None,
    broker_defaults: bool,
    groups: Sequence[str] | None,
    client_ids: Sequence[str] | None,
) -> list[Owner]:
    found: list[Owner] = [
        *map(Resource.topic, topics or ()),
        *map(Resource.broker, brokers or ()),
        *([Resource.broker(None)] if broker_defaults else ()),
        *map(Resource.group, groups or ()),
        *map(ClientId, client_ids or ()),
    ]
    if not found:
        raise UsageError("name the resource: --topic, --broker, --broker-defaults, --group or --client-id")
    if len({_kind(owner) for owner in found}) > 1:
        raise UsageError("topics, brokers, groups and client ids have different settings: name only one kind")
    return found


def _one(owners: list[Owner]) -> Owner:
    if len(owners) > 1:
        raise UsageError("name one topic, broker, group or client id; `sskafka config diff` compares several")
    return owners[0]


def _described(owners: Sequence[Owner], bootstrap: str, properties: list[str] | None) -> dict[Owner, list[ShownConfig]]:
    async def work() -> dict[Owner, list[ShownConfig]]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            await _check_there(cluster, owners)
            return {one: await _configs_of(cluster, one) for one in owners}

    return run(work())


async def _configs_of(cluster: Cluster, owner: Owner) -> list[ShownConfig]:
    if isinstance(owner, Resource):
        return [
            ShownConfig(one.name, one.value, ConfigSource(one.source).name, one.is_read_only, one.is_sensitive)
            for one in sorted(await describe_configs(cluster, owner))
        ]
    quotas = {one.entity: one.limits for one in await describe_quotas(cluster)}
    found = []
    for name in sorted(CLIENT_KEYS):
        limit, source = quotas.get(owner.entity, {}).get(name), "CLIENT_QUOTA"
        if limit is None:
            limit, source = quotas.get(((CLIENT_ID, None),), {}).get(name), "DEFAULT_CLIENT_QUOTA"
        if limit is None:
            source = ConfigSource.DEFAULT_CONFIG.name
        found.append(ShownConfig(name, None if limit is None else number_text(limit), source, False, False))
    return found


async def _check_there(cluster: Cluster, owners: Sequence[Owner]) -> None:
    """Raise an error for a topic that does not exist and for a broker that does not run: only it knows its settings."""
    live = {broker.node_id for broker in await cluster.brokers()}
    for owner in owners:
        if _kind(owner) == "topic":
            await cluster.retrying(partial(cluster.topic, owner.name))
        elif _kind(owner) == "broker" and owner.name and int(owner.name) not in live:
            raise CommandError(f"broker {owner.name} does not run", "`sskafka broker list` shows the brokers")


def _alter(
    owners: Sequence[Owner],
    values: Mapping[str, str | None],
    bootstrap: str,
    properties: list[str] | None,
    *,
    dry_run: bool,
) -> None:
    limits = _limits(values) if isinstance(owners[0], ClientId) else {}

    async def work() -> dict[Owner, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            await _check_there(cluster, owners)
            resources = [owner for owner in owners if isinstance(owner, Resource)]
            for owner in owners:
                if isinstance(owner, ClientId):
                    await alter_quotas(cluster, owner.entity, limits, validate_only=dry_run)
            changed = await alter_configs(cluster, dict.fromkeys(resources, values), validate_only=dry_run)
            return {owner: changed.get(owner) if isinstance(owner, Resource) else None for owner in owners}

    for owner, error in run(work()).items():
        if error is not None:
            raise CommandError(f"{_name(owner)}: {error}", _hint(error, owner, values))
        for name, value in values.items():
            change = f"set to {_shown(name, value)}" if value is not None else "reset to its default"
            talk(f"{_name(owner)}: {name} {f'would be {change}' if dry_run else change}")
    if dry_run:
        talk("dry run: nothing was changed")


def _limits(values: Mapping[str, str | None]) -> dict[str, float | None]:
    """Return the values as quotas; raise UsageError for a name or a value that is not one of a quota."""
    limits: dict[str, float | None] = {}
    for name, text in values.items():
        if name not in CLIENT_KEYS:
            hint = did_you_mean(name, CLIENT_KEYS) or f"the quotas of a client id are {', '.join(CLIENT_KEYS)}"
            raise CommandError(f"there is no quota {name!r}", hint)
        try:
            limits[name] = None if text is None else float(text)
        except ValueError:
            raise UsageError(f"{name}={text!r} is not a number") from None
    return limits


def _hint(error: KafkaError, owner: Owner, names: Iterable[str]) -> str:
    if error.code not in {ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST}:
        return ""
    if meant := did_you_mean_setting(names, _known(owner)):
        return meant
    settings = [BROKER_SETTINGS.get(name) for name in names if _kind(owner) == "broker"]
    if any(setting is not None and setting.update is Update.READ_ONLY for setting in settings):
        return (
            "set it in server.properties and restart the broker; `sskafka cluster restart` does that broker by broker"
        )
    return f"`sskafka config describe --all {_option(owner)}` lists the settings and says which can be changed"


def _unknown(name: str, known: Sequence[str], owner: Owner) -> CommandError:
    hint = did_you_mean(name, known) or f"`sskafka config describe --all {_option(owner)}` lists the settings"
    return CommandError(f"{_name(owner)} has no setting {name!r}", hint)


def _kind(owner: Owner) -> str:
    return owner.type.name.lower() if isinstance(owner, Resource) else "client-id"


def _known(owner: Owner) -> Collection[str]:
    return _TABLES[owner.type] if isinstance(owner, Resource) else CLIENT_KEYS


def _name(owner: Owner) -> str:
    return f"{_kind(owner)} {owner.name}" if owner.name else f"{_kind(owner)} defaults"


def _option(owner: Owner) -> str:
    return f"--{_kind(owner)} {owner.name}" if owner.name else f"--{_kind(owner)}-defaults"


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


def _when(config: ShownConfig) -> str:
    return "after a restart" if config.is_read_only else "at once"


def _default(config: ShownConfig, owner: Owner) -> str | None:
    """Return the built-in default; the value itself for secrets and for settings that only another broker has."""
    if isinstance(owner, ClientId):
        return None
    setting = _TABLES[owner.type].get(config.name)
    return config.shown_value if setting is None or config.is_sensitive else format_value(setting.default)


def _as_json(config: ShownConfig, owner: Owner) -> dict[str, object]:
    return {
        "name": config.name,
        "value": config.value,
        "default": _default(config, owner),
        "source": config.source,
        "is_read_only": config.is_read_only,
        "is_sensitive": config.is_sensitive,
    }
