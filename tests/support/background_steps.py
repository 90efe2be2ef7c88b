"""A background whose work is done step by step, as the test says."""

from collections.abc import Callable, Iterable


class Steps:
    def __init__(self) -> None:
        self.turns: list[Callable[[], None]] = []
        self.threads: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def soon(self, work: Callable[[], None]) -> None:
        self.turns.append(work)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.threads.append((work, done))

    def side_by_side(self, syncs: Iterable[Callable[[], None]]) -> None:
        """One after the other: a simulated disk and its faults are for one thread."""
        for sync in syncs:
            sync()

    def turn(self) -> None:
        turns, self.turns = self.turns, []
        for work in turns:
            work()

    def finish_thread(self) -> None:
        work, done = self.threads.pop(0)
        error: BaseException | None = None
        try:
            work()
        except OSError as caught:
            error = caught
        done(error)

    def finish(self) -> None:
        """Until there is nothing left to do."""
        while self.turns or self.threads:
            self.turn()
            while self.threads:
                self.finish_thread()
