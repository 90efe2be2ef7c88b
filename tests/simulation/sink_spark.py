"""Spark around the sink's protocol: a run of a query with its batches, tasks and commit processes.

Each of them may stop, pause, wake up late, crash, be repeated, or be given up by the driver while it goes on. A run of
a pipeline belongs to a session, which recovers the query before Spark starts, and may start the query again.
"""

import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sink_actor import Actor, Failures, Wait
from sink_world import RESERVE_MS, FencedProducerError, rows_of

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover, Query
from sskafka.pipelines.connector.decision import Owner, Part, Place

if TYPE_CHECKING:
    from sink_run import Simulation

ATTEMPTS_MAX = 4


@dataclass(slots=True)
class Process:
    """A Python worker: it runs one task at a time and has transactional ids of its own."""

    name: str
    uses: dict[int, int] = field(default_factory=dict)
    """Which batch last used its k-th id."""
    is_busy: bool = False

    def free_number(self, batch: int) -> int:
        number = next((k for k, used in self.uses.items() if used < batch), len(self.uses))
        self.uses[number] = batch
        return number


class Message(NamedTuple):
    """What a task returns to the driver. A task without rows has asked nobody."""

    number: int
    part: Part | None = None
    epoch: int | None = None
    handed: Handover | None = None


class SparkRun:
    """One run of the query: its driver, and what that starts."""

    def __init__(self, simulation: "Simulation", number: int, session: str, *, recovers: bool) -> None:
        """`recovers`: the session begins with this run."""
        self.simulation = simulation
        self.world = simulation.world
        self.name = simulation.run_name(number)
        self.session = session
        self._recovers = recovers
        self.processes: list[Process] = []
        self.epochs: dict[str, int] = {}
        self.messages: dict[tuple[int, int], Message] = {}
        self.failures: dict[tuple[int, int], int] = {}
        self.actors: list[Actor] = []
        self._committer: tuple[CommitProtocol, Actor] | None = None
        """The process that committed the last batch, and what it did last: it records outcomes by itself."""
        self.driver = self.start("driver", self._drive())

    def start(self, name: str, work: Generator[Any, Any, Any]) -> Actor:
        actor = Actor(f"{self.name} {name}", work)
        self.actors.append(actor)
        self.simulation.actors.append(actor)
        return actor

    def protocol(self) -> CommitProtocol:
        return self.simulation.protocol(Owner(self.name, self.session))

    def crash(self, rng: random.Random) -> None:
        """The driver is gone. Of the rest some live on for a while, not knowing."""
        for actor in self.actors:
            if not actor.is_done and (actor is self.driver or rng.random() < 0.5):
                actor.is_done = True
                self.simulation.actors.remove(actor)

    # -- the driver

    def _drive(self) -> Generator[Any, Any, str]:
        if self._recovers:
            yield from self.simulation.protocol(Owner("", self.session)).recover()
        checkpoint = self.simulation.checkpoint
        while checkpoint.committed + 1 < self.simulation.batches:
            batch = checkpoint.committed + 1
            failure = yield from self._run_batch(batch)
            if failure:
                return failure
            self._start_record(batch)
            yield lambda batch=batch: checkpoint.note(batch)
        return "done"

    def _run_batch(self, batch: int) -> Generator[Any, Any, str]:
        """Empty if the batch is committed."""
        for slot in self.simulation.slots_of(batch):
            self._start_task(batch, slot, 0)
        yield Wait(lambda: self._is_over(batch))
        found = list(self._messages_of(batch))
        attempt, epoch = self._attempt(batch, found)
        committing = None
        if len(found) == len(self.simulation.slots_of(batch)):
            committing = self._start_commit(batch, attempt, epoch)
            patience = self.world.rng.random() < 0.9 or not self.world.faults
            gives_up_ms = self.world.now_ms + (float("inf") if patience else self.world.rng.uniform(0, 60))
            yield Wait(lambda: committing.is_done or self.world.now_ms > gives_up_ms)
        if committing is not None and committing.is_done and committing.error is None:
            return ""
        if found:  # else the sink does not know which run it is
            aborting = self.start(f"abort {batch}", self.protocol().abort(attempt, epoch))
            yield Wait(lambda: aborting.is_done)
        return f"failed: {committing.error if committing else 'a task failed'}"

    def _is_over(self, batch: int) -> bool:
        return all(
            (batch, slot) in self.messages or self.failures.get((batch, slot), 0) >= ATTEMPTS_MAX
            for slot in self.simulation.slots_of(batch)
        )

    def _messages_of(self, batch: int) -> Iterator[Message]:
        for slot in self.simulation.slots_of(batch):
            if (batch, slot) in self.messages:
                yield self.messages[batch, slot]

    def _attempt(self, batch: int, found: list[Message]) -> tuple[Attempt, int | None]:
        parts = tuple(one.part for one in found if one.part is not None)
        epoch = next((one.epoch for one in found if one.epoch is not None), None)
        handed = next((one.handed for one in found if one.handed is not None), None)
        had_failures = any(one.number > 0 for one in found)
        return Attempt(batch, parts, "", had_failures, handed, len(found)), epoch

    def _start_commit(self, batch: int, attempt: Attempt, epoch: int | None) -> Actor:
        """In the process of the last commit, if that is idle and lives, or in another one."""
        protocol = self.protocol()
        if self._committer is not None:
            kept, last = self._committer
            if last.is_done and last.error is None and self.simulation.choices.random() < 0.8:
                protocol = kept  # one that was still recording would be waited for: the order is the same
        left = self.simulation.take_handover() if attempt.handed is None else None
        if left is not None:
            protocol.take_back(left)
        committing = self.start(f"commit {batch}", protocol.commit(attempt, epoch, self.world.now_ms))
        self._committer = protocol, committing
        return committing

    def _start_record(self, batch: int) -> None:
        """The process of the last commit records the outcome while the next batch begins, and hands over its driver."""
        assert self._committer is not None
        protocol, _ = self._committer
        if protocol.has_unrecorded:
            self._committer = protocol, self.start(f"record {batch}", self._record(protocol))
        else:
            self.simulation.store_handover(protocol)

    def _record(self, protocol: CommitProtocol) -> Generator[Any, Any, None]:
        yield from protocol.record()
        self.simulation.store_handover(protocol)

    # -- tasks

    def _start_task(self, batch: int, slot: int, number: int) -> None:
        self.start(f"task {batch}/{slot}.{number}", self._task(batch, slot, number))
        if self.world.faults and self.world.rng.random() < 0.1:
            late = self.start(f"late task {batch}/{slot}.{number}", self._task(batch, slot, number + 1, extra=True))
            late.wakes_at_ms = self.world.now_ms + self.world.rng.uniform(0, 400)

    def _task(self, batch: int, slot: int, number: int, *, extra: bool = False) -> Generator[Any, Any, None]:
        process = self._free_process()
        process.is_busy = True
        try:
            message = yield from self._write(process, batch, slot, number)
        except Failures:
            self.processes.remove(process)
            if not extra:
                self.failures[batch, slot] = failed = self.failures.get((batch, slot), 0) + 1
                if failed < ATTEMPTS_MAX:
                    self._start_task(batch, slot, number + 1)
            return
        process.is_busy = False
        self.messages.setdefault((batch, slot), message)

    def _free_process(self) -> Process:
        for process in self.processes:
            if not process.is_busy:
                return process
        self.processes.append(Process(f"p{self.simulation.next_number()}"))
        return self.processes[-1]

    def _write(self, process: Process, batch: int, slot: int, number: int) -> Generator[Any, Any, Message]:
        if self.simulation.is_empty(batch, slot):
            return Message(number)
        if process.name not in self.epochs:
            self.epochs[process.name] = yield from self.protocol().claim()
        epoch = self.epochs[process.name]
        taken: Handover | None = yield self.simulation.take_handover
        if taken is not None:
            handed = yield from self._write_handed(taken, epoch, batch, slot)
            if handed is not None:
                return Message(number, handed.decision.parts[0], epoch, handed)
        name = self.simulation.transactional_id(epoch, self.name, process, batch, slot)
        transaction: Transaction = yield lambda: self.world.initialize(name)
        rows = list(rows_of(batch, slot))
        first: int = yield lambda: self.world.add(transaction, rows[0])
        for row in rows[1:]:
            yield lambda row=row: self.world.add(transaction, row, adds_partition=False)
        place = Place("t", 0, first)
        return Message(number, Part(transaction, slot, len(rows), hash((batch, slot)), place), epoch)

    def _write_handed(self, taken: Handover, epoch: int, batch: int, slot: int) -> Generator[Any, Any, Handover | None]:
        """Rows and decision in the driver's transaction, in any order; None if another process has fenced it."""
        rows = list(rows_of(batch, slot))
        part = Part(taken.driver, slot, len(rows), hash((batch, slot)))
        decision = self.protocol().decided_with_rows(taken.decision, epoch, Attempt(batch, (part,)))
        if decision is None:
            return None
        steps: list[Callable[[], Any]] = [lambda row=row: self.world.add(taken.driver, row) for row in rows]
        steps.append(lambda: self.world.add_decision(taken.driver, decision))
        try:
            for step in self.simulation.choices.sample(steps, len(steps)):  # noqa: UP028  a list takes no answers
                yield step
        except FencedProducerError:
            return None
        self.simulation.handed += 1
        return Handover(decision, taken.driver)


def query_of(owner: Owner, checkpoint: str = "the checkpoint") -> Query:
    return Query("query", "query", owner, checkpoint, reserve_ms=RESERVE_MS)
