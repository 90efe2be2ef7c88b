"""The commit protocol of the sink: how tasks and drivers of a query make each batch visible exactly once. Pure: no I/O.

Every operation is a generator. It yields an effect (`commit_effects`), which the caller performs, and receives the
result. `committing` performs the effects on a cluster; the simulation performs them on a model of one, in every order.
docs/adr/0016 describes the states.

    task      claim ─> epoch E ─> writes in its own transaction, named after E, and leaves it open
    driver    commit: hold E ─> settle earlier decision ─> inspect every part ─> decide ─> commit every part ─> sweep
                      └── next batch of the same process: uses what the last one left, without asking
              record: write the outcome, while Spark begins the next batch
              abort:  hold   ─> decided? complete it : release E, then abort the parts
    operator  recover: claim ─> settle earlier decision ─> sweep;  declare, move: claim with a changed decision

    A small batch of one task, once the batch before it had one task, too:

    driver    hand over what the last commit left ─┐                                 ┌─> commit that transaction
    task      takes it ─> writes rows and decision ┴─ in one transaction of the driver ┘

The rules that make it safe:

1. Fence, then read, then write. `FenceDriver` initializes the transactional id of the query's driver. After that no
   other process can write a decision until it fences in turn, and a process that was fenced must read again: each write
   is a compare-and-set. A process that was not fenced since its last write therefore knows the last decision and may
   write the next one without reading. If it was fenced, the write fails, and the process fences and reads again.
   Fencing ends the batch that is being written in the driver's transaction (rule 8). A process therefore looks at the
   last visible decision first, and does not fence if that refuses it: epochs and lists of superseded owners only grow,
   and what is visible is never newer than the last decision.
2. Only the owner of the newest epoch decides. A run claims an epoch before its first record is written.
3. A batch number is decided once. The same batch again is dropped; a different batch with the same number is refused.
4. A batch is decided only after each of its transactions was seen open, with enough time left to commit it.
5. A decided batch is never aborted. `abort` looks for the decision first, and releases the epoch before it aborts a
   transaction, so that a commit that is still running elsewhere can no longer decide.
6. Only the task attempt itself initializes the transactional id of an open transaction of the newest epoch: ids
   contain the epoch and the process. A sweep aborts transactions of older epochs, and of its own epoch exactly those
   that it has seen. It is repeated from time to time, because it does not find a transaction whose coordinator changes.
7. Spark begins the next batch only after every part of a decided batch is committed: tasks use their transactional ids
   again, which would abort an open part. That the parts are committed may be recorded later. If nobody records it, the
   next owner finds the batch decided, commits its parts again, and looks up those whose ids were used since.
8. What allows a process to write without fencing, the driver's transaction and the last decision, is in one place at a
   time: in the process that commits, in a file (`handover`), in a task, or in the message of that task. Who takes it
   removes it. If it is lost, the next commit fences and reads. A task that has it writes its rows and a decision that
   says "committed" in the driver's transaction. Brokers make both visible at once, or none. The driver's transaction
   times out like any other; then nothing was decided.
9. The end of a transaction does not change the producer's epoch, so a late copy of the request would end the driver's
   next transaction before it is complete. If a request had to be sent again, the driver is fenced before it writes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sskafka.client.transactions import Transaction
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.commit_effects import (
    AbortLeftovers,
    AbortOlder,
    AbortPart,
    CommitDriver,
    CommitParts,
    FenceDriver,
    InspectParts,
    LookUp,
    Pause,
    PeekDecision,
    ReadDecision,
    Steps,
    WriteDecision,
    Written,
)
from sskafka.pipelines.connector.decision import NO_BATCH, Decision, Fate, Owner, Part, Phase
from sskafka.pipelines.connector.errors import (
    CheckpointError,
    CommitFailedError,
    ConnectorError,
    DriverTransactionEndedError,
    FencedError,
    NotDecidedError,
)

TRIES_MAX = 30
"""Number of times that an operation starts over because another process has taken the driver's id."""
SWEEP_AFTER_MS = 60_000
"""Time after which a commit looks for leftovers, though it knows of none. Spark does not tell of all attempts."""
PEEKS_MAX = 5
"""Number of times that a process looks again, because the new location of its checkpoint may not be visible yet."""


