r"""Java's .properties text: reading and writing.

    key=value   key: value   key value      the first unescaped '=', ':' or blank ends the key
    # comment   ! comment                   only at the beginning of a line
    long \                                  an odd number of backslashes at the end continues the line;
        value                               blanks that lead the next line are dropped
    \t \n \r \f \uXXXX \x                   escapes; a backslash before anything else stands for that character

A key that occurs again replaces the earlier one.
"""

import re
from collections.abc import Iterator, Mapping

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)", re.DOTALL)
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_SPECIAL = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


class PropertiesError(ValueError):
    pass


def parse_properties(text: str) -> dict[str, str]:
    return dict(_entry(line) for line in _logical_lines(text))


def format_properties(properties: Mapping[str, str], comment: str = "") -> str:
    """Return the comment, followed by a `key=value` line for each entry in the order of the mapping."""
    lines = [f"#{line}" for line in comment.splitlines()]
    lines += [f"{_escape_key(key)}={_escape_value(value)}" for key, value in properties.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    continued: list[str] = []
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(_BLANKS)
        if not continued and (not line or line[0] in "#!"):
            continue
        if _ends_in_odd_backslashes(line):
            continued.append(line[:-1])
            continue
        yield "".join([*continued, line])
        continued = []
    if any(continued):
        yield "".join(continued)


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(line: str) -> tuple[str, str]:
    key = _KEY.match(line)
    assert key is not None, "the pattern matches the empty text too"
    separator = _SEPARATOR.match(line, key.end())
    assert separator is not None, "the pattern matches the empty text too"
    return _unescape(key.group()), _unescape(line[separator.end() :])


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = _ESCAPE.sub(_escaped_character, text)
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins \\u pairs beyond 16 bits


def _escaped_character(match: re.Match[str]) -> str:
    code, character = match.groups()
    if code is not None:
        return chr(int(code, 16))
    if character == "u":
        raise PropertiesError(f"a \\u escape needs four hexadecimal digits: {match.string!r}")
    return _ESCAPES.get(character, character) if character else ""


def _escape_key(key: str) -> str:
    escaped = "".join(_SPECIAL.get(character, character) for character in key)
    return re.sub(r"([=: #!])", r"\\\1", escaped)


def _escape_value(value: str) -> str:
    escaped = "".join(_SPECIAL.get(character, character) for character in value)
    return "\\" + escaped if escaped.startswith(" ") else escaped
