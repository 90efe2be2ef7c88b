"""The language of filters, parsed to a tree. Pure: no input can do more than raise FilterError.

    expression   all ("or" all)*
    all          one ("and" one)*
    one          "not" one | "(" expression ")" | field | field operator (field | literal)
    operator     == != < <= > >= contains matches
    field        (key | value | headers | partition | offset | timestamp | size) ("." name | "[" number or string "]")*
    literal      "text" | 'text' | 12 | -1.5 | true | false | null

`unparse` writes a tree as text that parses to the same tree.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

CHARACTERS_MAX: Final = 4_096
DEPTH_MAX: Final = 50
ROOTS: Final = ("key", "value", "headers", "partition", "offset", "timestamp", "size")
_NUMBERS: Final = frozenset({"partition", "offset", "timestamp", "size"})
OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "contains", "matches")
_WORDS: Final = {"true": True, "false": False, "null": None}
_RESERVED: Final = frozenset({"and", "or", "not", "contains", "matches", *_WORDS})
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[^\W\d][\w-]*)
      | (?P<symbol>==|!=|<=|>=|<|>|\(|\)|\.|\[|\])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", '"': '"', "'": "'", "\\": "\\"}
_INSTEAD: Final = {"=": "==", "&": "and", "|": "or", "!": "not", "~": "matches"}

Literal: TypeAlias = str | int | float | bool | None


class FilterError(ValueError):
    """The text is not a filter. `column` counts characters from 1."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(f"column {column}: {message}")
        self.column = column


@dataclass(frozen=True, slots=True)
class FieldPath:
    root: str
    path: tuple[str | int, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.root in _NUMBERS


@dataclass(frozen=True, slots=True)
class Constant:
    value: Literal
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    left: FieldPath
    operator: str
    right: FieldPath | Constant


@dataclass(frozen=True, slots=True)
class Present:
    """True unless the field is missing, null or false."""

    field: FieldPath


@dataclass(frozen=True, slots=True)
class Not:
    inner: "Expression"


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Expression", ...]


Expression: TypeAlias = Comparison | Present | Not | All | AnyOf


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def parse_filter(text: str) -> Expression:
    """Parse a filter. Raise FilterError, which names the column."""
    if len(text) > CHARACTERS_MAX:
        raise FilterError(CHARACTERS_MAX, f"a filter has at most {CHARACTERS_MAX} characters")
    parser = _Parser(_tokens(text))
    expression = parser.expression(0)
    parser.expect_end()
    return expression


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise FilterError(at + 1, _unreadable(text[at]))
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], at + 1))
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


