"""Spark around the sink's protocol: runs, batches, tasks and commit processes, each of which may stop, pause, wake up
late, crash, be repeated, or be given up by the driver while it goes on.

A seed is a run: faults come for a while, then everything that still lives goes on to its end, in any order, and a last
run starts alone. It must commit every batch; every row is there once, and no transaction is left open.
"""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sink_world import RESERVE_MS, BrokersAwayError, FencedProducerError, Later, World, rows_of

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover, Query
from sskafka.pipelines.connector.decision import Decision, Owner, Part, Phase, Place
from sskafka.pipelines.connector.errors import ConnectorError

BATCHES = 3
SLOTS = 2
ATTEMPTS_MAX = 4
FAULTY_STEPS = 260
STEPS_MAX = 6_000
RUNS_MAX = 5

Failures = (ConnectorError, BrokersAwayError, FencedProducerError)


@dataclass(slots=True)
class Wait:
    until: Callable[[], bool]


@dataclass(slots=True)
class Checkpoint:
    """What Spark keeps on disk; all runs share it."""

    committed: int = -1


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


class Actor:
    """Somebody who does one step at a time."""

    __slots__ = ("_answer", "_later", "_stack", "error", "is_done", "name", "result", "waits", "wakes_at_ms")

    def __init__(self, name: str, work: Generator[Any, Any, Any]) -> None:
        self.name = name
        self._stack = [work]
        self._answer: Any = None
        self._later: Callable[[], Any] | None = None
        self.waits: Callable[[], bool] | None = None
        self.wakes_at_ms = 0.0
        self.is_done = False
        self.result: Any = None
        self.error: Exception | None = None

    def can_step(self, now_ms: float) -> bool:
        if self.is_done or self.wakes_at_ms > now_ms:
            return False
        return self.waits is None or self.waits()

    def step(self, world: World) -> None:
        self.waits = None
        try:
            if self._later is not None:
                self._answer, self._later = self._later(), None
            asked = self._stack[-1].send(self._answer)
            self._answer = None
            self._do(asked, world)
        except StopIteration as stop:
            self._return(stop.value)
        except Failures as error:
            self._fail(error)

    def _return(self, value: Any) -> None:
        self._stack.pop()
        if self._stack:
            self._answer = value
        else:
            self.is_done, self.result = True, value

    def _fail(self, error: Exception) -> None:
        """Thrown into whoever asked, and what that does next is done in this step."""
        self.is_done, self.error = True, error

    def throw(self, error: Exception, world: World) -> None:
        while self._stack:
            try:
                asked = self._stack[-1].throw(error)
            except StopIteration as stop:
                self._return(stop.value)
                return
            except Failures:
                self._stack.pop()
                continue
            self._do(asked, world)
            return
        self.is_done, self.error = True, error

    def _do(self, asked: Any, world: World) -> None:
        if isinstance(asked, Wait):
            self.waits = asked.until
            return
        rng = world.rng
        is_lost = world.faults and rng.random() < 0.02
        if is_lost and rng.random() < 0.5:
            self.throw(BrokersAwayError("the question was lost"), world)
            return
        try:
            answer = asked() if callable(asked) else world.perform(asked)
        except FencedProducerError as error:
            self.throw(error, world)
            return
        if isinstance(answer, Generator):
            self._stack.append(answer)
        elif is_lost:
            self.throw(BrokersAwayError("the answer was lost"), world)
        elif isinstance(answer, Later):
            self._later = answer.answer
        else:
            self._answer = answer


class Message(NamedTuple):
    """What a task returns to the driver."""

    part: Part
    epoch: int
    number: int
    handed: Handover | None


