import json
from pathlib import Path

import pytest

from sskafka.lab.journal import Journal, JournalEnd


def lines(*epochs: int, first: int = 0) -> str:
    return "".join(
        f"{offset} {epoch} create-topic {json.dumps({'topic_name': f't{offset}'})}\n"
        for offset, epoch in enumerate(epochs, first)
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "__cluster_metadata.log"


def test_a_journal_that_nobody_keeps_is_empty() -> None:
    journal = Journal(None)
    assert not journal.is_kept
    assert journal.end() == JournalEnd(-1, -1)
    assert journal.after(-1, 10) == []


def test_lines_that_are_added_are_read_on(file: Path) -> None:
    file.write_text(lines(1, 1))
    journal = Journal(str(file))
    assert journal.end() == JournalEnd(1, 1)
    with file.open("a") as more:
        more.write(lines(3, first=2))
    assert journal.end() == JournalEnd(2, 3)
    assert [entry.offset for entry in journal.after(0, 1)] == [1]
    assert [entry.offset for entry in journal.after(0, 10)] == [1, 2]
    assert journal.after(2, 10) == []


def test_half_a_line_waits_for_its_other_half(file: Path) -> None:
    text = lines(1, 2)
    file.write_text(text[:-5])
    journal = Journal(str(file))
    assert journal.end() == JournalEnd(0, 1)
    file.write_text(text)
    assert journal.end() == JournalEnd(1, 2)


def test_a_journal_that_was_made_anew_is_read_again(file: Path) -> None:
    file.write_text(lines(1, 1, 1))
    journal = Journal(str(file))
    assert journal.end().offset == 2
    file.write_text(lines(5))
    assert journal.end() == JournalEnd(0, 5)
    file.unlink()
    assert journal.end() == JournalEnd(-1, -1)


@pytest.mark.parametrize(
    ("end", "candidate", "is_ahead"),
    [
        (JournalEnd(-1, -1), (0, -1), False),
        (JournalEnd(-1, -1), (7, 3), False),
        (JournalEnd(0, 1), (0, -1), True),
        (JournalEnd(5, 2), (5, 2), False),
        (JournalEnd(5, 2), (4, 2), True),
        (JournalEnd(5, 2), (9, 1), True),
        (JournalEnd(5, 2), (0, 3), False),
    ],
)
def test_candidates_are_compared_by_epoch_and_then_by_offset(
    end: JournalEnd, candidate: tuple[int, int], is_ahead: bool
) -> None:
    assert end.is_ahead_of(*candidate) is is_ahead


@pytest.mark.parametrize(
    ("offset", "epoch", "parted"),
    [
        (-1, -1, None),  # from the beginning
        (2, 2, None),
        (4, 4, None),  # caught up
        (3, 3, JournalEnd(2, 2)),  # ours went on in epoch 4
        (7, 2, JournalEnd(2, 2)),  # longer than ours was in that epoch
        (1, 2, JournalEnd(1, 1)),  # in another epoch than ours at that offset
        (9, 9, JournalEnd(4, 4)),
        (3, 0, JournalEnd(-1, -1)),  # nothing in common
    ],
)
def test_where_another_log_parts_from_this_one(file: Path, offset: int, epoch: int, parted: JournalEnd | None) -> None:
    file.write_text(lines(1, 1, 2, 4, 4))
    assert Journal(str(file)).divergence(offset, epoch) == parted