def _unreadable(character: str) -> str:
    if character in "\"'":
        return "the quote is never closed"
    instead = _INSTEAD.get(character)
    return f"unexpected {character!r}" + (f"; write {instead}" if instead else "")


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        """Return the next token if it is one of these words or symbols."""
        token = self._next
        if token.kind not in {"name", "symbol"} or token.text not in texts:
            return None
        self._at += 1
        return token

    def expect_end(self) -> None:
        if self._next.kind != "end":
            expected = "an operator, and, or" if self._next.kind in {"text", "number"} else "and, or"
            raise FilterError(self._next.column, f"expected {expected} or the end instead of {self._next.shown}")

    def expression(self, depth: int) -> Expression:
        if depth > DEPTH_MAX:
            raise FilterError(self._next.column, f"more than {DEPTH_MAX} brackets and nots inside each other")
        parts = [self._all(depth)]
        while self._take("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self, depth: int) -> Expression:
        parts = [self._one(depth)]
        while self._take("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _one(self, depth: int) -> Expression:
        if depth > DEPTH_MAX:
            raise FilterError(self._next.column, f"more than {DEPTH_MAX} brackets and nots inside each other")
        if self._take("not"):
            return Not(self._one(depth + 1))
        if self._take("("):
            inner = self.expression(depth + 1)
            if not self._take(")"):
                raise FilterError(self._next.column, f"expected ) instead of {self._next.shown}")
            return inner
        left = self._field()
        operator = self._take(*OPERATORS)
        if operator is None:
            return Present(left)
        return Comparison(left, operator.text, self._operand(operator))

    def _operand(self, operator: _Token) -> FieldPath | Constant:
        token = self._next
        if token.kind == "name" and token.text not in _WORDS:
            right: FieldPath | Constant = self._field()
        else:
            right = self._constant(operator)
        is_text = isinstance(right, Constant) and isinstance(right.value, str)
        if operator.text == "matches" and not is_text:
            raise FilterError(token.column, "matches needs a regular expression in quotes")
        return right

    def _constant(self, operator: _Token) -> Constant:
        token = self._next
        self._at += 1
        match token.kind:
            case "text":
                return Constant(_unquoted(token), token.column)
            case "number":
                return Constant(_number(token), token.column)
            case "name" if token.text in _WORDS:
                return Constant(_WORDS[token.text], token.column)
        raise FilterError(token.column, f"expected a value or a field after {operator.text} instead of {token.shown}")

    def _field(self) -> FieldPath:
        token = self._next
        if token.kind != "name" or token.text not in ROOTS:
            raise FilterError(token.column, f"expected a field ({', '.join(ROOTS)}) instead of {token.shown}")
        self._at += 1
        path: list[str | int] = []
        while opening := self._take(".", "["):
            path.append(self._name() if opening.text == "." else self._index())
        if token.text in _NUMBERS and path:
            raise FilterError(token.column, f"{token.text} is a number and has no fields")
        if token.text == "headers" and not (path and isinstance(path[0], str)):
            raise FilterError(token.column, 'headers needs the name of one: headers.trace or headers["trace"]')
        return FieldPath(token.text, tuple(path))

    def _name(self) -> str:
        token = self._next
        if token.kind != "name":
            raise FilterError(token.column, f"expected the name of a field after . instead of {token.shown}")
        self._at += 1
        return token.text

    def _index(self) -> str | int:
        token = self._next
        self._at += 1
        if token.kind == "text":
            step: str | int = _unquoted(token)
        elif token.kind == "number" and token.text.isdecimal() and len(token.text) < 10:
            step = int(token.text)
        else:
            raise FilterError(token.column, f"expected a position or a name in quotes after [ instead of {token.shown}")
        if not self._take("]"):
            raise FilterError(self._next.column, f"expected ] instead of {self._next.shown}")
        return step


def _number(token: _Token) -> int | float:
    return int(token.text) if re.fullmatch(r"-?\d{1,30}", token.text) else float(token.text)


def _unquoted(token: _Token) -> str:
    def character(escape: re.Match[str]) -> str:
        code, letter = escape.groups()
        if code is None and letter not in _ESCAPES:
            raise FilterError(
                token.column + 1 + escape.start(), f"unknown escape \\{letter}; write \\\\ for a backslash"
            )
        return _ESCAPES[letter] if code is None else chr(int(code, 16))

    text = _ESCAPE.sub(character, token.text[1:-1])
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FilterError(token.column, "the text has half of a surrogate pair") from None
    return text


def unparse(expression: Expression) -> str:
    """Return the filter as text, with brackets around every part that needs them."""
    match expression:
        case Comparison(left, operator, right):
            shown = _field_text(right) if isinstance(right, FieldPath) else _constant_text(right.value)
            return f"{_field_text(left)} {operator} {shown}"
        case Present(inner):
            return _field_text(inner)
        case Not(inner):
            return f"not {_bracketed(inner)}"
        case All(parts):
            return " and ".join(_bracketed(part) for part in parts)
        case AnyOf(parts):
            return " or ".join(_bracketed(part) for part in parts)


def _bracketed(expression: Expression) -> str:
    text = unparse(expression)
    return f"({text})" if isinstance(expression, All | AnyOf) else text


def _constant_text(value: Literal) -> str:
    match value:
        case str():
            return _quoted(value)
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _field_text(shown: FieldPath) -> str:
    return shown.root + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if _is_plain(step) else f"[{_quoted(step)}]"
        for step in shown.path
    )


def _is_plain(name: str) -> bool:
    match = _TOKEN.fullmatch(name)
    return match is not None and match.lastgroup == "name"
