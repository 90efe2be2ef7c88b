"""Shards that are loaded at once share the turns of the loop."""

from coordinator_lab import CoordinatorLab

from sskafka.coordination.context import CoordinatorState
from sskafka.coordination.loading import LoadingTurns


class Turns:
    """A loop whose turns the test counts."""

    def __init__(self) -> None:
        self.next_turn: list[object] = []

    def soon(self, work: object) -> None:
        self.next_turn.append(work)

    def in_thread(self, work: object, done: object) -> None:
        raise AssertionError("nothing is read")

    def turn(self) -> None:
        due, self.next_turn = self.next_turn, []
        for work in due:
            work()  # type: ignore[operator]


def test_one_loader_a_turn_and_each_gets_its_turn() -> None:
    loop, done = Turns(), list[str]()
    turns = LoadingTurns(loop)  # type: ignore[arg-type]

    def load(name: str, left: int) -> None:
        done.append(name)
        if left > 1:
            turns.soon(lambda: load(name, left - 1))

    for name in "abc":
        turns.soon(lambda name=name: load(name, 2))  # type: ignore[misc]
    for count in range(1, 7):
        loop.turn()
        assert len(done) == count, "no more than one in a turn"
    assert "".join(done) == "abcabc"
    assert not loop.next_turn


def test_a_loader_that_fails_does_not_hold_up_the_next() -> None:
    loop, done = Turns(), list[str]()
    turns = LoadingTurns(loop)  # type: ignore[arg-type]
    turns.soon(lambda: done.append("first"))
    loop.turn()
    turns.soon(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    turns.soon(lambda: done.append("second"))
    try:
        loop.turn()
    except ZeroDivisionError:
        loop.turn()
    assert done == ["first", "second"]


def test_many_coordinators_take_one_turn_of_the_loop_each() -> None:
    lab = CoordinatorLab()
    contexts = [lab.context, *(lab.begin() for _ in range(9))]
    lab.time.step()
    assert sum(context.state is CoordinatorState.ACTIVE for context in contexts) == 1
    lab.turn(50)
    assert all(context.state is CoordinatorState.ACTIVE for context in contexts)
