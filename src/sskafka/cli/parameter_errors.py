"""Errors of options and arguments in our own words: typer lets pydantic describe values that it cannot convert."""

import re

_WORDINGS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"Input should be a valid integer.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number.*"), "expected a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Input should be "), "expected "),
)


def reworded(message: str) -> str:
    for pattern, wording in _WORDINGS:
        message = pattern.sub(wording, message)
    return message
