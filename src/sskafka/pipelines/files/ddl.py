"""Schemas in Spark's DDL (`user string not null, at timestamp, tags array<string>`), checked without Spark.

Names, types, nesting and NOT NULL are checked, to report mistakes early. Spark parses the result again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

SIMPLE_TYPES = (
    "bigint", "binary", "boolean", "byte", "date", "decimal", "double", "float", "int", "integer", "long", "short",
    "smallint", "string", "timestamp", "timestamp_ntz", "tinyint", "variant",
)  # fmt: skip
_TOKEN = re.compile(r"\s*(?:(`[^`]+`)|([A-Za-z_][\w]*)|(\d+)|([<>(),:]))")


class SchemaError(ValueError):
    """The schema is not valid in Spark; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    is_required: bool

    def __str__(self) -> str:
        return f"`{self.name}` {self.type}"


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.is_required)

    def ddl(self) -> str:
        return ", ".join(map(str, self.columns))


def parse_ddl(text: str) -> Schema:
    tokens = _Tokens(text)
    schema = _columns(tokens)
    tokens.expect_end()
    return schema


def parse_column(name: str, text: str) -> Column:
    """Return the column of a schema that is written as a mapping of names to types."""
    tokens = _Tokens(text)
    column = Column(name, _type(tokens), _not_null(tokens))
    tokens.expect_end()
    return column


def checked(columns: list[Column]) -> Schema:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise SchemaError(f"the column {column.name} occurs twice")
        seen.add(column.name.lower())
    return Schema(tuple(columns))


def _columns(tokens: "_Tokens", *, in_struct: bool = False) -> Schema:
    columns = [_column(tokens, in_struct=in_struct)]
    while tokens.take_if(","):
        columns.append(_column(tokens, in_struct=in_struct))
    return checked(columns)


def _column(tokens: "_Tokens", *, in_struct: bool) -> Column:
    name = tokens.take("a column name").strip("`")
    if in_struct:
        tokens.take_if(":")
    return Column(name, _type(tokens), _not_null(tokens))


def _not_null(tokens: "_Tokens") -> bool:
    if not tokens.take_if("not"):
        return False
    if not tokens.take_if("null"):
        raise SchemaError("after NOT only NULL can follow")
    return True


def _type(tokens: "_Tokens") -> str:
    name = tokens.take("a type").lower()
    if name == "decimal":
        return f"decimal{_precision(tokens)}"
    if name not in {"array", "map", "struct"}:
        return _simple(name)
    tokens.expect("<")
    if name == "struct":
        inner = ", ".join(f"`{column.name}`: {column.type}" for column in _columns(tokens, in_struct=True).columns)
    else:
        inner = _type(tokens)
    if name == "map":
        tokens.expect(",")
        inner = f"{inner},{_type(tokens)}"
    tokens.expect(">")
    return f"{name}<{inner}>"


def _precision(tokens: "_Tokens") -> str:
    if not tokens.take_if("("):
        return ""
    digits = tokens.take("a number of digits")
    scale = tokens.take("a scale") if tokens.take_if(",") else "0"
    tokens.expect(")")
    return f"({digits},{scale})"


def _simple(name: str) -> str:
    if name in SIMPLE_TYPES:
        return name
    usual = {"str": "string", "text": "string", "bool": "boolean", "datetime": "timestamp", "number": "double"}
    near = usual.get(name) or next(iter(get_close_matches(name, SIMPLE_TYPES, n=1)), "")
    hint = f"did you mean {near}?" if near else f"types are {', '.join(SIMPLE_TYPES)}, array<>, map<> and struct<>"
    raise SchemaError(f"there is no type {name!r}; {hint}")


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self, what: str) -> str:
        token = self._peek()
        if token is None or token in "<>(),:":
            raise SchemaError(f"{what} is missing {'at the end' if token is None else f'before {token!r}'}")
        self._at += 1
        return token

    def take_if(self, wanted: str) -> bool:
        token = self._peek()
        if token is None or token.lower() != wanted:
            return False
        self._at += 1
        return True

    def expect(self, wanted: str) -> None:
        if not self.take_if(wanted):
            found = self._peek()
            raise SchemaError(f"{wanted!r} is missing {'at the end' if found is None else f'before {found!r}'}")

    def expect_end(self) -> None:
        if self._peek() is not None:
            raise SchemaError(f"{self._peek()!r} is not expected; columns are separated by commas")


def _tokens(text: str) -> Iterator[str]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise SchemaError(f"{text[position:].strip()[:20]!r} is not valid in a schema")
        yield next(group for group in found.groups() if group is not None)
        position = found.end()
