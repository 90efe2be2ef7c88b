"""Find the name that a misspelled one was probably meant to be."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from sskafka.cli.failures import CommandError


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or an empty string if none is near."""
    nearest = get_close_matches(name, list(known), 1)
    return f"did you mean {nearest[0]}?" if nearest else ""


def did_you_mean_setting(names: Iterable[str], known: Iterable[str]) -> str:
    """Return a hint for the first of the names that no setting has."""
    every = list(known)
    return next((did_you_mean(name, every) for name in names if name not in every), "")


def check_settings(names: Iterable[str], known: Collection[str]) -> None:
    """Raise CommandError for a name that is almost that of a setting.

    Brokers accept the removal of settings that do not exist, so a misspelled name would look like a success. Names that
    resemble nothing may be settings of newer brokers."""
    for name in names:
        if name not in known and (meant := did_you_mean(name, known)):
            raise CommandError(f"there is no setting {name!r}", meant)
