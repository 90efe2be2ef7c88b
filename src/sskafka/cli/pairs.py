"""Options of the form `key=value`."""

from collections.abc import Sequence

from sskafka.cli.usage import UsageError


def key_values(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return `key=value` options as a dict."""
    values = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {pair!r} is not key=value")
        values[key.strip()] = value
    return values
