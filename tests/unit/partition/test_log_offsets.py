from collections.abc import Callable
from random import Random

import pytest

from sskafka.partition.log_offsets import LogOffsets


def offsets(log_start: int = 0, high_watermark: int = 8, log_end: int = 10) -> LogOffsets:
    made = LogOffsets(log_start, log_end)
    made.advance_high_watermark(high_watermark)
    made.set_first_unstable(None)
    return made


def test_the_high_watermark_advances_and_never_goes_back() -> None:
    marks = offsets(high_watermark=5)
    assert marks.advance_high_watermark(8)
    assert not marks.advance_high_watermark(7)
    assert marks.high_watermark == 8


def test_an_opened_log_has_only_its_start_replicated() -> None:
    marks = LogOffsets(3, 10)
    assert (marks.log_start, marks.last_stable, marks.high_watermark, marks.log_end) == (3, 3, 3, 10)


@pytest.mark.parametrize(("first_unstable", "expected"), [(None, 8), (3, 3), (8, 8), (9, 8)])
def test_last_stable_offset_stops_at_the_first_open_transaction(first_unstable: int | None, expected: int) -> None:
    marks = offsets()
    marks.set_first_unstable(first_unstable)
    assert marks.last_stable == expected


def test_a_transaction_that_began_in_deleted_records_is_unstable_from_the_log_start_on() -> None:
    marks = offsets()
    marks.delete_before(5)
    marks.set_first_unstable(3)
    assert marks.last_stable == 5


def test_truncation_and_a_later_start_move_the_high_watermark_with_the_log() -> None:
    marks = offsets()
    marks.truncate_to(6)
    assert (marks.high_watermark, marks.last_stable, marks.log_end) == (6, 6, 6)
    marks.append(12)
    marks.delete_before(9)
    assert (marks.high_watermark, marks.last_stable) == (9, 9)
    marks.restart_at(3)
    assert (marks.log_start, marks.high_watermark, marks.log_end) == (3, 3, 3)


@pytest.mark.parametrize(
    "move",
    [
        lambda marks: marks.advance_high_watermark(11),
        lambda marks: marks.append(9),
        lambda marks: marks.truncate_to(11),
        lambda marks: marks.delete_before(-1),
        lambda marks: marks.delete_before(11),
        lambda marks: LogOffsets(5, 4),
    ],
    ids=["above the end", "shorter by append", "longer by truncation", "start back", "start above end", "no log"],
)
def test_moves_that_would_break_the_order_are_refused(move: Callable[[LogOffsets], object]) -> None:
    with pytest.raises(AssertionError):
        move(offsets())


@pytest.mark.parametrize("seed", range(20))
def test_the_order_holds_after_any_moves(seed: int) -> None:
    random = Random(seed)
    marks = offsets()
    for _ in range(200):
        start, end = marks.log_start, marks.log_end
        match random.randrange(5):
            case 0:
                marks.append(end + random.randrange(5))
            case 1:
                marks.advance_high_watermark(random.randint(start, end))
                marks.set_first_unstable(random.choice([None, random.randint(0, end)]))
            case 2:
                marks.truncate_to(random.randint(max(0, start - 2), end))
            case 3:
                marks.delete_before(random.randint(start, end))
            case 4 if random.random() < 0.1:
                marks.restart_at(random.randint(0, end + 5))
        assert marks.log_start <= marks.last_stable <= marks.high_watermark <= marks.log_end, f"seed {seed}: {marks}"
