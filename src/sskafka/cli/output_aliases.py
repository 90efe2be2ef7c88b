"""`--format text|json` and `--json`: earlier names of `--output`, which keep working and are not in the help."""

from typing import Annotated, Any

import typer
from typer.main import get_command

_EARLIER_NAMES = {"text": "table"}


def with_output_aliases(command: Any) -> Any:
    """Add the aliases to the command, or to the commands of a group, if they have --output."""
    for one in getattr(command, "commands", {}).values():
        with_output_aliases(one)
    if any("--output" in option.opts for option in command.params):
        command.params += _new_options()
    return command


def _use(context: typer.Context, output: str) -> None:
    context.default_map = {**(context.default_map or {}), "output": output}


def _read_format(context: typer.Context, output: str | None) -> None:
    if output is not None:
        _use(context, _EARLIER_NAMES.get(output, output))


def _read_json(context: typer.Context, is_json: bool) -> None:
    if is_json:
        _use(context, "json")


def _template(
    format_alias: Annotated[
        str | None,
        typer.Option("--format", callback=_read_format, is_eager=True, expose_value=False, hidden=True),
    ] = None,
    json_alias: Annotated[
        bool, typer.Option("--json", callback=_read_json, is_eager=True, expose_value=False, hidden=True)
    ] = False,
) -> None:
    """Exists for its options, which typer builds from the annotations."""


def _new_options() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_template)
    return [option for option in get_command(app).params if {"--format", "--json"} & set(option.opts)]
