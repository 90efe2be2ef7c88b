"""Plain data as YAML: block style, with JSON's spelling for every scalar that is not a plain word."""

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_NOT_STRINGS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""Words that YAML 1.1 or 1.2 reads as something else."""


def yaml_text(value: Any) -> str:
    """Return the lines of a value that JSON can express."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _entry(f"{_scalar(str(key))}:", item)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _indented("- ", _lines(item))
    else:
        yield _scalar(value)


def _entry(key: str, item: Any) -> Iterator[str]:
    if isinstance(item, dict | list | tuple) and item:
        yield key
        yield from (f"  {line}" for line in _lines(item))
    else:
        yield f"{key} {_scalar(item)}"


def _indented(mark: str, lines: Iterator[str]) -> Iterator[str]:
    yield mark + next(lines)
    yield from (f"  {line}" for line in lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value.lower() not in _NOT_STRINGS else _quoted(value)
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))  # YAML 1.1 reads 1e+16 as a string
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
