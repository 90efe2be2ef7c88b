"""Evaluate filters on records. Pure; a filter is compiled once and called for each record.

A field that is missing is null. `<`, `<=`, `>` and `>=` compare numbers with numbers and texts with texts and are false
for everything else; so is `contains`, which looks for a part of a text or for an element of a list. `matches` looks for
an RE2 expression anywhere in a text; of a very long text it sees the beginning (WORK_MAX). The whole key, value or
header is a text where it is compared with a text, and JSON (or Avro or Protobuf) otherwise. Timestamps are milliseconds
and may be compared with times, such as "2024-05-01T12:00:00Z".
"""

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias, assert_never

from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import parse_time
from sskafka.model.pattern import InvalidPatternError, Pattern
from sskafka.servers.http.browsing.filter_syntax import (
    All,
    AnyOf,
    Comparison,
    Constant,
    Expression,
    FieldPath,
    FilterError,
    Not,
    Present,
    parse_filter,
)

PATTERN_SIZE_MAX = 1_000
"""Instructions of all expressions of a filter."""
WORK_MAX = 8_000_000
"""Instructions times bytes of text, for all expressions and one record: they take up to 40 ms, uninterrupted. An
expression of 20 instructions, such as `order-[0-9]+ failed`, sees 400 KB of each text, the largest ones see 8 KB."""
JSON_BYTES_MAX = 1 << 20
"""Larger keys and values are text: parsing a megabyte takes up to 50 ms, and a compressed record may have 32 MB."""

Decode: TypeAlias = Callable[[bytes], Any]
"""Bytes of a key or value to its fields; raises ValueError for others."""
Predicate: TypeAlias = Callable[["FilteredRecord"], bool]


def json_value(data: bytes) -> Any:
    """Parse JSON. Raise ValueError for everything else, and for more than JSON_BYTES_MAX."""
    if len(data) > JSON_BYTES_MAX:
        raise ValueError(f"more than {JSON_BYTES_MAX >> 20} MiB")
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class FilteredRecord:
    """The fields of one record, decoded when a filter first asks for them."""

    def __init__(
        self, record: ConsumedRecord, decode_key: Decode = json_value, decode_value: Decode = json_value
    ) -> None:
        self.record = record
        self.is_cut = False
        """Whether an expression has seen only the beginning of a text."""
        self._decode_key = decode_key
        self._decode_value = decode_value

    @cached_property
    def key_text(self) -> str | None:
        return _text(self.record.key)

    @cached_property
    def value_text(self) -> str | None:
        return _text(self.record.value)

    @cached_property
    def key_tree(self) -> Any:
        return _tree(self.record.key, self._decode_key)

    @cached_property
    def value_tree(self) -> Any:
        return _tree(self.record.value, self._decode_value)

    def header(self, name: str) -> bytes | None:
        """Return the value of the last header of this name."""
        return next((value for key, value in reversed(self.record.headers) if key == name), None)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _tree(data: bytes | None, decode: Decode) -> Any:
    """Return the decoded data, and the text of data that cannot be decoded."""
    if data is None:
        return None
    try:
        return decode(data)
    except ValueError:
        return _text(data)


def compile_filter(text: str, now_ms: int) -> Predicate:
    """Return the filter as a function. Raise FilterError, which names the column."""
    return _predicate(parse_filter(text), now_ms, _Expressions())


class _Expressions:
    """The regular expressions of one filter, which share the time that one record may take."""

    def __init__(self) -> None:
        self._size = 0

    def compile(self, constant: Constant) -> Pattern:
        try:
            pattern = Pattern(str(constant.value), PATTERN_SIZE_MAX)
        except InvalidPatternError as error:
            raise FilterError(constant.column, f"not a regular expression: {error}") from None
        self._size += pattern.size
        if self._size > PATTERN_SIZE_MAX:
            raise FilterError(constant.column, "the regular expressions are too large together")
        return pattern

    def beginning(self, text: str) -> tuple[str, bool]:
        """Return what an expression may see of a text, and whether that is not all of it."""
        bytes_max = WORK_MAX // self._size
        seen = text[:bytes_max].encode(errors="replace")
        return seen[:bytes_max].decode(errors="ignore"), len(text) > bytes_max or len(seen) > bytes_max


