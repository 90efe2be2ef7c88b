"""`sskafka storage`: Kafka's storage tool. Unformatted directories are also formatted at the first start."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sskafka.cli.broker_settings import load_settings
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption, SetOption
from sskafka.cli.output import Format, print_data, talk
from sskafka.metadata.features import LATEST_METADATA_VERSION, parse_metadata_version
from sskafka.metadata.records import UserScramCredentialRecord
from sskafka.metadata.scram_bootstrap import ScramArgumentError, parse_scram_argument
from sskafka.model.ids import uuid_text
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import StorageInfo, format_storage, random_uuid, storage_info
from sskafka.runtime.clock import SystemClock
from sskafka.storage.disk import OsDisk
from sskafka.storage.meta_properties import MetaProperties

app = typer.Typer(
    help="Generate cluster ids and format log directories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="PROPERTIES", help="The node's server.properties.")
]


@app.command("random-uuid")
def random_uuid_(output: FormatOption = Format.TABLE) -> None:
    """Print an id for a new cluster."""
    cluster_id = uuid_text(random_uuid(os.urandom))
    if output.is_data:
        print_data(output, {"cluster.id": cluster_id})
    else:
        print(cluster_id)


@app.command("format")
def format_(
    config: ConfigOption = None,
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", "-t", help="Id of the cluster; derived from the voters if not given."),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Leave formatted directories alone.")
    ] = False,
    release_version: Annotated[
        str | None, typer.Option("--release-version", "-r", help="Start with this release's features, e.g. 4.0.")
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            metavar="CREDENTIAL",
            help="A user of the new cluster: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'. May be repeated.",
        ),
    ] = None,
    standalone: Annotated[bool, typer.Option("--standalone", "-s", hidden=True)] = False,
    overrides: SetOption = None,
) -> None:
    """Format the log directories of a node."""
    report = format_storage(
        OsDisk(),
        _settings(config, overrides),
        os.urandom,
        SystemClock().now_ms(),
        cluster_id=cluster_id,
        metadata_version=_release(release_version),
        ignore_formatted=ignore_formatted,
        first_records=[_scram(text) for text in add_scram or ()],
    )
    for directory in report.formatted:
        talk(f"Formatting {directory} with metadata.version {report.metadata_version}.")
    if not report.formatted:
        talk("All of the log directories are already formatted.")
    print(report.cluster_id)


def _settings(config: Path | None, overrides: list[str] | None) -> Settings:
    settings = load_settings(config, overrides)
    for warning in settings.warnings:
        talk(f"warning: {warning}")
    return settings


def _scram(text: str) -> UserScramCredentialRecord:
    try:
        return parse_scram_argument(text, os.urandom)
    except ScramArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="--add-scram") from error


def _release(text: str | None) -> int:
    if text is None:
        return LATEST_METADATA_VERSION
    try:
        return parse_metadata_version(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--release-version") from error


@app.command()
def info(config: ConfigOption = None, overrides: SetOption = None, output: FormatOption = Format.TABLE) -> None:
    """Show the state of a node's log directories. The exit code is 1 if something is wrong with them."""
    found = storage_info(OsDisk(), _settings(config, overrides))
    if output.is_data:
        print_data(output, _as_json(found))
    else:
        _print(found)
    if found.problems:
        raise CommandError("the log directories cannot be used as they are", "solve the problems listed above")
    if found.unformatted:
        raise CommandError(
            "not every log directory is formatted", "`sskafka storage format`, or simply `sskafka start`"
        )


def _print(found: StorageInfo) -> None:
    for directory, meta in found.found.items():
        print(f"{directory}: {_words(meta)}")
    for directory in found.unformatted:
        print(f"{directory}: not formatted")
    for problem in found.problems:
        print(f"problem: {problem}")


def _words(meta: MetaProperties) -> str:
    return " ".join(f"{key}={value}" for key, value in _meta_json(meta).items() if value is not None)


def _as_json(found: StorageInfo) -> dict[str, Any]:
    return {
        "directories": {directory: _meta_json(meta) for directory, meta in found.found.items()},
        "unformatted": found.unformatted,
        "problems": found.problems,
    }


def _meta_json(meta: MetaProperties) -> dict[str, Any]:
    directory_id = None if meta.directory_id is None else uuid_text(meta.directory_id)
    return {"cluster.id": meta.cluster_id, "node.id": meta.node_id, "directory.id": directory_id}