class SparkRun:
    """One run of the query: its driver, and what that starts."""

    protocol_class: type[CommitProtocol] = CommitProtocol

    def __init__(self, simulation: "Simulation", number: int) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = f"run{number}"
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
        query = Query("query", "query", Owner(self.name), reserve_ms=RESERVE_MS)
        return self.simulation.protocol_class(query)

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
        committing = self.start(f"commit {batch}", protocol.commit(attempt, epoch))
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

    # -- the driver

    def _drive(self) -> Generator[Any, Any, str]:
        checkpoint = self.simulation.checkpoint
        while checkpoint.committed + 1 < self.simulation.batches:
            batch = checkpoint.committed + 1
            for slot in self.simulation.slots_of(batch):
                self._start_task(batch, slot, 0)
            yield Wait(lambda batch=batch: self._is_over(batch))
            attempt, epoch = self._attempt(batch)
            committing = None
            if len(attempt.parts) == len(self.simulation.slots_of(batch)):
                committing = self._start_commit(batch, attempt, epoch)
                patience = self.world.rng.random() < 0.9 or not self.world.faults
                gives_up_ms = self.world.now_ms + (float("inf") if patience else self.world.rng.uniform(0, 60))
                yield Wait(lambda one=committing, at=gives_up_ms: one.is_done or self.world.now_ms > at)
            if committing is None or not committing.is_done or committing.error is not None:
                aborting = self.start(f"abort {batch}", self.protocol().abort(attempt, epoch))
                yield Wait(lambda one=aborting: one.is_done)
                return f"failed: {committing.error if committing else 'a task failed'}"
            self._start_record(batch)
            yield lambda batch=batch: self._note(batch)
        return "done"

    def _note(self, batch: int) -> None:
        self.simulation.checkpoint.committed = max(batch, self.simulation.checkpoint.committed)

    def _is_over(self, batch: int) -> bool:
        return all(
            (batch, slot) in self.messages or self.failures.get((batch, slot), 0) >= ATTEMPTS_MAX
            for slot in self.simulation.slots_of(batch)
        )

    def _attempt(self, batch: int) -> tuple[Attempt, int | None]:
        slots = self.simulation.slots_of(batch)
        found = [self.messages[batch, slot] for slot in slots if (batch, slot) in self.messages]
        parts = tuple(one.part for one in found)
        epoch = found[0].epoch if found else None
        handed = next((one.handed for one in found if one.handed is not None), None)
        return Attempt(batch, parts, "", any(one.number > 0 for one in found), handed), epoch

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
            part, epoch, handed = yield from self._write(process, batch, slot)
        except Failures:
            self.processes.remove(process)
            if not extra:
                self.failures[batch, slot] = failed = self.failures.get((batch, slot), 0) + 1
                if failed < ATTEMPTS_MAX:
                    self._start_task(batch, slot, number + 1)
            return
        process.is_busy = False
        self.messages.setdefault((batch, slot), Message(part, epoch, number, handed))

    def _free_process(self) -> Process:
        for process in self.processes:
            if not process.is_busy:
                return process
        self.processes.append(Process(f"p{self.simulation.next_number()}"))
        return self.processes[-1]

    def _write(self, process: Process, batch: int, slot: int) -> Generator[Any, Any, tuple[Part, int, Handover | None]]:
        if process.name not in self.epochs:
            self.epochs[process.name] = yield from self.protocol().claim()
        epoch = self.epochs[process.name]
        taken: Handover | None = yield self.simulation.take_handover
        if taken is not None:
            handed = yield from self._write_handed(taken, epoch, batch, slot)
            if handed is not None:
                return handed.decision.parts[0], epoch, handed
        name = self.simulation.transactional_id(epoch, self.name, process, batch, slot)
        transaction: Transaction = yield lambda: self.world.initialize(name)
        rows = list(rows_of(batch, slot))
        for row in rows:
            yield lambda row=row: self.world.add(transaction, row)
        return Part(transaction, slot, len(rows), hash((batch, slot)), Place("t", 0, 0)), epoch, None

    def _write_handed(self, taken: Handover, epoch: int, batch: int, slot: int) -> Generator[Any, Any, Handover | None]:
        """Rows and decision in the driver's transaction, in any order; None if another process has fenced it."""
        rows = list(rows_of(batch, slot))
        part = Part(taken.driver, slot, len(rows), hash((batch, slot)))
        decision = self.protocol().decided_with_rows(taken.decision, epoch, Attempt(batch, (part,)))
        if decision is None:
            return None
        steps: list[Callable[[], None]] = [lambda row=row: self.world.add(taken.driver, row) for row in rows]
        steps.append(lambda: self.world.add_decision(taken.driver, decision))
        try:
            yield from self.simulation.choices.sample(steps, len(steps))
        except FencedProducerError:
            return None
        self.simulation.handed += 1
        return Handover(decision, taken.driver)

    def crash(self, rng: random.Random) -> None:
        """The driver is gone. Of the rest some live on for a while, not knowing."""
        for actor in self.actors:
            if not actor.is_done and (actor is self.driver or rng.random() < 0.5):
                actor.is_done = True
                self.simulation.actors.remove(actor)