class Query(NamedTuple):
    """Properties that do not change while a query runs."""

    query_id: str
    name: str
    """The name that messages use."""
    owner: Owner
    checkpoint: str = ""
    reserve_ms: int = 0
    """The time that a transaction must have left when its batch is decided."""


class Handover(NamedTuple):
    """The driver's producer and what its holder knows. Only one process has it, and passes it on (rule 8)."""

    decision: Decision
    """The last decision. In the message of a task: the one that the task has written with its rows."""
    driver: Transaction
    sequences: tuple[tuple[TopicPartition, int], ...] = ()
    """The next sequence number of the producer for each partition; the protocol does not use them."""
    was_resent: bool = False
    """In the message of a task: whether a request was sent again. The protocol does not use it."""


class Attempt(NamedTuple):
    """A batch as one run has written it."""

    batch: int
    parts: tuple[Part, ...] = ()
    offsets: str = ""
    had_failures: bool = False
    """Whether a task of the batch is known to have been attempted more than once."""
    handed: Handover | None = None
    """What a task returns that has written its part in the driver's transaction."""
    tasks: int = 1
    """Number of tasks of the batch, with those that had no rows."""

    @property
    def other_parts(self) -> tuple[Part, ...]:
        """The parts that are not in the driver's transaction."""
        return tuple(part for part in self.parts if self.handed is None or part.transaction != self.handed.driver)


class Plan(NamedTuple):
    """What to do with an attempt."""

    decide: tuple[Part, ...] = ()
    drop: tuple[Part, ...] = ()
    writes: bool = False


