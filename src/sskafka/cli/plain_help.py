"""Help and errors of options in our own words: whole summaries, a word instead of a Python type for the value of an
option, and no words of pydantic, which typer lets describe values that it cannot convert.
"""

import re
from typing import Any

_SENTENCE = re.compile(r".+?\.(?=\s|$)")
_NUMBER = re.compile(r"\b(int|float)\b")
_LIST = re.compile(r"^<list\[(.*)\]>$")
_MEANT = {
    "-o": "--output",
    "--port": "--set listeners=PLAINTEXT://HOST:PORT",
    "--dir": "--set log.dirs=DIRECTORY",
    "--to-earliest": "--to start",
    "--to-latest": "--to end",
    "--to-offset": "--to OFFSET",
    "--to-datetime": "--to @TIME",
    "--by-duration": "--to @TIME",
}
"""Options that commands do not have, with the option that is suggested instead if the command has that one."""

_WORDINGS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"Input should be a valid integer.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number.*"), "expected a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Input should be "), "expected "),
)


def with_plain_help(command: Any) -> Any:
    """Reword the help of the command, or of the commands of a group."""
    for one in getattr(command, "commands", {}).values():
        with_plain_help(one)
        one.short_help = one.short_help or _first_sentence(one.help or "")
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _nothing  # its name says what it is
        elif parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = _metavar(parameter)
    return command


def meant_by(option: str, command: Any) -> str:
    """Return what to use instead of an option that the command does not have, or nothing."""
    meant = _MEANT.get(option, "")
    known = {name for parameter in command.params for name in parameter.opts}
    return meant if meant.partition(" ")[0] in known else ""


def reworded(message: str) -> str:
    """Return the message of an invalid option in our own words."""
    for pattern, wording in _WORDINGS:
        message = pattern.sub(wording, message)
    return message


def _first_sentence(text: str) -> str:
    found = _SENTENCE.match(" ".join(text.split()))
    return found[0] if found else text


def _metavar(parameter: Any) -> str:
    """Return the choices, N for numbers, otherwise the last word of the option's name in capital letters."""
    label = str(parameter.display_type(None))
    if "|" in label:
        return _LIST.sub(r"<\1>", label)
    if _NUMBER.search(label):
        return "N"
    return str(max(parameter.opts, key=len)).rpartition("-")[2].upper()


def _nothing(ctx: Any) -> str:
    return ""
