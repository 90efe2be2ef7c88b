from itertools import combinations_with_replacement, product

import pytest

from sskafka.model.ids import EpochEnd
from sskafka.partition.truncation import UNDEFINED, diverging_epoch, plan_truncation


@pytest.mark.parametrize(
    ("epoch", "offset", "known", "diverges"),
    [
        (3, 40, EpochEnd(3, 50), False),
        (3, 50, EpochEnd(3, 50), False),
        (3, 51, EpochEnd(3, 50), True),
        (4, 40, EpochEnd(3, 50), True),
    ],
)
def test_logs_diverge_where_the_leader_lacks_the_epoch(
    epoch: int, offset: int, known: EpochEnd, diverges: bool
) -> None:
    assert diverging_epoch(epoch, offset, known) == (known if diverges else None)


@pytest.mark.parametrize(
    ("leader", "own", "cut_at"),
    [
        (EpochEnd(3, 50), EpochEnd(3, 40), 40),
        (EpochEnd(3, 50), EpochEnd(3, 70), 50),
        (EpochEnd(3, 50), EpochEnd(2, 30), 30),
        (EpochEnd(3, 50), EpochEnd(UNDEFINED, UNDEFINED), 50),
        (EpochEnd(3, 500), EpochEnd(3, 90), 80),
    ],
)
def test_truncation_to_the_end_of_the_last_common_epoch(leader: EpochEnd, own: EpochEnd, cut_at: int) -> None:
    assert plan_truncation(leader, own, log_end_offset=80) == cut_at


def end_of(log: list[int], epoch: int) -> EpochEnd:
    """The largest epoch of the log not above `epoch`, and where it ended; a log is a list of its records' epochs."""
    known = [e for e in log if e <= epoch]
    return EpochEnd(known[-1], len(known)) if known else EpochEnd(epoch, 0)


def common(one: list[int], other: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def can_be(one: list[int], other: list[int]) -> bool:
    """An epoch has one leader, who wrote it behind what it had: whoever has a part of it has what came before."""
    return all(one[: one.index(epoch)] == other[: other.index(epoch)] for epoch in set(one) & set(other))


def test_any_two_logs_converge_at_their_last_common_record() -> None:
    logs = [list(log) for length in range(6) for log in combinations_with_replacement(range(4), length)]
    pairs = [(leader, follower) for leader, follower in product(logs, logs) if can_be(leader, follower)]
    assert len(pairs) > 1000
    for leader, follower in pairs:
        log, steps = follower, 0
        while log:
            diverging = diverging_epoch(log[-1], len(log), end_of(leader, log[-1]))
            if diverging is None:
                break
            log = log[: plan_truncation(diverging, end_of(log, diverging.epoch), len(log))]
            steps += 1
            assert steps <= len(set(follower)), (leader, follower)
        assert log == follower[: common(leader, follower)], (leader, follower)
