"""What a commit hands over to the next task: one process gets it, and only what belongs to its run counts."""

import os
import threading
from pathlib import Path

import pytest

from sskafka.client.transactions import Transaction
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.commit_effects import AbortLeftovers, CommitDriver, FenceDriver, PeekDecision, Written
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover, Query
from sskafka.pipelines.connector.decision import Decision, Fate, Owner, Part, Phase
from sskafka.pipelines.connector.handover import HandoverFile

DRIVER = Transaction("q-driver", 7, 3)
OWNER = Owner("run", "session")
LAST = Decision("query", epoch=4, owner=OWNER, batch=8, parts=(Part(DRIVER, 0, 2, 5, fate=Fate.COMMITTED),))
HANDOVER = Handover(LAST, DRIVER, ((TopicPartition("orders", 1), 17), (TopicPartition("control", 0), 3)))
NEXT = Attempt(9, (Part(DRIVER, 0, 10, 99),), "offsets")


def protocol(owner: Owner = OWNER, query_id: str = "query") -> CommitProtocol:
    return CommitProtocol(Query(query_id, "name", owner))


def test_what_is_stored_is_taken_once(tmp_path: Path) -> None:
    stored = HandoverFile("localhost:9092", "q", tmp_path / "private")
    assert stored.take() is None
    stored.store(HANDOVER)
    assert HandoverFile("localhost:9092", "another", tmp_path / "private").take() is None
    assert stored.take() == HANDOVER
    assert stored.take() is None
    assert list((tmp_path / "private").iterdir()) == []


def test_of_many_takers_one_gets_it(tmp_path: Path) -> None:
    stored = HandoverFile("localhost:9092", "q", tmp_path / "private")
    found: list[Handover | None] = []
    for _ in range(50):
        stored.store(HANDOVER)
        takers = [threading.Thread(target=lambda: found.append(stored.take())) for _ in range(4)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
    assert sum(one is not None for one in found) == 50


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    stored = HandoverFile("localhost:9092", "q", shared)
    stored.store(HANDOVER)
    shared.chmod(0o777)
    assert stored.take() is None
    stored.store(HANDOVER)
    shared.chmod(0o700)
    assert stored.take() == HANDOVER, "the first one, written before"
    os.symlink(shared, tmp_path / "link")
    stored.store(HANDOVER)
    assert HandoverFile("localhost:9092", "q", tmp_path / "link").take() is None


def test_files_of_queries_that_no_longer_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    old, new = tmp_path / "private" / "driver-1", tmp_path / "private" / "driver-2"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    HandoverFile("localhost:9092", "q", tmp_path / "private").store(HANDOVER)
    assert not old.exists()
    assert new.exists()


def test_a_file_that_is_damaged_hands_over_nothing(tmp_path: Path) -> None:
    stored = HandoverFile("localhost:9092", "q", tmp_path / "private")
    stored.store(HANDOVER)
    (file,) = (tmp_path / "private").iterdir()
    file.write_text("{")
    assert stored.take() is None
    assert stored.take() is None


def test_the_decision_that_is_written_with_the_rows() -> None:
    written = protocol().decided_with_rows(LAST, 4, NEXT)
    assert written is not None
    assert (written.batch, written.phase, written.epoch, written.offsets) == (9, Phase.COMMITTED, 4, "offsets")
    assert written.parts == (NEXT.parts[0]._replace(fate=Fate.COMMITTED),)


@pytest.mark.parametrize(
    ("held", "epoch", "batch"),
    [
        (LAST.claimed_by(Owner("newer"), ""), 5, 9),
        (LAST, 5, 9),
        (LAST, 4, 8),
        (LAST.decided(8, NEXT.parts, ""), 4, 9),
        (LAST.of_another_query("query"), 4, 9),
    ],
    ids=["another run", "another epoch", "the same batch", "not committed", "no batch yet"],
)
def test_what_does_not_fit_is_not_used(held: Decision, epoch: int, batch: int) -> None:
    assert protocol().decided_with_rows(held, epoch, NEXT._replace(batch=batch)) is None


def test_another_query_does_not_use_it() -> None:
    assert protocol(query_id="other").decided_with_rows(LAST, 4, NEXT) is None


def test_only_what_one_part_left_is_handed_over_and_then_forgotten() -> None:
    committing = protocol()
    assert committing.hand_over() is None
    committing.take_back(HANDOVER)
    assert committing.hand_over() == HANDOVER._replace(sequences=())
    assert committing.hand_over() is None
    two = LAST.settled([*LAST.parts, Part(Transaction("q-4-p-0", 8, 0), 1, fate=Fate.COMMITTED)])
    committing.take_back(Handover(two, DRIVER))
    assert committing.hand_over() is None


def test_nothing_is_handed_over_after_a_batch_of_several_tasks_of_which_one_had_rows() -> None:
    """The next batch may have rows for all of them, and the one that takes the driver's transaction waits for them."""
    written = protocol().decided_with_rows(LAST, 4, NEXT)
    assert written is not None
    for tasks in (1, 2):
        committing = protocol()
        steps = committing.commit(NEXT._replace(handed=Handover(written, DRIVER), tasks=tasks), 4, 0)
        assert next(steps) == CommitDriver(DRIVER)
        assert steps.send(Written.ONCE) == AbortLeftovers(4)
        with pytest.raises(StopIteration):
            steps.send(None)
        assert (committing.hand_over() is None) == (tasks > 1)


def test_nothing_is_kept_if_the_commit_had_to_be_sent_again() -> None:
    """A late copy of the request would commit the driver's next transaction when half of it is written."""
    written = protocol().decided_with_rows(LAST, 4, NEXT)
    assert written is not None
    committing = protocol()
    steps = committing.commit(NEXT._replace(handed=Handover(written, DRIVER)), 4, 0)
    next(steps)
    assert steps.send(Written.RESENT) == AbortLeftovers(4)
    with pytest.raises(StopIteration):
        steps.send(None)
    assert committing.hand_over() is None
    again = committing.commit(Attempt(10, (Part(Transaction("q-4-p-0", 8, 0)),)), 4, 0)
    assert next(again) == PeekDecision()
    assert again.send(written) == FenceDriver()