class Simulation:
    protocol_class: type[CommitProtocol] = CommitProtocol

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.choices = random.Random(f"processes of {seed}")
        self.world = self.make_world(self.rng, two_phase=self.rng.random() < 0.4)
        self.checkpoint = Checkpoint()
        self.actors: list[Actor] = []
        self.runs: list[SparkRun] = []
        self._number = 0
        self.had_partial = False
        self.batches = BATCHES
        self._slots = [self.choices.choice((1, SLOTS)) for _ in range(BATCHES + 1)]
        self._handover: Handover | None = None
        """The file on the machine of all drivers."""
        self.handed = 0
        """Number of parts that were written in the driver's transaction."""

    def slots_of(self, batch: int) -> range:
        """The slots of a batch, as many as it has tasks."""
        return range(self._slots[batch])

    def take_handover(self) -> Handover | None:
        taken, self._handover = self._handover, None
        return taken

    def store_handover(self, protocol: CommitProtocol) -> None:
        handover = protocol.hand_over()
        if handover is not None:
            self._handover = handover

    def make_world(self, rng: random.Random, *, two_phase: bool) -> World:
        return World(rng, two_phase=two_phase)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def transactional_id(self, epoch: int, run: str, process: Process, batch: int, slot: int) -> str:
        return f"{epoch}-{process.name}-{process.free_number(batch)}"

    def new_run(self) -> SparkRun:
        run = SparkRun(self, len(self.runs))
        self.runs.append(run)
        return run

    def go(self) -> "Simulation":
        self.new_run()
        for _ in range(FAULTY_STEPS):
            self._maybe_disturb()
            self._step()
        self.world.faults = False
        self._run_to_the_end("what was still alive")
        self.batches += 1  # so that the last run has something to do
        last = self.new_run()
        self._run_to_the_end("the last run")
        self._check(last)
        return self

    def _maybe_disturb(self) -> None:
        rng, draw = self.rng, self.rng.random()
        if draw < 0.012:
            self.runs[-1].crash(rng)
        elif draw < 0.05:
            if self.actors:
                rng.choice(self.actors).wakes_at_ms = self.world.now_ms + rng.choice([20, 300, 1_500])
        elif draw < 0.06 or (draw < 0.1 and self._is_decided()):
            self.world.pass_time(rng.choice([100, 400, 1_200]))
        newest = self.runs[-1].driver
        takes_over = newest.is_done or (newest.wakes_at_ms > self.world.now_ms and draw > 0.93)
        if takes_over and len(self.runs) < RUNS_MAX:
            self.new_run()

    def _is_decided(self) -> bool:
        """A moment that is short, and in which much may go wrong."""
        return self.world.last is not None and self.world.last.phase is Phase.DECIDED

    def _step(self) -> bool:
        self.world.pass_time(self.rng.uniform(0, 6) if self.world.faults else 0.01)
        ready = [actor for actor in self.actors if actor.can_step(self.world.now_ms)]
        if not ready:
            return False
        chosen = self.rng.choice(ready)
        chosen.step(self.world)
        if chosen.is_done:
            self.actors.remove(chosen)
        last = self.world.last
        if last is not None and last.phase is Phase.PARTIAL:
            self.had_partial = True
            assert not self.world.two_phase, "a two-phase transaction was lost"
        return True

    def _run_to_the_end(self, what: str) -> None:
        for _ in range(STEPS_MAX):
            if self._step():
                continue
            sleeping = [actor.wakes_at_ms for actor in self.actors if actor.wakes_at_ms > self.world.now_ms]
            if not sleeping:
                return
            self.world.pass_time(min(sleeping) - self.world.now_ms + 0.01)
        raise AssertionError(f"{what} does not come to an end")

    def _check(self, last: SparkRun) -> None:
        rows = {row for batch in range(self.batches) for slot in self.slots_of(batch) for row in rows_of(batch, slot)}
        assert last.driver.result == "done", f"the query is stuck: {last.driver.result or last.driver.error}"
        assert self.world.topic == rows, f"rows are lost: {sorted(rows - self.world.topic)}"
        decision: Decision | None = self.world.last
        assert decision is not None
        assert decision.is_committed, f"the last decision is {decision.phase}"
        left = self.world.open_ids()
        assert not left, f"transactions are left open: {left}"


def run_seed(seed: int, simulation_class: type[Simulation] = Simulation) -> Simulation:
    try:
        return simulation_class(seed).go()
    except AssertionError as failure:
        raise AssertionError(f"seed {seed}: {failure}") from failure
