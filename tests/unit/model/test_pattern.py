"""Patterns of clients: what they cost does not depend on how they are written."""

import time

import pytest

from sskafka.model.pattern import InvalidPatternError, Pattern

NAMES = [f"topic-{i}" for i in range(1000)]


@pytest.mark.parametrize("text", ["(" * 1000 + ")" * 1000, "(x+x+)+y", ".*" * 1000, "(a|b)*" * 340])
def test_groups_and_repetitions_do_not_make_a_pattern_slow(text: str) -> None:
    """With captured groups, the first would take ten times as long."""
    pattern = Pattern(text)
    began_ns = time.thread_time_ns()
    for name in NAMES:
        pattern.matches(name)
    assert time.thread_time_ns() - began_ns < 1_000_000_000


@pytest.mark.parametrize("text", ["(", "a**(", "x{2000}", "a" * 10_000, r"[^a]{1000}[^b]{900}", "()" * 1_000_000])
def test_what_is_no_pattern_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidPatternError):
        Pattern(text)


def test_a_pattern_matches_whole_names() -> None:
    pattern = Pattern("(orders|payments)-[0-9]+")
    assert [pattern.matches(name) for name in ("orders-1", "payments-22", "orders-1-x", "my-orders-1")] == [
        True, True, False, False,
    ]  # fmt: skip
