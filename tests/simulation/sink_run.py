"""The Spark sink under faults: runs supersede each other, and operators recover the query beside them.

A seed is a run: faults come for a while, then everything that still lives goes on to its end, in any order, and a last
run starts. Beside it, processes of superseded runs and of a copy of the checkpoint try what they can. The last run must
commit every batch; every row is there once, and no transaction is left open.
"""

import random
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sink_actor import Actor, Failures, Wait
from sink_spark import Process, SparkRun, query_of
from sink_world import OPERATOR, World, rows_of

from sskafka.pipelines.connector.commit_effects import PeekDecision
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover
from sskafka.pipelines.connector.decision import Decision, Owner, Part, Phase

BATCHES = 3
BATCHES_AFTERWARDS = 2
"""Batches that only the last run writes: the second one may be in the driver's transaction."""
SLOTS = 2
FAULTY_STEPS = 260
STEPS_MAX = 6_000
INTRUSIONS = 3
RUNS_MAX = 5


@dataclass(slots=True)
class Checkpoint:
    """What Spark keeps on disk; all runs share it."""

    committed: int = -1

    def note(self, batch: int) -> None:
        self.committed = max(batch, self.committed)


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
        self.recoveries = 0
        self.batches = BATCHES
        self._slots = [self.choices.choice((1, 1, SLOTS)) for _ in range(BATCHES + BATCHES_AFTERWARDS)]
        self._empty = {
            (batch, slot) for batch in range(BATCHES) for slot in range(SLOTS) if self.choices.random() < 0.1
        }
        self._handover: Handover | None = None
        """The file on the machine of all drivers."""
        self.handed = 0
        """Number of parts that were written in the driver's transaction."""

    # -- what is run

    def slots_of(self, batch: int) -> range:
        """The slots of a batch, as many as it has tasks."""
        return range(self._slots[batch])

    def is_empty(self, batch: int, slot: int) -> bool:
        """Whether a task has no rows."""
        return (batch, slot) in self._empty

    def rows(self) -> set[str]:
        slots = [(batch, slot) for batch in range(self.batches) for slot in self.slots_of(batch)]
        return {row for slot in slots if slot not in self._empty for row in rows_of(*slot)}

    def take_handover(self) -> Handover | None:
        taken, self._handover = self._handover, None
        return taken

    def store_handover(self, protocol: CommitProtocol) -> None:
        handover = protocol.hand_over()
        if handover is not None:
            self._handover = handover

    def make_world(self, rng: random.Random, *, two_phase: bool) -> World:
        return World(rng, two_phase=two_phase)

    def protocol(self, owner: Owner) -> CommitProtocol:
        """As long as there are faults, processes have looked for leftovers a moment ago, and do so if they must."""
        return self.protocol_class(query_of(owner), self.world.now_ms if self.world.faults else None)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def transactional_id(self, epoch: int, run: str, process: Process, batch: int, slot: int) -> str:
        return f"{epoch}-{process.name}-{process.free_number(batch)}"

    def run_name(self, number: int) -> str:
        return f"run{number}"

    def new_run(self) -> SparkRun:
        """A query of its own, of a pipeline, or one that the last pipeline starts again."""
        number, draw = len(self.runs), self.choices.random()
        last = self.runs[-1] if self.runs and self.world.faults else None
        if draw < 0.3 and last is not None and last.session and last.driver.result is not None:
            run = SparkRun(self, number, last.session, recovers=False)
        else:
            session = f"session{number}" if draw < 0.6 else ""
            run = SparkRun(self, number, session, recovers=bool(session))
        self.runs.append(run)
        return run

    # -- an operator

    def start_recovery(self) -> None:
        """`sskafka pipeline recover`, while anything may be running."""
        self.recoveries += 1
        self.actors.append(Actor(f"{OPERATOR} {self.recoveries}", self._recover(f"{OPERATOR}{self.recoveries}")))

    def _recover(self, name: str) -> Generator[Any, Any, None]:
        protocol = self.protocol(Owner("", name))
        shown: Decision | None = yield PeekDecision()
        if self.choices.random() < 0.3:
            yield from protocol.move()
        settled = yield from protocol.recover()
        assert settled.phase is not Phase.DECIDED, "what was decided is not settled"
        assert settled.swept, "what older runs left open is not settled"
        if shown is not None and shown.phase is Phase.PARTIAL:
            yield from protocol.declare(shown.batch, shown, written=self.choices.random() < 0.5)

    # -- a seed

    def go(self) -> "Simulation":
        self.new_run()
        for _ in range(FAULTY_STEPS):
            self._maybe_disturb()
            self._step()
        self.world.faults = False
        self._run_to_the_end("what was still alive")
        self.batches += BATCHES_AFTERWARDS  # so that the last run has something to do
        self.world.sweeps_that_miss = misses = self.choices.choice((0, 1))
        last = self._last_run("the last run")
        if misses and last.driver.result != "done":  # a transaction that it has not found may have hidden a part
            self.world.sweeps_that_miss = 0
            last = self._last_run("the run after the last one")
        self._check(last)
        return self

    def _last_run(self, what: str) -> SparkRun:
        """A run that nobody may end: no newer one claims the query, and none of its processes fails."""
        last = self.new_run()
        self.actors.append(Actor("intruder", self._intrude(Owner(last.name, last.session))))
        self._run_to_the_end(what)
        return last

    def _intrude(self, owner: Owner) -> Generator[Any, Any, None]:
        """Begin to do what the protocol has to refuse, from the moment on at which the owner has claimed the query."""
        choices = self.choices
        yield Wait(lambda: self.world.last is not None and self.world.last.owner == owner)
        for number in range(INTRUSIONS):
            yield Wait(lambda: self.runs[-1].driver.is_done or choices.random() < 0.05)
            decision: Decision | None = self.world.last
            assert decision is not None
            session, _, run = choices.choice(("/nobody", *decision.past_owners)).partition("/")
            superseded = self.protocol(Owner(run, session))
            copy = self.protocol_class(query_of(Owner(f"copy{number}"), "a copy of the checkpoint"))
            late = Attempt(decision.batch + 1, (Part(self.world.initialize("0-late-0"), 0),))
            epoch = choices.randrange(decision.epoch)
            refused = [superseded.commit(late, epoch, 0), superseded.abort(late, epoch), copy.claim(), copy.recover()]
            if run != "nobody":
                refused.append(superseded.claim())
            with suppress(*Failures):
                yield from choices.choice(refused)

    def _maybe_disturb(self) -> None:
        rng, draw = self.rng, self.rng.random()
        if draw < 0.012:
            self.runs[-1].crash(rng)
        elif draw < 0.05:
            if self.actors:
                rng.choice(self.actors).wakes_at_ms = self.world.now_ms + rng.choice([20, 300, 1_500])
        elif draw < 0.06 or (draw < 0.1 and self._is(Phase.DECIDED)):
            self.world.pass_time(rng.choice([100, 400, 1_200]))
        elif draw < 0.062 or (draw < 0.1 and self._is(Phase.PARTIAL)):
            self.start_recovery()
        newest = self.runs[-1].driver
        takes_over = newest.is_done or (newest.wakes_at_ms > self.world.now_ms and draw > 0.93)
        if takes_over and len(self.runs) < RUNS_MAX:
            self.new_run()

    def _is(self, phase: Phase) -> bool:
        """Phases are short, and much may go wrong in them."""
        return self.world.last is not None and self.world.last.phase is phase

    def _step(self) -> bool:
        self.world.pass_time(self.rng.uniform(0, 6) if self.world.faults else 0.01)
        ready = [actor for actor in self.actors if actor.can_step(self.world.now_ms)]
        if not ready:
            return False
        chosen = self.rng.choice(ready)
        chosen.step(self.world)
        if chosen.is_done:
            self.actors.remove(chosen)
        if self._is(Phase.PARTIAL):
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
        assert last.driver.result == "done", f"the query is stuck: {last.driver.result or last.driver.error}"
        lost = self.rows() - self.world.topic - self.world.excused_lost
        assert not lost, f"rows are lost: {sorted(lost)}"
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
