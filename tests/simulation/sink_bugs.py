"""Mistakes that the sink's protocol made once, or could make: the simulation must find each of them."""

from collections.abc import Generator
from typing import Any

from sink_run import Simulation
from sink_spark import Process
from sink_world import BrokersAwayError, World, epoch_of

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.commit_effects import (
    AbortOlder,
    CommitParts,
    FenceDriver,
    PeekDecision,
    ReadDecision,
    Steps,
    WriteDecision,
    Written,
)
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover, Plan
from sskafka.pipelines.connector.decision import Decision, Fate, Part


class AbortsDecidedBatches(CommitProtocol):
    """`abort` does not look for the decision."""

    def abort(self, attempt: Attempt, epoch: int | None) -> Steps[Decision | None]:
        yield from self._abort_parts(attempt.parts)
        return None


class DecidesUnseen(CommitProtocol):
    """Whether the transactions are open is not asked."""

    def _inspect(self, batch: int, parts: Any) -> Steps[None]:
        yield from ()

    def _completed(self, held: Decision, attempt: Attempt) -> Plan:
        raise self._failed(held)  # as it was when nothing could be completed


class TakesRefusedForDone(CommitProtocol):
    """A commit that is refused counts as one that was done before."""

    def _fate_of_refused(self, part: Part) -> Steps[Fate]:
        yield from ()
        return Fate.COMMITTED


