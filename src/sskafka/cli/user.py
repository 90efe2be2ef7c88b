"""`sskafka user`: users of the cluster, which are SCRAM credentials in the metadata log."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
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
from sskafka.cli.usage import UsageError
from sskafka.client.cluster import Cluster
from sskafka.client.scram_users import (
    ITERATIONS,
    describe_users,
    remove_credentials,
    set_password,
)
from sskafka.model.security.scram import SCRAM_MECHANISMS

app = typer.Typer(
    help="List, add and remove users (SCRAM credentials); set passwords.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class Mechanism(StrEnum):
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


UserArgument = Annotated[str, typer.Argument(metavar="USER", help="Name of the user, without `User:`.")]
MechanismsOption = Annotated[
    list[Mechanism] | None,
    typer.Option("--mechanism", case_sensitive=False, help="Only for this mechanism; both if not given. Repeatable."),
]
PasswordOption = Annotated[
    str | None,
    typer.Option("--password", help="Password, which other users of the machine can see; prefer the prompt or a file."),
]
PasswordFileOption = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="File whose first line is the password; - for stdin."),
]
IterationsOption = Annotated[int, typer.Option("--iterations", min=4096, max=16384, help="Iterations of PBKDF2.")]


@app.command("list")
def list_command(
    users: Annotated[list[str] | None, typer.Argument(metavar="USER", help="All users if not given.")] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List users with the mechanisms for which they have a password."""

    found = run_on_cluster(bootstrap, properties, lambda cluster: describe_users(cluster, users or ()))
    if output.is_data:
        print_data(output, [credential._asdict() for credential in found])
    else:
        print_table(("USER", "MECHANISM", "ITERATIONS"), found, if_empty="there are no users")


@app.command()
def add(
    user: UserArgument,
    password: PasswordOption = None,
    password_file: PasswordFileOption = None,
    mechanisms: MechanismsOption = None,
    iterations: IterationsOption = ITERATIONS,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Add a user, or another mechanism to a user."""
    secret = None if dry_run and password_file is None else read_password(password, password_file)
    wanted = [str(mechanism) for mechanism in mechanisms or ()] or list(SCRAM_MECHANISMS)

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            known = {credential.mechanism for credential in await describe_users(cluster, [user])}
            if exists := sorted(known.intersection(wanted)):
                hint = f"`sskafka user set-password {user}` changes the password"
                raise CommandError(f"user {user!r} exists with {', '.join(exists)}", hint)
            if secret is not None and not dry_run:
                await set_password(cluster, user, secret, wanted, iterations=iterations)

    run(work())
    _tell(user, wanted, "would be added" if dry_run else "added", output=output)


@app.command("set-password")
def set_password_command(
    user: UserArgument,
    password: PasswordOption = None,
    password_file: PasswordFileOption = None,
    mechanisms: MechanismsOption = None,
    iterations: IterationsOption = ITERATIONS,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Change the password of a user, for the mechanisms that the user has. Open connections stay open."""
    secret = None if dry_run and password_file is None else read_password(password, password_file)

    async def work() -> list[str]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            wanted = await _known_mechanisms(cluster, user, mechanisms)
            if secret is not None and not dry_run:
                await set_password(cluster, user, secret, wanted, iterations=iterations)
            return wanted

    done = "password would be set" if dry_run else "password set"
    _tell(user, run(work()), done, output=output)


@app.command()
def remove(
    user: UserArgument,
    mechanisms: MechanismsOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Remove a user, or one mechanism of a user. ACLs and quotas of the user stay."""

    async def work() -> list[str]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            wanted = await _known_mechanisms(cluster, user, mechanisms)
            if not dry_run:
                confirm(f"removes {', '.join(wanted)} of user {user}", yes=yes)
                await remove_credentials(cluster, user, wanted)
            return wanted

    done = "would be removed" if dry_run else "removed"
    _tell(user, run(work()), done, output=output)


async def _known_mechanisms(cluster: Cluster, user: str, mechanisms: Sequence[Mechanism] | None) -> list[str]:
    """Return the mechanisms of the user, or the named ones. Raise CommandError if the user does not have one."""
    known = [credential.mechanism for credential in await describe_users(cluster, [user])]
    wanted = [str(mechanism) for mechanism in mechanisms or ()] or known
    missing = [mechanism for mechanism in wanted if mechanism not in known]
    if missing or not known:
        what = f" with {', '.join(missing)}" if missing and known else ""
        raise CommandError(f"there is no user {user!r}{what}", "`sskafka user list` shows the users")
    return wanted


def read_password(password: str | None, file: Path | None) -> str:
    """Return the password from the option or the file, or ask for it twice on the terminal."""
    if password is not None and file is not None:
        raise UsageError("give either --password or --password-file")
    if file is not None:
        text = sys.stdin.readline() if str(file) == "-" else file.read_text().partition("\n")[0]
        password = text.rstrip("\r\n")
    elif password is None:
        if not sys.stdin.isatty():
            raise UsageError("no password: give --password-file FILE (- for stdin), or run the command in a terminal")
        password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    if not password:
        raise UsageError("the password is empty")
    return password


def _tell(user: str, mechanisms: Sequence[str], done: str, *, output: Format) -> None:
    if output.is_data:
        print_data(output, [{"user": user, "mechanism": mechanism, "change": done} for mechanism in mechanisms])
    else:
        talk(f"user {user}: {done} ({', '.join(mechanisms)})")
