"""`sskafka token`: delegation tokens, with which programs log in as their owner for a limited time."""

import binascii
from base64 import b64decode
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    run_on_cluster,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.usage import UsageError
from sskafka.client.delegation_tokens import (
    DEFAULT_PERIOD,
    DelegationToken,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)

app = typer.Typer(
    help="Create, list, renew and expire delegation tokens.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

HmacOption = Annotated[str, typer.Option("--hmac", metavar="BASE64", help="HMAC of the token, which is its password.")]


@app.command()
def create(
    owner: Annotated[
        str, typer.Option("--owner-principal", help="Owner, if it is another user: needs an ACL with CreateTokens.")
    ] = "",
    renewers: Annotated[
        list[str] | None, typer.Option("--renewer-principal", help="User who may renew the token. Repeatable.")
    ] = None,
    max_life_ms: Annotated[
        int,
        typer.Option("--max-life-time-period", metavar="MS", help="Longest life; -1: the maximum."),
    ] = DEFAULT_PERIOD,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Create a delegation token, and print it with its HMAC."""

    token = run_on_cluster(
        bootstrap, properties, lambda cluster: create_token(cluster, owner, renewers or (), max_life_ms)
    )
    _print([token], output=output)


@app.command("list")
def list_command(
    owners: Annotated[
        list[str] | None, typer.Option("--owner-principal", help="Only tokens of this user. Repeatable.")
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the delegation tokens that this user may see, with their HMACs."""

    found = run_on_cluster(bootstrap, properties, lambda cluster: describe_tokens(cluster, owners or None))
    _print(found, output=output)


@app.command()
def renew(
    hmac: HmacOption,
    period_ms: Annotated[
        int, typer.Option("--renew-time-period", metavar="MS", help="Time from now; -1: the default.")
    ] = DEFAULT_PERIOD,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Renew a delegation token: it expires later, but never after its longest life."""
    key = _decoded(hmac)

    expiry_ms = run_on_cluster(bootstrap, properties, lambda cluster: renew_token(cluster, key, period_ms))
    talk(f"the token expires at {_text(expiry_ms)}")


@app.command()
def expire(
    hmac: HmacOption,
    period_ms: Annotated[
        int, typer.Option("--expiry-time-period", metavar="MS", help="Time from now; -1: at once.")
    ] = DEFAULT_PERIOD,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Expire a delegation token, at once or after some time."""
    key = _decoded(hmac)

    expiry_ms = run_on_cluster(bootstrap, properties, lambda cluster: expire_token(cluster, key, period_ms))
    talk("the token has expired" if expiry_ms < 0 else f"the token expires at {_text(expiry_ms)}")


def _decoded(hmac: str) -> bytes:
    try:
        return b64decode(hmac, validate=True)
    except (binascii.Error, ValueError):
        raise UsageError("--hmac is not base64") from None


def _print(tokens: list[DelegationToken], *, output: Format) -> None:
    if output.is_data:
        print_data(output, [_as_dict(token) for token in tokens])
        return
    columns = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "MAX")
    print_table(columns, [tuple(_row(token)) for token in tokens], if_empty="this user may see no tokens")


def _row(token: DelegationToken) -> tuple[str, ...]:
    renewers = ",".join(token.renewers) or "-"
    times = (_text(token.issue_ms), _text(token.expiry_ms), _text(token.max_ms))
    return (token.token_id, token.password, token.owner, token.requester, renewers, *times)


def _as_dict(token: DelegationToken) -> dict[str, Any]:
    return {**token._asdict(), "hmac": token.password}


def _text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
