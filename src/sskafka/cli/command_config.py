"""`--command-config FILE`: client properties from a file, as Kafka's tools take them.

Every command that has `-X` has this option, too. Properties of `-X` override those of the file. `bootstrap.servers` of
the file is the default of `--bootstrap-server`.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from sskafka.model.properties import PropertiesError, parse_properties

FROM_FILE = "sskafka.command_config"
"""Key under which the context of a command has the `key=value` pairs of the file."""


def with_command_config(command: Any) -> Any:
    """Add the option to the command, or to the commands of a group, if they have -X."""
    for one in getattr(command, "commands", {}).values():
        with_command_config(one)
    if any("-X" in option.opts for option in command.params):
        command.params.append(_new_option())
    return command


def pairs_of_file(context: typer.Context, pairs: list[str] | None) -> list[str]:
    """Return the pairs of the file, followed by those of -X."""
    return [*context.meta.get(FROM_FILE, ()), *(pairs or ())]


def _read(context: typer.Context, file: Path | None) -> None:
    if file is None:
        return
    try:
        properties = parse_properties(file.read_text())
    except (OSError, PropertiesError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise typer.BadParameter(f"{file}: {reason}", param_hint="--command-config") from None
    bootstrap = properties.pop("bootstrap.servers", None)
    if bootstrap is not None:
        context.default_map = {**(context.default_map or {}), "bootstrap": bootstrap}
    context.meta[FROM_FILE] = [f"{key}={properties[key]}" for key in _known(properties, file)]


def _known(properties: dict[str, str], file: Path) -> list[str]:
    """Return the keys that this client has; report the others, which other clients may have, on stderr."""
    from sskafka.client.config import unknown_properties  # noqa: PLC0415  not for --help

    unknown = unknown_properties(properties)
    if unknown:
        print(f"{file}: ignored, because this client does not have them: {', '.join(unknown)}", file=sys.stderr)
    return [key for key in properties if key not in unknown]


def _template(
    command_config_file: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            callback=_read,
            is_eager=True,
            expose_value=False,
            help="File with client properties; -X overrides them.",
        ),
    ] = None,
) -> None:
    """Exists for its option, which typer builds from the annotation."""


def _new_option() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(_template)
    return next(option for option in get_command(app).params if "--command-config" in option.opts)
