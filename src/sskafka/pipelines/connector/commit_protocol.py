"""The sink's commit protocol: how a query's tasks and drivers make each batch visible exactly once. Pure: no I/O.

Every operation is a generator. It yields what it wants done (an effect) and is sent the answer; `committing` performs
the effects on a cluster, the simulation performs them on a model of one, in every order. docs/adr/0016 has the states.

    task      claim ─> epoch E ─> writes a transaction of its own, named after E, leaves it open
    driver    commit: hold E ─> settle what was decided before ─> inspect every part ─> decide ─> settle ─> sweep
                      └── the next batch of the same process: hold what the last one left, without asking
              abort:  hold   ─> decided? forward : release E, then abort the parts

Rules that keep it safe:

1. Fence, then read, then write. `FenceDriver` takes the transactional id of the query's driver. Nobody else can write a
   decision until they fence in turn, and whoever was fenced reads again: writes are a compare-and-set. So a process
   that was not fenced since its last write knows the last decision, and writes the next one without reading. If it was
   fenced, that write fails, and the process fences and reads as any other.
2. Only the owner of the newest epoch decides. A run claims before its first record is written.
3. A batch number is decided once. The same batch again is dropped; another batch under the same number is refused.
4. A batch is decided when every one of its transactions was seen open, with time left to commit it.
5. A decided batch is never aborted. `abort` looks for the decision first, and gives the epoch up before it aborts
   anything, so that a commit that is still under way elsewhere cannot decide any more.
6. Nobody but its task attempt ever initializes the transactional id of an open transaction of the newest epoch: ids
   name the epoch and the process. Sweeping aborts older epochs, and of its own epoch exactly the transactions it saw.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.decision import NO_BATCH, Decision, Fate, Owner, Part, Phase
from sskafka.pipelines.connector.errors import (
    CheckpointError,
    CommitFailedError,
    ConnectorError,
    FencedError,
    NotDecidedError,
)

T = TypeVar("T")

TRIES_MAX = 30
"""So often an operation begins again because another process took the driver's id meanwhile."""


@dataclass(frozen=True, slots=True)
class FenceDriver:
    """Initialize the transactional id of the query's driver. Answer: its `Transaction`."""


@dataclass(frozen=True, slots=True)
class ReadDecision:
    """Answer: the query's last committed `Decision`, or None."""


@dataclass(frozen=True, slots=True)
class PeekDecision:
    """As `ReadDecision`, without waiting for writes under way: the answer may be older than the last decision."""


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """Answer: True, or False when the driver's id was taken over. After False the record may or may not be there."""

    decision: Decision
    driver: Transaction


@dataclass(frozen=True, slots=True)
class Inspect:
    """Ask the coordinator for the state of a transaction. Answer: `Condition`."""

    part: Part


@dataclass(frozen=True, slots=True)
class CommitPart:
    """Answer: "" when the transaction is committed, or why it can never be."""

    part: Part


@dataclass(frozen=True, slots=True)
class AbortPart:
    """Abort a transaction that nobody will commit; failing to do so does no harm."""

    part: Part


@dataclass(frozen=True, slots=True)
class LookUp:
    """Answer: whether readers of committed records see the part; None when that cannot be found out."""

    part: Part


@dataclass(frozen=True, slots=True)
class AbortOlder:
    """Abort the open transactions of the query's epochs before this one, and fence their producers."""

    epoch: int


@dataclass(frozen=True, slots=True)
class AbortLeftovers:
    """Abort the open transactions of this epoch: those of attempts that failed or came second."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait a moment at random, so that processes that fence each other do not do so forever."""

    tries: int


Effect: TypeAlias = (
    FenceDriver
    | ReadDecision
    | PeekDecision
    | WriteDecision
    | Inspect
    | CommitPart
    | AbortPart
    | LookUp
    | AbortOlder
    | AbortLeftovers
    | Pause
)
Steps: TypeAlias = Generator[Effect, Any, T]


class Condition(NamedTuple):
    """A transaction as its coordinator describes it."""

    is_open: bool
    """The same transaction, and neither committed nor aborted."""
    state: str
    time_left_ms: float = float("inf")


class Query(NamedTuple):
    """What does not change while a query runs."""

    query_id: str
    name: str
    """As messages call it."""
    owner: Owner
    checkpoint: str = ""
    reserve_ms: int = 0
    """How much time a transaction must have left when its batch is decided."""


class Attempt(NamedTuple):
    """A batch as one run has written it."""

    batch: int
    parts: tuple[Part, ...] = ()
    offsets: str = ""
    had_failures: bool = False
    """Whether a task of the batch was tried more than once."""