class CommitProtocol:
    def __init__(self, query: Query, swept_at_ms: float | None = None) -> None:
        """`swept_at_ms`: when a commit of this process looked for leftovers."""
        self._query = query
        self._kept: tuple[Decision, Transaction] | None = None
        """The last decision that this process wrote, and the driver's transaction with which it wrote."""
        self._unrecorded: tuple[Decision, Transaction] | None = None
        """The outcome of the batch that this process has committed last, until `record` writes it."""
        self._had_one_task = True
        """Whether the last batch that this process has committed had one task."""
        self._swept_at_ms = swept_at_ms
        self._now_ms = 0.0
        """When the last commit of this process began."""

    # -- ownership of a query

    def claim(self) -> Steps[int]:
        """Return the epoch of this run, and claim one if it has none. Settles or aborts what older runs left."""
        last = yield from self._peek_unless_refused()
        if last is not None and last.owner == self._query.owner:
            return last.epoch
        held, driver = yield from self._take_over()
        held, driver = yield from self._settle(held, driver)
        held, driver = yield from self._sweep(held, driver)
        return held.epoch

    def recover(self) -> Steps[Decision]:
        """Claim the query unless it is claimed; in any case complete what was decided and abort the rest."""
        yield from self._peek_unless_refused()
        held, driver = yield from self._take_over()
        held, driver = yield from self._settle(held, driver)
        held, driver = yield from self._sweep(held, driver)
        return held

    def declare(self, batch: int, shown: Decision | None, *, written: bool) -> Steps[Decision]:
        """Declare a batch written: its next attempt is dropped; or missing: its next attempt is written completely.

        `shown` is the decision that the administrator has seen. If a run has decided or completed a batch since then,
        this raises: what was true for the one may lose rows of the other, or write them twice."""
        driver, last = yield from self._fence_and_read()
        held = self._or_nothing(last)
        if held.phase is Phase.DECIDED:
            raise ConnectorError("the last decision is not settled yet; recover without --declare first")
        if not held.is_same_batch(self._or_nothing(shown)):
            raise ConnectorError(
                f"the last decision of {self._query.name!r} has changed in the meantime: it is about batch "
                f"{held.batch}, {held.phase}. Nothing was changed; look again before you declare a batch"
            )
        return (yield from self._change(held.declared(batch, written=written), driver))

    def move(self) -> Steps[Decision]:
        """Record the location of a checkpoint that was moved."""
        driver, last = yield from self._fence_and_read()
        moved = replace(self._or_nothing(last), checkpoint=self._query.checkpoint)
        return (yield from self._change(moved, driver))

    def _or_nothing(self, last: Decision | None) -> Decision:
        return last or Decision(self._query.query_id)

    def _change(self, changed: Decision, driver: Transaction) -> Steps[Decision]:
        """Write a decision that an administrator made; this claims the query. Nothing is tried again."""
        claimed = changed.claimed_by(self._query.owner, changed.checkpoint or self._query.checkpoint)
        if (yield WriteDecision(claimed, driver)):
            return claimed
        raise ConnectorError(f"a run of {self._query.name!r} took over in the meantime; stop it and try again")

    def _take_over(self) -> Steps[tuple[Decision, Transaction]]:
        for tries in range(TRIES_MAX):
            driver, last = yield from self._fence_and_read()
            if last is not None and last.owner == self._query.owner:
                return last, driver
            self._refuse_owner(last)
            claimed = self._or_nothing(last).claimed_by(self._query.owner, self._query.checkpoint)
            if (yield WriteDecision(claimed, driver)) is Written.ONCE:
                return claimed, driver
            yield Pause(tries)
        raise self._contended()

    def _fence_and_read(self) -> Steps[tuple[Transaction, Decision | None]]:
        driver = yield FenceDriver()
        return driver, (yield ReadDecision())

    def _peek_unless_refused(self) -> Steps[Decision | None]:
        """Return the visible decision. Raises if it refuses this owner, who must not fence the one that it names."""
        for tries in range(PEEKS_MAX):
            last: Decision | None = yield PeekDecision()
            if last is None or not self._is_elsewhere(last):
                break
            yield Pause(tries)
        self._refuse_owner(last)
        return last

    def _is_elsewhere(self, last: Decision) -> bool:
        """Return whether the checkpoint of the last decision has another location than that of this process."""
        mine = self._query.checkpoint
        return bool(mine) and last.query_id == self._query.query_id and last.checkpoint not in {"", mine}

    def _refuse_owner(self, last: Decision | None) -> None:
        if last is None:
            return
        if last.has_superseded(self._query.owner):
            raise self._superseded()
        if self._is_elsewhere(last):
            raise CheckpointError(
                f"the checkpoint {self._query.checkpoint} has the id of {last.checkpoint}: one is a copy of the other, "
                f"and both would write batches of the query {self._query.name!r}. Start the copy with an empty "
                "checkpointLocation. If the checkpoint was moved, `sskafka pipeline recover --moved` records its new "
                "location"
            )

    def _hold(self, epoch: int) -> Steps[tuple[Decision, Transaction]]:
        """Return the last decision while no other process can write one; raises FencedError if the epoch has ended."""
        visible: Decision | None = yield PeekDecision()
        if visible is not None and visible.epoch > epoch:
            raise self._superseded()
        driver, last = yield from self._fence_and_read()
        if last is None:
            raise CheckpointError(
                f"the control topic has lost the state of the query {self._query.name!r}: this run has claimed "
                "it, but the record of that is gone. Restore the control topic, or see `sskafka pipeline recover`"
            )
        if last.epoch != epoch:
            raise self._superseded()
        return last, driver

    def _superseded(self) -> FencedError:
        return FencedError(f"a newer run of the query {self._query.name!r} has taken over; this one ends")

    def _contended(self) -> ConnectorError:
        return ConnectorError(
            f"other processes took the driver's id of the query {self._query.name!r} {TRIES_MAX} times in a row; "
            "nothing was decided. Several runs of the query seem to restart again and again"
        )

    # -- completing a decision

    def _settle(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        """Commit the decided parts, and record the outcome of each."""
        while held.phase is Phase.DECIDED:
            settled = yield from self._parts_committed(held)
            if (yield WriteDecision(settled, driver)) is Written.ONCE:
                return settled, driver
            held, driver = yield from self._hold(held.epoch)
        return held, driver

    def _parts_committed(self, held: Decision) -> Steps[Decision]:
        """Return the decision with the fate of each part.

        Every part has ended then, committed or not. Open transactions of older epochs can therefore be aborted, and
        they must be before a part is looked up: readers wait for them, and those of two-phase commits have no timeout.
        """
        left = tuple(part for part in held.parts if part.fate is not Fate.COMMITTED)
        causes = yield CommitParts(left)
        if any(causes):
            yield AbortOlder(held.epoch)
        fates = {}
        for part, cause in zip(left, causes, strict=True):
            fates[part.transaction] = (yield from self._fate_of_refused(part)) if cause else Fate.COMMITTED
        return held.settled([part._replace(fate=fates.get(part.transaction, Fate.COMMITTED)) for part in held.parts])

    def _fate_of_refused(self, part: Part) -> Steps[Fate]:
        match (yield LookUp(part)):
            case True:
                return Fate.COMMITTED
            case False:
                return Fate.ABORTED
            case _:
                return Fate.UNKNOWN

    def _sweep(self, held: Decision, driver: Transaction) -> Steps[tuple[Decision, Transaction]]:
        """Abort the open transactions of older epochs. These can no longer decide, and their decisions are settled."""
        while not held.swept:
            yield AbortOlder(held.epoch)
            swept = replace(held, swept=True)
            if (yield WriteDecision(swept, driver)) is Written.ONCE:
                return swept, driver
            held, driver = yield from self._hold(held.epoch)
            held, driver = yield from self._settle(held, driver)
        return held, driver

    # -- committing a batch

    def commit(self, attempt: Attempt, epoch: int | None, now_ms: float) -> Steps[Decision]:
        """Decide the batch and commit its parts. `epoch` is the epoch of the tasks; None if no task wrote a record.

        Leftovers are aborted if a task is known to have failed, or has failed without anybody noticing perhaps: Spark
        counts the attempts of a repeated stage from 0 again, and does not name those that lost against another one.
        The caller runs `record` afterwards, and before the next `commit` of this object."""
        self._unrecorded = None
        self._had_one_task = attempt.tasks == 1
        self._now_ms = now_ms
        if self._swept_at_ms is None or now_ms - self._swept_at_ms > SWEEP_AFTER_MS:
            attempt = attempt._replace(had_failures=True)
        if epoch is None:
            epoch = yield from self.claim()
        if not attempt.parts and (yield from self._has_nothing_to_do(epoch)):
            return Decision(self._query.query_id, epoch)
        if attempt.handed is not None:
            return (yield from self._commit_handed(attempt, attempt.handed, epoch))
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
            written = yield from self._written(intent, driver, decides=True)
            if written is not None:
                return (yield from self._carry_out(*written, plan, attempt))
            yield Pause(tries)
        raise self._contended()

    def _written(
        self, decision: Decision, driver: Transaction, *, decides: bool = False
    ) -> Steps[tuple[Decision, Transaction] | None]:
        """Write a decision. Return the last decision with a driver that can write the next one; None if fenced."""
        match (yield WriteDecision(decision, driver, decides)):
            case Written.ONCE:
                return decision, driver
            case Written.RESENT:
                return (yield from self._hold(decision.epoch))
            case _:
                return None

    def _take_kept(self, attempt: Attempt, epoch: int) -> tuple[Decision, Transaction] | None:
        """Return what the last commit of this process left, if the attempt is a later batch of the same run.

        In all other cases the decision is read again: only a failing write shows that the kept one is out of date."""
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
        """Return what to do with an attempt, given the last decision.

        Raises if continuing would lose rows or write them twice."""
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
            return Plan()  # this attempt has decided it, but the response was lost
        self._refuse_other_rows(held, attempt)
        return Plan(drop=attempt.parts)

    def _of_this_query(self, held: Decision) -> Decision:
        return held if held.query_id == self._query.query_id else held.of_another_query(self._query.query_id)

    def _completed(self, held: Decision, attempt: Attempt) -> Plan:
        """Take parts that the brokers have aborted after the decision from this attempt of the batch."""
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
        """Raise if a batch has the number of a committed batch but other rows."""
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
                "or a copy, and Spark plans the batch again. Nothing was committed. Use the newest checkpoint. "
                "`sskafka pipeline recover` shows what was decided and says how to continue"
            )

    def _inspect(self, batch: int, parts: Sequence[Part]) -> Steps[None]:
        unsettled = tuple(part for part in parts if part.fate is Fate.OPEN)
        conditions = yield InspectParts(unsettled)
        for part, condition in zip(unsettled, conditions, strict=True):
            if not condition.is_open:
                raise NotDecidedError(
                    f"batch {batch} of query {self._query.name!r} was not committed: its transaction "
                    f"{part.transaction.transactional_id} is no longer open (its state is {condition.state}). "
                    "No part of the batch is visible; start the query again, and Spark repeats the batch. If "
                    "batches take longer than transactionTimeoutMs, raise it (and the brokers' "
                    "transaction.max.timeout.ms), write smaller batches (maxOffsetsPerTrigger), or set "
                    "transaction.two.phase.commit.enable=true on the brokers"
                )
            if condition.time_left_ms < self._query.reserve_ms:
                raise NotDecidedError(
                    f"batch {batch} of query {self._query.name!r} was not committed: its transaction "
                    f"{part.transaction.transactional_id} times out in {max(0, condition.time_left_ms):.0f} ms, too "
                    f"soon to commit it safely ({self._query.reserve_ms} ms are needed). No part of the batch is "
                    "visible; start the query again with a higher transactionTimeoutMs (and the brokers' "
                    "transaction.max.timeout.ms), or with smaller batches (maxOffsetsPerTrigger)"
                )

    @property
    def has_unrecorded(self) -> bool:
        """Whether `record` has something to do."""
        return self._unrecorded is not None

    def record(self) -> Steps[None]:
        """Write the outcome of the batch that `commit` has committed; does nothing if that is written."""
        unrecorded, self._unrecorded = self._unrecorded, None
        if unrecorded is not None and (yield WriteDecision(*unrecorded)) is Written.ONCE:
            self._kept = unrecorded if unrecorded[0].swept else None

    def _carry_out(self, intent: Decision, driver: Transaction, plan: Plan, attempt: Attempt) -> Steps[Decision]:
        if not plan.drop:
            outcome = yield from self._parts_committed(intent)
            if outcome.is_committed:
                if attempt.had_failures:
                    yield from self._abort_leftovers(outcome.epoch)
                self._unrecorded = outcome, driver
                return outcome
        settled, driver = yield from self._settle(intent, driver)
        yield from self._abort_parts(plan.drop)
        if settled.phase is Phase.PARTIAL:
            raise self._failed(settled)
        if attempt.had_failures:
            yield from self._abort_leftovers(settled.epoch)
        self._kept = (settled, driver) if settled.swept else None
        return settled

    def _abort_leftovers(self, epoch: int) -> Steps[None]:
        yield AbortLeftovers(epoch)
        self._swept_at_ms = self._now_ms

    def _abort_parts(self, parts: Sequence[Part]) -> Steps[None]:
        for part in parts:
            yield AbortPart(part)

    # -- handing over the driver's transaction

    def hand_over(self) -> Handover | None:
        """Return what the last commit left, for a task of the next batch, and forget it.

        None if the last batch had several tasks, because the next one is likely to have several, too. They would all
        wait for the slowest one, and the driver's transaction has a timeout even if those of tasks have none."""
        if self._kept is None or not self._had_one_task or len(self._kept[0].parts) != 1:
            return None
        (decision, driver), self._kept = self._kept, None
        return Handover(decision, driver)

    def take_back(self, handover: Handover) -> None:
        """Use what no task has taken."""
        self._kept = handover.decision, handover.driver

    def decided_with_rows(self, held: Decision, epoch: int, attempt: Attempt) -> Decision | None:
        """Return the decision that a task writes with its rows, as if its part were the whole batch.

        None if what was handed over is not that of the batch before, in the same run."""
        is_of_this_run = (held.query_id, held.owner, held.epoch) == (self._query.query_id, self._query.owner, epoch)
        if not (is_of_this_run and held.is_committed and held.swept and NO_BATCH < held.batch < attempt.batch):
            return None
        parts = [part._replace(fate=Fate.COMMITTED) for part in attempt.parts]
        return held.decided(attempt.batch, parts, attempt.offsets).settled(parts)

    def _commit_handed(self, attempt: Attempt, handed: Handover, epoch: int) -> Steps[Decision]:
        """Commit the driver's transaction, which contains rows of the batch."""
        self._kept = None
        written, driver = handed.decision, handed.driver
        if attempt.other_parts:
            yield from self._inspect(attempt.batch, attempt.other_parts)
            intent = written.decided(attempt.batch, (*written.parts, *attempt.other_parts), attempt.offsets)
            decided = yield from self._written(intent, driver, decides=True)
            if decided is not None:
                return (yield from self._carry_out(*decided, Plan(), attempt))
            return (yield from self._outcome_of_handed(attempt, epoch))
        committed: Written = yield CommitDriver(driver)
        if not committed:
            return (yield from self._outcome_of_handed(attempt, epoch))
        if attempt.had_failures:
            yield from self._abort_leftovers(written.epoch)
        self._kept = (written, driver) if committed is Written.ONCE else None
        return written

    def _outcome_of_handed(self, attempt: Attempt, epoch: int) -> Steps[Decision]:
        """Return the decision if it was committed, though the brokers refuse to commit the driver's transaction now."""
        held, driver = yield from self._hold_settled(epoch)
        if held.phase is Phase.PARTIAL:
            raise self._failed(held)
        if held.batch == attempt.batch and held.holds(attempt.parts):
            self._kept = held, driver
            return held
        raise DriverTransactionEndedError(
            f"batch {attempt.batch} of query {self._query.name!r} was not committed: its transaction, which is that of "
            "the driver, has timed out or was aborted by another process. No part of the batch is visible; start the "
            "query again, and Spark repeats the batch"
        )

    # -- aborting a batch

    def abort(self, attempt: Attempt, epoch: int | None) -> Steps[Decision | None]:
        """Abort an attempt. Spark calls this after any failed commit, so the batch may be decided: then complete it."""
        last: Decision | None = yield PeekDecision()
        if last is not None and self._has_ended(last, epoch):
            if last.batch != attempt.batch or not last.holds(attempt.parts):
                yield from self._abort_parts(attempt.parts)
            return last
        for tries in range(TRIES_MAX):
            driver, last = yield from self._fence_and_read()
            if last is None:
                break
            if last.batch == attempt.batch and last.holds(attempt.parts):
                settled, _ = yield from self._settle(last, driver)
                return settled
            if not self._owns(last, epoch):
                break  # a superseded run can no longer decide
            released = last.released()
            written = yield from self._written(released, driver)
            if written is not None:
                last, _ = yield from self._settle(*written)
                yield AbortOlder(released.epoch)
                break
            yield Pause(tries)
        yield from self._abort_parts(attempt.parts)
        return last

    def _has_ended(self, last: Decision, epoch: int | None) -> bool:
        """Return whether a newer owner has taken over. It completes what this run has decided."""
        return last.has_superseded(self._query.owner) if epoch is None else last.epoch > epoch

    def _owns(self, last: Decision, epoch: int | None) -> bool:
        return last.owner == self._query.owner if epoch is None else last.epoch == epoch

    # -- errors that need an administrator

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
            "already: the checkpoint is older than the output. Use the newest checkpoint, or start over with "
            "another checkpointLocation"
        )

    def _lost_control_topic(self, batch: int) -> CheckpointError:
        return CheckpointError(
            f"Spark writes batch {batch} of query {self._query.name!r}, but the control topic knows of no batch before "
            "it: the control topic was deleted, or the query ran with deliveryGuarantee=at-least-once until now. "
            f"It is not known whether batch {batch} is already in the topic. `sskafka pipeline recover` with "
            f"--batch {batch} --declare missing (or written) records this"
        )


def _sum(parts: Sequence[Part]) -> tuple[int, int]:
    """Return the sums of rows and digests; they do not depend on how rows are distributed over tasks."""
    return sum(part.rows for part in parts), sum(part.digest for part in parts)
