"""What a misspelled name was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or an empty string if none is near."""
    nearest = get_close_matches(name, list(known), 1)
    return f"did you mean {nearest[0]}?" if nearest else ""


def did_you_mean_setting(names: Iterable[str], known: Iterable[str]) -> str:
    """Return a hint for the first of the names that no setting has."""
    every = list(known)
    return next((did_you_mean(name, every) for name in names if name not in every), "")
