"""Print data: aligned columns for people, JSON and YAML for programs. Data goes to stdout, messages to stderr."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    """One JSON value a line for each element of a list."""
    YAML = "yaml"

    @property
    def is_data(self) -> bool:
        """Whether programs read the output."""
        return self is not Format.TABLE


def print_data(output: Format, value: Any) -> None:
    """Print a value for programs."""
    items = value if output is Format.JSONL and isinstance(value, list | tuple) else [value]
    for item in items:
        print(_yaml(item) if output is Format.YAML else json.dumps(item, ensure_ascii=False))


def print_item(output: Format, value: Any) -> None:
    """Print one of many values as soon as it is known: a line of JSON, or an element of a YAML list."""
    print_data(output, [value] if output in {Format.YAML, Format.JSONL} else value)


def _yaml(value: Any) -> str:
    from sskafka.cli.yaml_text import yaml_text  # noqa: PLC0415  rarely needed

    return yaml_text(value).removesuffix("\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, if_empty: str = "") -> None:
    """Print columns separated by two spaces. The last column is not padded, so lines have no trailing spaces.

    If there are no rows, `if_empty` says so on stderr."""
    lines = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [headers, *lines]) for column in range(len(headers))]
    print(_emphasized(_aligned(headers, widths)))
    for line in lines:
        print(_aligned(line, widths))
    if if_empty and not lines:
        talk(if_empty)


def print_heading(text: str) -> None:
    print(_emphasized(text))


def talk(text: str) -> None:
    print(text, file=sys.stderr)


def uses_color() -> bool:
    """Return whether to use color. A non-empty NO_COLOR turns it off."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _emphasized(text: str) -> str:
    return f"{_BOLD}{text}{_PLAIN}" if uses_color() else text


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return "[" + " ".join(str(item) for item in value) + "]"
    return str(value)
