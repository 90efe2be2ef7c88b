"""`sskafka cert`: a private certificate authority, and certificates of nodes and users."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.options import DryRunOption, FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.usage import UsageError
from sskafka.runtime.tls.authority import (
    CA_CERTIFICATE,
    CA_DAYS,
    CA_KEY,
    LEAF_DAYS,
    CertificateAuthority,
    CertificateSummary,
    read_certificates,
    write_private,
)

app = typer.Typer(
    help="Make and show certificates for TLS.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

DirectoryOption = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory of the authority's files.")]
DaysOption = Annotated[int, typer.Option("--days", min=1, max=36500, help="Days until the certificate expires.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
DEFAULT_DIRECTORY = Path("sskafka-certs")


@app.command()
def ca(
    name: Annotated[str, typer.Option("--name", help="Common name of the authority.")] = "SSKafka CA",
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    days: DaysOption = CA_DAYS,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Make a certificate authority: ca.pem, which nodes and clients trust, and ca-key.pem, which must stay secret."""
    paths = [directory / CA_CERTIFICATE, directory / CA_KEY]
    _refuse_existing(paths, force)
    if not dry_run:
        CertificateAuthority.create(name, datetime.now(UTC), days).save(directory)
    _tell(paths, dry_run, output=output)


@app.command()
def node(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Common name, and name of the file.")],
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="HOST", help="Host name or IP address that clients use. Repeatable."),
    ] = None,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    days: DaysOption = LEAF_DAYS,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Make the key and certificate of a node, for ssl.keystore.location."""
    chosen = hosts or [name, "localhost", "127.0.0.1"]
    _issue(
        _file_of(directory, name),
        lambda authority: authority.issue_node(name, chosen, datetime.now(UTC), days),
        force=force,
        dry_run=dry_run,
        output=output,
    )


@app.command()
def user(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The principal is User:CN=NAME.")],
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    days: DaysOption = LEAF_DAYS,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Make the key and certificate of a user, for listeners with ssl.client.auth=required."""
    _issue(
        _file_of(directory, name),
        lambda authority: authority.issue_user(name, datetime.now(UTC), days),
        force=force,
        dry_run=dry_run,
        output=output,
    )


@app.command()
def show(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="PEM files.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the certificates of PEM files. The exit code is 1 if one has expired or is not valid yet."""
    now = datetime.now(UTC)
    found = [(path, summary) for path in files for summary in _read(path)]
    shown = [_shown(path, summary, now) for path, summary in found]
    if output.is_data:
        print_data(output, shown)
    else:
        headers = ("FILE", "SUBJECT", "ISSUER", "NAMES", "EXPIRES", "DAYS-LEFT", "KEY")
        rows = [
            (one["file"], one["subject"], one["issuer"], one["names"], one["not_after"], one["days_left"], one["key"])
            for one in shown
        ]
        print_table(headers, rows)
    if not all(summary.not_before <= now < summary.not_after for _, summary in found):
        raise typer.Exit(1)


def _file_of(directory: Path, name: str) -> Path:
    path = directory / f"{name}.pem"
    if not name or path.parent != directory or path.name in {CA_CERTIFICATE, CA_KEY}:
        raise UsageError(f"{name!r} cannot be the name of a certificate's file")
    return path


def _issue(
    path: Path, make: Callable[[CertificateAuthority], bytes], *, force: bool, dry_run: bool, output: Format
) -> None:
    _refuse_existing([path], force)
    try:
        authority = CertificateAuthority.load(path.parent)
    except FileNotFoundError as error:
        hint = f"`sskafka cert ca --dir {path.parent}` makes a certificate authority"
        raise CommandError(f"{error.filename} does not exist", hint) from None
    except ValueError as error:
        raise CommandError(f"the certificate authority in {path.parent} cannot be read: {error}") from None
    if not dry_run:
        write_private(path, make(authority))
    _tell([path], dry_run, output=output)


def _refuse_existing(paths: list[Path], force: bool) -> None:
    for path in paths:
        if path.exists() and not force:
            raise CommandError(f"{path} exists", "--force replaces it")


def _read(path: Path) -> list[CertificateSummary]:
    try:
        return read_certificates(path)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _shown(path: Path, summary: CertificateSummary, now: datetime) -> dict[str, Any]:
    return {
        "file": str(path),
        "subject": summary.subject,
        "issuer": summary.issuer,
        "names": list(summary.names),
        "not_before": summary.not_before.isoformat(),
        "not_after": summary.not_after.isoformat(),
        "days_left": (summary.not_after - now).days,
        "is_ca": summary.is_ca,
        "key": "yes" if summary.has_key else "no",
    }


def _tell(paths: list[Path], dry_run: bool, *, output: Format) -> None:
    done = "would be written" if dry_run else "written"
    if output.is_data:
        print_data(output, [{"file": str(path), "change": done} for path in paths])
        return
    for path in paths:
        talk(f"{path} {done}")