def _predicate(expression: Expression, now_ms: int, expressions: _Expressions) -> Predicate:
    match expression:
        case Comparison():
            return _comparison(expression, now_ms, expressions)
        case Present(field):
            get = _getter(field, as_text=False)
            return lambda record: get(record) is not None and get(record) is not False
        case Not(inner):
            negated = _predicate(inner, now_ms, expressions)
            return lambda record: not negated(record)
        case All(parts):
            every = [_predicate(part, now_ms, expressions) for part in parts]
            return lambda record: all(part(record) for part in every)
        case AnyOf(parts):
            some = [_predicate(part, now_ms, expressions) for part in parts]
            return lambda record: any(part(record) for part in some)
        case _:
            assert_never(expression)


def _comparison(comparison: Comparison, now_ms: int, expressions: _Expressions) -> Predicate:
    left, operator, right = comparison.left, comparison.operator, comparison.right
    if isinstance(right, FieldPath):
        get_left, get_right = _getter(left, as_text=False), _getter(right, as_text=False)
        compare = _COMPARE[operator]
        return lambda record: compare(get_left(record), get_right(record))
    if operator == "matches":
        return _matching(left, right, expressions)
    constant = _constant(left, right, now_ms)
    get, compare = _getter(left, as_text=isinstance(constant, str)), _COMPARE[operator]
    return lambda record: compare(get(record), constant)


def _constant(left: FieldPath, right: Constant, now_ms: int) -> Any:
    if not left.is_number or not isinstance(right.value, str):
        return right.value
    if left.root != "timestamp":
        raise FilterError(right.column, f"{left.root} is a number; write it without quotes")
    try:
        return parse_time(right.value, now_ms)
    except (ValueError, OverflowError):
        raise FilterError(right.column, f"{right.value!r} is not a time; try 2024-05-01T12:00:00Z or -15m") from None


def _matching(left: FieldPath, right: Constant, expressions: _Expressions) -> Predicate:
    if left.is_number:
        raise FilterError(right.column, f"{left.root} is a number; matches needs a text")
    pattern, get = expressions.compile(right), _getter(left, as_text=True)

    def matches(record: FilteredRecord) -> bool:
        found = get(record)
        if not isinstance(found, str):
            return False
        text, is_cut = expressions.beginning(found)
        record.is_cut |= is_cut
        return pattern.is_in(text)

    return matches


def _getter(field: FieldPath, *, as_text: bool) -> Callable[[FilteredRecord], Any]:
    """Return a function from a record to the field. `as_text`: the whole key, value or header is its text."""
    root, path = field.root, field.path
    if root == "headers":
        name, rest = str(path[0]), path[1:]
        if as_text and not rest:
            return lambda record: _text(record.header(name))
        return lambda record: _step_down(_tree(record.header(name), json_value), rest)
    if root == "key":
        if as_text and not path:
            return lambda record: record.key_text
        return lambda record: _step_down(record.key_tree, path)
    if root == "value":
        if as_text and not path:
            return lambda record: record.value_text
        return lambda record: _step_down(record.value_tree, path)
    if root == "size":
        return lambda record: len(record.record.value or b"")
    return lambda record: getattr(record.record, root)


def _step_down(tree: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(tree, dict) and isinstance(step, str):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(left: Any, right: Any) -> bool:
    if _is_number(left) and _is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def _is_comparable(left: Any, right: Any) -> bool:
    return (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    return isinstance(left, list) and any(_is_equal(element, right) for element in left)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": _is_equal,
    "!=": lambda left, right: not _is_equal(left, right),
    "<": lambda left, right: _is_comparable(left, right) and bool(left < right),
    "<=": lambda left, right: _is_comparable(left, right) and bool(left <= right),
    ">": lambda left, right: _is_comparable(left, right) and bool(left > right),
    ">=": lambda left, right: _is_comparable(left, right) and bool(left >= right),
    "contains": _contains,
}
