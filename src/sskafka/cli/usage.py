"""Usage errors that typer does not detect, and options of the form `key=value`. Does not import typer."""

from collections.abc import Sequence


class UsageError(Exception):
    """A usage error that typer does not detect. Ends a command with exit code 2."""


def key_values(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return `key=value` options as a dict."""
    values = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {pair!r} is not key=value")
        values[key.strip()] = value
    return values
