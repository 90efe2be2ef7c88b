"""`sskafka quota`: limits of users, client ids and IP addresses."""

from collections.abc import Sequence
from typing import Annotated

import typer

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
from sskafka.cli.failures import CommandError
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.sizes import number_text
from sskafka.cli.usage import UsageError, key_values
from sskafka.client.client_quotas import alter_quotas, describe_quotas
from sskafka.metadata.client_quotas import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER
from sskafka.metadata.image import QuotaEntity

app = typer.Typer(
    help="List, set and remove quotas of users, client ids and IP addresses.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

UserOption = Annotated[str | None, typer.Option("--user", help="User, without `User:`.")]
UserDefaultsOption = Annotated[bool, typer.Option("--user-defaults", help="Users without a quota of their own.")]
ClientOption = Annotated[str | None, typer.Option("--client-id", "--client", help="Client id.")]
ClientDefaultsOption = Annotated[
    bool, typer.Option("--client-defaults", help="Client ids without a quota of their own.")
]
IpOption = Annotated[str | None, typer.Option("--ip", help="IP address.")]
IpDefaultsOption = Annotated[bool, typer.Option("--ip-defaults", help="Addresses without a quota of their own.")]


@app.command("list")
def list_command(
    user: UserOption = None,
    user_defaults: UserDefaultsOption = False,
    client_id: ClientOption = None,
    client_defaults: ClientDefaultsOption = False,
    ip: IpOption = None,
    ip_defaults: IpDefaultsOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the quotas, or those of a user, client id or IP address, also in combinations."""
    entity = _entity(user, user_defaults, client_id, client_defaults, ip, ip_defaults)

    found = run_on_cluster(bootstrap, properties, lambda cluster: describe_quotas(cluster, entity))
    if output.is_data:
        print_data(output, [{"entity": dict(one.entity), "limits": one.limits} for one in found])
        return
    rows = [(*_entity_cells(one.entity), key, number_text(limit)) for one in found for key, limit in one.limits.items()]
    print_table(("USER", "CLIENT-ID", "IP", "QUOTA", "LIMIT"), rows, if_empty="there are no such quotas")


@app.command("set")
def set_command(
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="QUOTA=LIMIT",
            help="producer_byte_rate, consumer_byte_rate (bytes a second), request_percentage, "
            "controller_mutation_rate; for IP addresses connection_creation_rate.",
        ),
    ],
    user: UserOption = None,
    user_defaults: UserDefaultsOption = False,
    client_id: ClientOption = None,
    client_defaults: ClientDefaultsOption = False,
    ip: IpOption = None,
    ip_defaults: IpDefaultsOption = False,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Set quotas of a user, a client id, both, or an IP address. Each broker applies them on its own."""
    entity = _required(_entity(user, user_defaults, client_id, client_defaults, ip, ip_defaults))
    wanted = {key: _number(key, text) for key, text in key_values(limits, "QUOTA=LIMIT").items()}

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            await alter_quotas(cluster, entity, wanted, validate_only=dry_run)

    run(work())
    changes = [f"{key}={number_text(limit)}" for key, limit in wanted.items()]
    _tell(entity, changes, "would be set" if dry_run else "set", output=output)


@app.command()
def remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="QUOTA", help="All its quotas if not given.")] = None,
    user: UserOption = None,
    user_defaults: UserDefaultsOption = False,
    client_id: ClientOption = None,
    client_defaults: ClientDefaultsOption = False,
    ip: IpOption = None,
    ip_defaults: IpDefaultsOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Remove quotas of exactly this user, client id, combination of both, or IP address."""
    entity = _required(_entity(user, user_defaults, client_id, client_defaults, ip, ip_defaults))

    async def work() -> list[str]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            found = [one.limits for one in await describe_quotas(cluster, entity) if one.entity == entity]
            known = list(found[0]) if found else []
            wanted = keys or known
            if not known or not set(wanted).issubset(known):
                missing = ", ".join(sorted(set(wanted).difference(known))) or "quota"
                raise CommandError(f"{_entity_text(entity)} has no {missing}", "`sskafka quota list` shows the quotas")
            if not dry_run:
                confirm(f"removes {', '.join(wanted)} of {_entity_text(entity)}", yes=yes)
            await alter_quotas(cluster, entity, dict.fromkeys(wanted), validate_only=dry_run)
            return wanted

    _tell(entity, run(work()), "would be removed" if dry_run else "removed", output=output)


def _entity(
    user: str | None,
    user_defaults: bool,
    client_id: str | None,
    client_defaults: bool,
    ip: str | None,
    ip_defaults: bool,
) -> QuotaEntity:
    entity: list[tuple[str, str | None]] = []
    for kind, name, is_default in (
        (CLIENT_ID, client_id, client_defaults),
        (IP, ip, ip_defaults),
        (USER, user, user_defaults),
    ):
        if name is not None and is_default:
            raise UsageError(f"give either a name or the defaults of {kind}, not both")
        if name is not None or is_default:
            entity.append((kind, name))
    return tuple(entity)


def _required(entity: QuotaEntity) -> QuotaEntity:
    if not entity:
        raise UsageError("name the entity of the quota: --user, --client-id, --ip or their defaults")
    return entity


def _number(key: str, text: str) -> float:
    if key not in CLIENT_KEYS and key not in IP_KEYS:
        raise UsageError(f"{key!r} is not one of {', '.join((*CLIENT_KEYS, *IP_KEYS))}")
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{key}={text!r} is not a number") from None


def _entity_cells(entity: QuotaEntity) -> tuple[str | None, str | None, str | None]:
    names = {kind: "<default>" if name is None else name for kind, name in entity}
    return names.get(USER), names.get(CLIENT_ID), names.get(IP)


def _entity_text(entity: QuotaEntity) -> str:
    return " and ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in reversed(entity))


def _tell(entity: QuotaEntity, changes: Sequence[str], done: str, *, output: Format) -> None:
    if output.is_data:
        print_data(output, {"entity": dict(entity), "quotas": list(changes), "change": done})
    else:
        talk(f"{_entity_text(entity)}: {', '.join(changes)} {done}")
