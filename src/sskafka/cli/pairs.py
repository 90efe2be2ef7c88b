"""Options of the form `key=value`."""

from collections.abc import Sequence

import typer


def key_values(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """`key=value` options as a dict."""
    values = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not key=value", param_hint=option)
        values[key.strip()] = value
    return values
