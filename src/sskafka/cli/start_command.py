"""`sskafka start` on the command line."""

from typing import Annotated

import typer

from sskafka.cli.host.count import host_broker_count
from sskafka.cli.options import BrokersPerHostOption, FileArgument, SetOption
from sskafka.cli.start import run_broker
from sskafka.cli.usage import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def start(
    file: FileArgument = None,
    overrides: SetOption = None,
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[
        str | None, typer.Option("--log-format", help="text or json; the default is the setting log.format.")
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="TLS, SASL and ACLs for a single node, with a user `admin`.")
    ] = False,
    brokers_per_host: BrokersPerHostOption = None,
    inherit: Annotated[list[str] | None, typer.Option("--inherit", metavar="LISTENER=FD", hidden=True)] = None,
) -> None:
    """Run one broker in the foreground, or with --brokers-per-host several, one for each core."""
    if log_format is not None:
        overrides = [*(overrides or []), f"log.format={log_format}"]
    if brokers_per_host is None:
        raise typer.Exit(run_broker(file, overrides or [], log_level, inherit or [], secure=secure))
    if secure:
        raise UsageError("--secure is for one broker; use cluster up --secure --brokers-per-host")
    from sskafka.cli.host.supervisor import run_brokers  # noqa: PLC0415  not for a single broker

    raise typer.Exit(run_brokers(file, overrides or [], log_level, host_broker_count(brokers_per_host)))