class DecidesInAnyEpoch(CommitProtocol):
    """A run that was superseded may still decide."""

    def _hold(self, epoch: int) -> Steps[tuple[Decision, Transaction]]:
        driver, last = yield from self._fence_and_read()
        assert last is not None
        return last, driver

    def _sweep(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        if held.owner != self._query.owner:
            return held, driver
        return (yield from super()._sweep(held, driver))


class ReadsBeforeFencing(CommitProtocol):
    """The last decision is read while another driver can still make one."""

    def _fence_and_read(self) -> Steps[tuple[Transaction, Decision | None]]:
        last = yield ReadDecision()
        return (yield FenceDriver()), last


class KeepsItsEpochWhenItAborts(CommitProtocol):
    """A commit that the driver gave up goes on in its process, and decides what is aborted."""

    def abort(self, attempt: Attempt, epoch: int | None) -> Steps[Decision | None]:
        driver, last = yield from self._fence_and_read()
        if last is not None and last.batch == attempt.batch and last.holds(attempt.parts):
            yield from self._settle(last, driver)
            return last
        yield from self._abort_parts(attempt.parts)
        return last


class AbortsBeforeItClaims(CommitProtocol):
    """What older runs left open is aborted while they can still decide it."""

    def _take_over(self) -> Steps[tuple[Decision, Transaction]]:
        while True:
            driver, last = yield from self._fence_and_read()
            if last is not None and last.owner == self._query.owner:
                return last, driver
            self._refuse_owner(last)
            claimed = (last or Decision(self._query.query_id)).claimed_by(self._query.owner, "")
            yield AbortOlder(claimed.epoch)
            if (yield WriteDecision(claimed, driver)):
                return claimed, driver


class WritesRepeatedBatches(CommitProtocol):
    """The same batch again is taken for a new one."""

    def plan(self, held: Decision, attempt: Attempt) -> Plan:
        return Plan(decide=attempt.parts, writes=True)


class ForgetsItsOwnIntent(CommitProtocol):
    """An intent whose answer was lost is taken for that of another run when the driver aborts."""

    def abort(self, attempt: Attempt, epoch: int | None) -> Steps[Decision | None]:
        _, last = yield from self._fence_and_read()
        if last is not None and last.is_committed and last.batch == attempt.batch:
            return last
        yield from self._abort_parts(attempt.parts)
        return last


class TrustsItsMemory(CommitProtocol):
    """A process that was fenced takes the driver's id again, and decides by what it knew before."""

    def commit(self, attempt: Attempt, epoch: int | None, now_ms: float) -> Steps[Decision]:
        if self._kept is not None:
            self._kept = self._kept[0], (yield FenceDriver())
        return (yield from super().commit(attempt, epoch, now_ms))


class CommitsPartsInTheBackground(CommitProtocol):
    """Spark begins the next batch while parts of the decided one are still open, and its tasks use their ids again."""

    def _carry_out(self, intent: Decision, driver: Transaction, plan: Plan, attempt: Attempt) -> Steps[Decision]:
        yield from ()
        self._unrecorded = intent, driver
        return intent

    def record(self) -> Steps[None]:
        unrecorded, self._unrecorded = self._unrecorded, None
        if unrecorded is not None:
            yield from self._settle(*unrecorded)


class LeavesFailedAttemptsOpen(CommitProtocol):
    """Nobody aborts what older epochs left, and two-phase transactions have no timeout."""

    def _sweep(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        yield from ()
        return held, driver


class TakesARefusedHandoverForDone(CommitProtocol):
    """The driver's transaction with the rows of a batch has timed out, and the batch counts as committed."""

    def _outcome_of_handed(self, attempt: Attempt, epoch: int) -> Steps[Decision]:
        yield from ()
        assert attempt.handed is not None
        return attempt.handed.decision


class CommitsOtherPartsUndecided(CommitProtocol):
    """The decision that a task wrote for its part stays as it is, though the batch has other parts."""

    def _commit_handed(self, attempt: Attempt, handed: Handover, epoch: int) -> Steps[Decision]:
        yield CommitParts(attempt.parts)
        return handed.decision


class LooksUpBehindOpenTransactions(CommitProtocol):
    """A part is looked up while an attempt that failed hides it; two-phase transactions do so forever."""

    def _parts_committed(self, held: Decision) -> Steps[Decision]:
        steps = super()._parts_committed(held)
        answer = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = None if isinstance(effect, AbortOlder) else (yield effect)


class RecordsWhatItCannotSee(CommitProtocol):
    """A part that cannot be looked up at the moment counts as forgotten for good."""

    def _fate_of_refused(self, part: Part) -> Steps[Fate]:
        try:
            return (yield from super()._fate_of_refused(part))
        except BrokersAwayError:
            return Fate.UNKNOWN


class RecoversWhatItDoesNotOwn(CommitProtocol):
    """Recovery does nothing if the query is claimed already, by a step before it."""

    def recover(self) -> Steps[Decision]:
        yield from self.claim()
        return (yield ReadDecision())


class DeclaresWhatHasChanged(CommitProtocol):
    """An operator declares a batch that a run, or another operator, has completed since."""

    def declare(self, batch: int, shown: Decision | None, *, written: bool) -> Steps[Decision]:
        driver, last = yield from self._fence_and_read()
        return (yield from self._change(self._or_nothing(last).declared(batch, written=written), driver))


class FencesBeforeItIsRefused(CommitProtocol):
    """A copy of a checkpoint, or a late task of an older run, ends the batch of the live run before it is refused."""

    def _peek_unless_refused(self) -> Steps[Decision | None]:
        return (yield PeekDecision())


class HoldsAnEpochThatHasEnded(CommitProtocol):
    """A driver that was superseded notices that only after it has fenced the live run."""

    def _hold(self, epoch: int) -> Steps[tuple[Decision, Transaction]]:
        driver, last = yield from self._fence_and_read()
        if last is None or last.epoch != epoch:
            raise self._superseded()
        return last, driver


class FencesWhenItAborts(CommitProtocol):
    """A superseded driver that aborts its batch ends the batch of the live run, too."""

    def _has_ended(self, last: Decision, epoch: int | None) -> bool:
        return False


class LeavesTheHandoverInPlace(Simulation):
    """Two tasks take the same handover, and write in one transaction."""

    def take_handover(self) -> Handover | None:
        return self._handover


class SharesIdsBetweenAttempts(Simulation):
    """A late attempt initializes the transactional id of the attempt that took its place."""

    def transactional_id(self, epoch: int, run: str, process: Process, batch: int, slot: int) -> str:
        return f"{epoch}-{run}-{slot}"


class _SweepsEverything(World):
    def is_older(self, name: str, epoch: int) -> bool:
        return name != "driver"

    def _abort_leftovers(self, epoch: int) -> Generator[Any, Any, None]:
        return self._abort_older(epoch)


class SweepsNewerEpochs(Simulation):
    """A slow sweeper aborts the transactions of those who came after it."""

    def make_world(self, rng: Any, *, two_phase: bool) -> World:
        return _SweepsEverything(rng, two_phase=two_phase)


class _ForgetsCopies(World):
    def resent(self) -> Written:
        return Written.ONCE


class WritesBesideLateCopies(Simulation):
    """A late copy of the commit of the driver's last transaction commits the next one, which is not complete."""

    def make_world(self, rng: Any, *, two_phase: bool) -> World:
        return _ForgetsCopies(rng, two_phase=two_phase)


class _KeepsEpochs(World):
    def end_leftover(self, transaction: Transaction) -> None:
        self._abort_exactly(transaction)


class EndsLeftoversAsTheyAre(Simulation):
    """An attempt whose transaction is aborted as a leftover still writes, with a producer that is not fenced."""

    def make_world(self, rng: Any, *, two_phase: bool) -> World:
        return _KeepsEpochs(rng, two_phase=two_phase)


class _LeavesOlderEpochs(World):
    def _abort_leftovers(self, epoch: int) -> Generator[Any, Any, None]:
        found: list[str] = yield self._listed
        for name in [name for name in found if epoch_of(name) == epoch]:
            self.end_leftover(Transaction(name, 1, self.producers[name].epoch))


class SweepsOnce(Simulation):
    """What a sweep has not found, because its coordinator changed, stays open as long as the run goes on."""

    def make_world(self, rng: Any, *, two_phase: bool) -> World:
        return _LeavesOlderEpochs(rng, two_phase=two_phase)


class KeepsItsRunWhenItIsStartedAgain(Simulation):
    """A query that is started again in the same process is the same run, which has given up a batch."""

    def run_name(self, number: int) -> str:
        return "run"


PROTOCOL_BUGS: tuple[type[CommitProtocol], ...] = (
    AbortsDecidedBatches,
    DecidesUnseen,
    TakesRefusedForDone,
    DecidesInAnyEpoch,
    ReadsBeforeFencing,
    KeepsItsEpochWhenItAborts,
    AbortsBeforeItClaims,
    WritesRepeatedBatches,
    ForgetsItsOwnIntent,
    TrustsItsMemory,
    CommitsPartsInTheBackground,
    LeavesFailedAttemptsOpen,
    TakesARefusedHandoverForDone,
    CommitsOtherPartsUndecided,
    LooksUpBehindOpenTransactions,
    RecordsWhatItCannotSee,
    RecoversWhatItDoesNotOwn,
    DeclaresWhatHasChanged,
    FencesBeforeItIsRefused,
    HoldsAnEpochThatHasEnded,
    FencesWhenItAborts,
)
OTHER_BUGS: tuple[type[Simulation], ...] = (
    LeavesTheHandoverInPlace,
    SharesIdsBetweenAttempts,
    SweepsNewerEpochs,
    SweepsOnce,
    WritesBesideLateCopies,
    EndsLeftoversAsTheyAre,
    KeepsItsRunWhenItIsStartedAgain,
)


def simulation_with(bug: type[CommitProtocol]) -> type[Simulation]:
    return type(bug.__name__, (Simulation,), {"protocol_class": bug})


BUGS = (*map(simulation_with, PROTOCOL_BUGS), *OTHER_BUGS)