class Plan(NamedTuple):
    """What to do with an attempt."""

    decide: tuple[Part, ...] = ()
    drop: tuple[Part, ...] = ()
    writes: bool = False


class CommitProtocol:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._kept: tuple[Decision, Transaction] | None = None
        """The last decision that this process wrote, and the driver that wrote it."""

    # -- owning a query

    def claim(self) -> Steps[int]:
        """The epoch of this run: the one it has, or a new one. What older runs left is settled and aborted."""
        last = yield PeekDecision()
        if last is not None and last.owner == self._query.owner:
            return int(last.epoch)
        held, driver = yield from self._take_over()
        held, driver = yield from self._settle(held, driver)
        held, driver = yield from self._sweep(held, driver)
        return held.epoch

    def _take_over(self) -> Steps[tuple[Decision, Transaction]]:
        for tries in range(TRIES_MAX):
            driver, last = yield from self._fence_and_read()
            if last is not None and last.owner == self._query.owner:
                return last, driver
            self._refuse_owner(last)
            claimed = (last or Decision(self._query.query_id)).claimed_by(self._query.owner, self._query.checkpoint)
            if (yield WriteDecision(claimed, driver)):
                return claimed, driver
            yield Pause(tries)
        raise self._contended()

    def _fence_and_read(self) -> Steps[tuple[Transaction, Decision | None]]:
        driver = yield FenceDriver()
        return driver, (yield ReadDecision())

    def _refuse_owner(self, last: Decision | None) -> None:
        if last is None:
            return
        if last.has_superseded(self._query.owner):
            raise self._superseded()
        mine = self._query.checkpoint
        if last.query_id == self._query.query_id and mine and last.checkpoint not in {"", mine}:
            raise CheckpointError(
                f"the checkpoint {mine} has the id of {last.checkpoint}: one is a copy of the other, and both would "
                f"write batches of one query {self._query.name!r}. Start the copy with an empty checkpointLocation. "
                "If the checkpoint was moved, `sskafka pipeline recover --moved` records its new place"
            )

    def _hold(self, epoch: int) -> Steps[tuple[Decision, Transaction]]:
        """The last decision, while nobody else can write one; raises FencedError where the epoch is over."""
        driver, last = yield from self._fence_and_read()
        if last is None:
            raise CheckpointError(
                f"the control topic has lost what it knew of the query {self._query.name!r}: this run claimed it and "
                "the record is gone. Restore the control topic, or see `sskafka pipeline recover`"
            )
        if last.epoch != epoch:
            raise self._superseded()
        return last, driver

    def _superseded(self) -> FencedError:
        return FencedError(f"a newer run of the query {self._query.name!r} has taken over; this one ends")

    def _contended(self) -> ConnectorError:
        return ConnectorError(
            f"other processes took the driver's id of the query {self._query.name!r} {TRIES_MAX} times in a row; "
            "nothing was decided. Several runs of one query seem to start over and over"
        )

    # -- going forward

    def _settle(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        """Commit what was decided and record what became of it."""
        while held.phase is Phase.DECIDED:
            parts = []
            for part in held.parts:
                parts.append((yield from self._forward(part)))  # noqa: PERF401  a comprehension cannot yield
            settled = held.settled(parts)
            if (yield WriteDecision(settled, driver)):
                return settled, driver
            held, driver = yield from self._hold(held.epoch)
        return held, driver

    def _forward(self, part: Part) -> Steps[Part]:
        if part.fate is Fate.COMMITTED:
            return part
        if not (yield CommitPart(part)):
            return part._replace(fate=Fate.COMMITTED)
        match (yield LookUp(part)):
            case True:
                return part._replace(fate=Fate.COMMITTED)
            case False:
                return part._replace(fate=Fate.ABORTED)
            case _:
                return part._replace(fate=Fate.UNKNOWN)

    def _sweep(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        """Abort what older epochs left open. They can decide nothing, and what they decided is settled."""
        while not held.swept:
            yield AbortOlder(held.epoch)
            swept = replace(held, swept=True)
            if (yield WriteDecision(swept, driver)):
                return swept, driver
            held, driver = yield from self._hold(held.epoch)
            held, driver = yield from self._settle(held, driver)
        return held, driver

    # -- committing a batch

    def commit(self, attempt: Attempt, epoch: int | None) -> Steps[Decision]:
        """Decide the batch and commit its parts. `epoch` is that of the tasks, None when none of them wrote."""
        if epoch is None:
            epoch = yield from self.claim()
        if not attempt.parts and (yield from self._has_nothing_to_do(epoch)):
            return Decision(self._query.query_id, epoch)
        kept = self._take_kept(attempt, epoch)
        for tries in range(TRIES_MAX):
            held, driver = kept or (yield from self._hold_settled(epoch))
            kept = None
            plan = self.plan(held, attempt)
            if not plan.writes:
                yield from self._abort_parts(plan.drop)
                return held
            yield from self._inspect(attempt.batch, plan.decide)
            intent = self._of_this_query(held).decided(attempt.batch, plan.decide, attempt.offsets)
            if (yield WriteDecision(intent, driver)):
                return (yield from self._carry_out(intent, driver, plan, attempt))
            yield Pause(tries)
        raise self._contended()

    def _take_kept(self, attempt: Attempt, epoch: int) -> tuple[Decision, Transaction] | None:
        """What the last commit of this process left, where the attempt is a later batch of the same run. Anything else
        is looked up: only a write shows that what is kept is stale."""
        kept, self._kept = self._kept, None
        if kept is None or not attempt.parts or not NO_BATCH < kept[0].batch < attempt.batch:
            return None
        return kept if kept[0].epoch == epoch and kept[0].owner == self._query.owner else None

    def _hold_settled(self, epoch: int) -> Steps[tuple[Decision, Transaction]]:
        held, driver = yield from self._hold(epoch)
        held, driver = yield from self._settle(held, driver)
        return (yield from self._sweep(held, driver))

    def _has_nothing_to_do(self, epoch: int) -> Steps[bool]:
        last = yield PeekDecision()
        if last is None or last.epoch != epoch or not last.is_committed:
            return False
        return self._of_this_query(last).batch != NO_BATCH

    def plan(self, held: Decision, attempt: Attempt) -> Plan:
        """What the batch number and the last decision make of an attempt. Raises where going on would lose rows or
        write them twice."""
        last_batch = self._of_this_query(held).batch
        if held.phase is Phase.PARTIAL:
            if attempt.batch == last_batch:
                return self._completed(held, attempt)
            raise self._failed(held)
        if attempt.batch > last_batch:
            if last_batch == NO_BATCH and attempt.batch > 0:
                raise self._lost_control_topic(attempt.batch)
            return Plan(decide=attempt.parts, writes=bool(attempt.parts) or last_batch == NO_BATCH)
        if attempt.batch < last_batch:
            raise self._older_checkpoint(attempt.batch, last_batch)
        if held.holds(attempt.parts):
            return Plan()  # decided by this very attempt; the answer was lost
        self._refuse_other_rows(held, attempt)
        return Plan(drop=attempt.parts)

    def _of_this_query(self, held: Decision) -> Decision:
        return held if held.query_id == self._query.query_id else held.of_another_query(self._query.query_id)

    def _completed(self, held: Decision, attempt: Attempt) -> Plan:
        """Parts of the decided batch that brokers aborted are taken from this attempt of the batch."""
        there = held.parts_that(Fate.COMMITTED)
        if held.parts_that(Fate.UNKNOWN):
            raise self._failed(held)
        if not there:
            return Plan(decide=attempt.parts, writes=True)
        again = {part.slot: part for part in attempt.parts}
        same = len(again) == len(held.parts) and all(
            part.slot in again and part.holds_the_rows_of(again[part.slot]) for part in held.parts
        )
        if not same:
            raise self._failed(held)
        missing = tuple(again[part.slot] for part in held.parts_that(Fate.ABORTED))
        repeated = tuple(again[part.slot] for part in there)
        return Plan(decide=(*there, *missing), drop=repeated, writes=True)

    def _refuse_other_rows(self, held: Decision, attempt: Attempt) -> None:
        """A batch under the number of one that is committed must be the same batch."""
        if held.offsets and attempt.offsets:
            same = held.offsets == attempt.offsets
        elif all(part.is_known for part in (*held.parts, *attempt.parts)):
            same = _sum(held.parts) == _sum(attempt.parts)
        else:
            same = True  # decided by a version that did not count rows
        if not same:
            rows = sum(part.rows for part in attempt.parts)
            raise CheckpointError(
                f"batch {attempt.batch} of query {self._query.name!r} is in the topic with {held.rows} rows, and Spark "
                f"has written another batch {attempt.batch} with {rows} rows: the checkpoint is older than the output "
                "or a copy, and plans the batch anew. Nothing was committed. Use the newest checkpoint. "
                "`sskafka pipeline recover` shows what was decided and says how to go on"
            )

    def _inspect(self, batch: int, parts: Sequence[Part]) -> Steps[None]:
        for part in parts:
            if part.fate is not Fate.OPEN:
                continue
            condition = yield Inspect(part)
            if not condition.is_open:
                raise NotDecidedError(
                    f"batch {batch} of query {self._query.name!r} was not committed: its transaction "
                    f"{part.transaction.transactional_id} is no longer open (its state is {condition.state}). "
                    "Nothing of the batch is visible; start the query again and Spark writes the batch anew. If "
                    "batches take longer than transactionTimeoutMs, raise it (and the brokers' "
                    "transaction.max.timeout.ms), write smaller batches (maxOffsetsPerTrigger), or set "
                    "transaction.two.phase.commit.enable=true on the brokers"
                )
            if condition.time_left_ms < self._query.reserve_ms:
                raise NotDecidedError(
                    f"batch {batch} of query {self._query.name!r} was not committed: its transaction "
                    f"{part.transaction.transactional_id} times out in {max(0, condition.time_left_ms):.0f} ms, too "
                    f"soon to commit it safely ({self._query.reserve_ms} ms are needed). Nothing of the batch is "
                    "visible; start the query again with a higher transactionTimeoutMs (and the brokers' "
                    "transaction.max.timeout.ms), or with smaller batches (maxOffsetsPerTrigger)"
                )

    def _carry_out(self, intent: Decision, driver: Transaction, plan: Plan, attempt: Attempt) -> Steps[Decision]:
        settled, driver = yield from self._settle(intent, driver)
        yield from self._abort_parts(plan.drop)
        if settled.phase is Phase.PARTIAL:
            raise self._failed(settled)
        if attempt.had_failures:
            yield AbortLeftovers(settled.epoch)
        self._kept = (settled, driver) if settled.swept else None
        return settled

    def _abort_parts(self, parts: Sequence[Part]) -> Steps[None]:
        for part in parts:
            yield AbortPart(part)

    # -- when Spark gives a batch up

    def abort(self, attempt: Attempt, epoch: int | None) -> Steps[Decision | None]:
        """Spark calls this whenever a commit failed, whatever the reason: the batch may be decided."""
        last = None
        for tries in range(TRIES_MAX):
            driver, last = yield from self._fence_and_read()
            if last is None:
                break
            if last.batch == attempt.batch and last.holds(attempt.parts):
                settled, _ = yield from self._settle(last, driver)
                return settled
            if not self._owns(last, epoch):
                break  # a superseded run can decide nothing any more
            released = last.released()
            if (yield WriteDecision(released, driver)):
                last, driver = yield from self._settle(released, driver)
                yield AbortOlder(released.epoch)
                break
            yield Pause(tries)
        yield from self._abort_parts(attempt.parts)
        return last

    def _owns(self, last: Decision, epoch: int | None) -> bool:
        return last.owner == self._query.owner if epoch is None else last.epoch == epoch

    # -- what cannot be mended here

    def _failed(self, held: Decision) -> CommitFailedError:
        lost = held.parts_that(Fate.ABORTED, Fate.UNKNOWN)
        names = ", ".join(part.transaction.transactional_id for part in lost)
        unknown = any(part.fate is Fate.UNKNOWN for part in lost)
        rows = sum(part.rows for part in lost) if all(part.is_known for part in lost) else None
        return CommitFailedError(
            f"batch {held.batch} of query {self._query.name!r} was decided, but {len(lost)} of its {len(held.parts)} "
            f"transactions could not be committed ({names}): brokers "
            f"{'have forgotten' if unknown else 'aborted'} them after the decision. "
            f"{'Records' if rows is None else f'{rows} records'} are missing in the topic. The time between a task's "
            "first record and the commit, restarts included, must stay below transactionTimeoutMs. The next run "
            "supplies the missing records when Spark writes the same rows again; `sskafka pipeline recover` shows "
            "what is there and what is missing, and settles it by hand"
        )

    def _older_checkpoint(self, batch: int, last_batch: int) -> CheckpointError:
        return CheckpointError(
            f"Spark writes batch {batch} of query {self._query.name!r}, but batch {last_batch} is in the topic "
            "already: the checkpoint is older than the output. Use the newest checkpoint, or start anew with "
            "another checkpointLocation"
        )

    def _lost_control_topic(self, batch: int) -> CheckpointError:
        return CheckpointError(
            f"Spark writes batch {batch} of query {self._query.name!r}, but the control topic knows of no batch before "
            "it: the control topic was deleted, or the query ran with deliveryGuarantee=at-least-once until now. "
            f"Whether batch {batch} is in the topic already cannot be told. `sskafka pipeline recover` with "
            f"--batch {batch} --declare missing (or written) records which"
        )


def _sum(parts: Sequence[Part]) -> tuple[int, int]:
    """Rows and digests of a batch, however they are spread over tasks."""
    return sum(part.rows for part in parts), sum(part.digest for part in parts)
