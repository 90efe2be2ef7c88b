"""The checker itself: each kind of broken promise is noticed, and a kept one is not reported."""

import pytest
from history import PartitionHistory, Read, Violations, check, check_all, describe
from whole_partitions import state_of

from sskafka.records.record import Record

KEPT = [Read(0, 0), Read(1, 1), Read(2, 2)]


def history_of(*numbers: int) -> PartitionHistory:
    history = PartitionHistory(sent=3)
    for number in numbers:
        history.acknowledge(number, offset=number, at=float(number))
    return history


def test_kept_promises() -> None:
    assert not check(history_of(0, 1, 2), KEPT)
    assert not check(history_of(0, 1), KEPT), "what was written but not acknowledged may be there"
    assert not check(history_of(0, 1), KEPT[:2]), "or not"
    assert check_all({0: history_of(0), 1: history_of(0)}, {0: KEPT, 1: []}).keys() == {1}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (KEPT[:2], Violations([2], [], [], [], [])),
        ([*KEPT, Read(3, 2)], Violations([], [2], [], [2], [])),
        ([Read(0, 0), Read(1, 2), Read(2, 1)], Violations([], [], [(2, 1)], [1, 2], [])),
        ([Read(0, 0), Read(5, 1), Read(6, 2)], Violations([], [], [], [1, 2], [])),
        ([*KEPT, Read(3, -1)], Violations([], [], [(2, -1)], [], [-1])),
    ],
)
def test_broken_promises(log: list[Read], expected: Violations) -> None:
    assert check(history_of(0, 1, 2), log) == expected


def test_what_was_acknowledged_without_an_offset_must_be_in_the_log_once() -> None:
    history = history_of(0, 2)
    history.acknowledge(1, None, at=1.5)
    assert not check(history, KEPT)
    assert check(history, [KEPT[0], KEPT[2]]).lost == [1]
    assert check(history, [*KEPT, Read(3, 1)]).duplicated == [1]
    assert history.end_offset == 3


def test_the_longest_gap() -> None:
    history = history_of(0, 1, 2)
    assert history.longest_gap(0.5, 2.25) == 1.0
    assert history.longest_gap(0.5, 9.0) == 7.0
    assert history.longest_gap(-4.0, 2.5) == 4.0


def test_a_broken_promise_is_described() -> None:
    history, log = history_of(0, 1, 2), [Read(0, 0, 4), Read(1, 7, 5), Read(2, 2, 5)]
    text = describe("numbers-0", check(history, log), history, log)
    assert "lost: 1 acknowledged at offset 1, there now: [0 at offset 0 (epoch 4), 7 at offset 1 (epoch 5)" in text
    assert "never_sent: 7 not acknowledged" in text
    assert "reordered: 7 before 2" in text


def test_a_helper_says_what_it_compared() -> None:
    """pytest shows the values of a failed assert in a helper module, as it does in test files."""
    with pytest.raises(AssertionError, match=r"\[1, 1\] == \[1\]"):
        state_of([Record(1, 0, None, None), Record(1, 0, None, None)])
