"""Patterns of clients: what they cost does not depend on how they are written."""

import time

import pytest

from sskafka.model.computation import finished
from sskafka.model.pattern import InvalidPatternError, Pattern, SlowPatternError
from sskafka.model.pattern_matching import NAMES_PER_LOOK, matching_names

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


@pytest.mark.parametrize(
    "text",
    [
        r"\pL" * 682,
        r"[\w\pL]" * 290,
        r"(\pL{9}){99}",
        r"[\pL\PN]{1000}|\w?|(\w)*|\p{Greek}+",
        r"(?i)\pL{99}|.{1000}|([^\pL]*){99}|\PC{1000}|.{99}",
    ],
)
def test_patterns_that_take_long_to_compile_are_refused_early(text: str) -> None:
    """They took 40 to 310 ms."""
    Pattern("a")  # the module is imported
    taken_ns = []
    for _ in range(3):
        began_ns = time.thread_time_ns()
        with pytest.raises(InvalidPatternError):
            Pattern(text)
        taken_ns.append(time.thread_time_ns() - began_ns)
    assert min(taken_ns) < 20_000_000


def test_a_hundred_names_and_some_classes_are_no_large_pattern() -> None:
    names = [f"team-{number:02}.orders-of-customers" for number in range(70)]
    assert all(map(Pattern("|".join(names)).matches, names))
    assert Pattern(r"[\pL\pN]+-\p{Lu}?.*").matches("orders-1")


def test_a_pattern_matches_whole_names() -> None:
    pattern = Pattern("(orders|payments)-[0-9]+")
    assert [pattern.matches(name) for name in ("orders-1", "payments-22", "orders-1-x", "my-orders-1")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_match_that_may_take_long_is_refused() -> None:
    """With 988 instructions, the 32,000 bytes of a transactional id took 140 ms."""
    pattern = Pattern("[ab]*a[ab]{980}c[ab]*")
    assert not pattern.matches("ab" * 1_000)
    with pytest.raises(SlowPatternError):
        pattern.matches("ab" * 16_000)
    assert Pattern("(ab)+").matches("ab" * 16_000)


def test_the_clock_is_looked_at_after_every_name_that_may_take_long() -> None:
    looks = iter(range(1_000))
    short, long = [f"a{number}" for number in range(1_000)], [f"{'a' * 3_000}{number}" for number in range(100)]
    finished(matching_names(Pattern("a{98}b"), [*short, *long], lambda: next(looks)))
    assert len(long) + len(short) // NAMES_PER_LOOK < next(looks) < len(long) + len(short) // 4
