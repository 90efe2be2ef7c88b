"""Filters of records against a model: every tree survives its text, and no text or record does harm."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sskafka.client.fetched import ConsumedRecord
from sskafka.servers.http.browsing.filter import FilteredRecord, compile_filter
from sskafka.servers.http.browsing.filter_syntax import (
    OPERATORS,
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
    unparse,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
literals = st.one_of(
    texts, st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
steps = st.one_of(texts, st.integers(0, 99))
fields = st.one_of(
    st.builds(FieldPath, st.sampled_from(["key", "value"]), st.lists(steps, max_size=3).map(tuple)),
    st.builds(lambda name, rest: FieldPath("headers", (name, *rest)), texts, st.lists(steps, max_size=2)),
    st.builds(FieldPath, st.sampled_from(["partition", "offset", "timestamp", "size"])),
)
comparisons = st.one_of(
    st.builds(
        Comparison,
        fields,
        st.sampled_from([one for one in OPERATORS if one != "matches"]),
        st.one_of(fields, st.builds(Constant, literals)),
    ),
    st.builds(Comparison, fields, st.just("matches"), st.builds(Constant, texts)),
)


def combined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(All, several), st.builds(AnyOf, several))


expressions = st.recursive(st.one_of(comparisons, st.builds(Present, fields)), combined, max_leaves=8)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
payloads = st.one_of(st.none(), st.binary(max_size=20), json_values.map(lambda value: json.dumps(value).encode()))
records = st.builds(
    lambda key, value, headers: ConsumedRecord("t", 1, 2, 3, key, value, tuple(headers), 0, False),
    payloads,
    payloads,
    st.lists(st.tuples(texts, payloads), max_size=3),
)


@given(expressions)
def test_a_tree_survives_its_text(expression: Expression) -> None:
    assert parse_filter(unparse(expression)) == expression


WORDS = ("key", "value", ".", "[", "]", "(", ")", "and", "or", "not", "==", "<", "'a'", "5")


def column_of_error(text: str) -> int | None:
    try:
        parse_filter(text)
    except FilterError as error:
        return error.column
    return None


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)))
def test_any_text_is_a_filter_or_an_error_with_a_column(text: str) -> None:
    assert (column_of_error(text) or 1) in range(1, len(text) + 2)


@given(expressions, records)
def test_every_filter_answers_for_every_record_and_its_negation_is_the_opposite(
    expression: Expression, record: ConsumedRecord
) -> None:
    try:
        accepts = compile_filter(unparse(expression), 0)
    except FilterError:  # a time or a regular expression that is none
        return
    refuses = compile_filter(unparse(Not(expression)), 0)
    assert accepts(FilteredRecord(record)) is not refuses(FilteredRecord(record))


@given(json_values, json_values)
def test_comparisons_agree_with_python(left: Any, right: Any) -> None:
    record = ConsumedRecord("t", 0, 0, 0, None, json.dumps({"l": left, "r": right}).encode(), (), 0, False)

    def holds(operator: str) -> bool:
        return compile_filter(f"value.l {operator} value.r", 0)(FilteredRecord(record))

    assert holds("==") is (type(left) is type(right) and left == right)
    assert holds("!=") is not holds("==")
    is_ordered = type(left) is type(right) and isinstance(left, int | str) and not isinstance(left, bool)
    assert holds("<") is (is_ordered and left < right)
    assert holds(">=") is (is_ordered and left >= right)
