"""`sskafka pipeline recover`: the decisions of a query that writes a topic, and what to do if no run can complete them.

    step                     what it does
    ---------------------    ---------------------------------------------------------------------------------------
    settle                   commits decided and aborts undecided transactions, as the next run would
    declare a batch          written: Spark's next attempt of it is dropped, and missing rows stay missing
                             missing: Spark's next attempt of it is written completely, and rows may be duplicated
    record a new location    of a checkpoint that was moved

Nothing is changed without `--execute`. Every change claims the query: a run that is still alive ends.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sskafka.pipelines.connector.checkpoint import place_of
from sskafka.pipelines.connector.commit_log import CommitLog
from sskafka.pipelines.connector.committing import ClusterCoordinator, Committer, cluster_committer, prefix_of
from sskafka.pipelines.connector.decision import NO_BATCH, UNKNOWN_ROWS, Decision, Fate, Owner, Phase
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import open_transactions
from sskafka.pipelines.runner.recovery import ExactSink


class Declared(StrEnum):
    WRITTEN = "written"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Step:
    """An action and its description."""

    text: str
    work: Callable[[], object]


class PartStatus(NamedTuple):
    slot: int
    transactional_id: str
    rows: int
    fate: str
    state: str
    """The state of the transaction according to its coordinator."""


class Status(NamedTuple):
    """The last decision of a query, and the state of its transactions."""

    decision: Decision | None
    parts: list[PartStatus]
    open_ids: list[str]
    """Open transactions of the query that are in no decision."""


class Settling:
    """One query that writes a topic."""

    def __init__(self, session: ClusterSession, sink: ExactSink, run: str) -> None:
        self._session = session
        self._sink = sink
        self._run = run
        self._prefix = prefix_of(sink.options.transactional_id_prefix, sink.query_id)
        self._log = CommitLog(session, sink.options, self._prefix, sink.query_id)
        self._coordinator = ClusterCoordinator(session, sink.options)

    def status(self) -> Status:
        """Return the status. This only reads, so it may be called for a running query."""
        last = self._log.peek()
        decided = last.parts if last is not None else ()
        parts = [
            PartStatus(
                part.slot,
                part.transaction.transactional_id,
                part.rows,
                str(part.fate),
                self._coordinator.conditions_of([part.transaction])[0].state,
            )
            for part in decided
        ]
        names = {part.transactional_id for part in parts}
        found = self._session.run(open_transactions(self._session.cluster, f"{self._prefix}-"))
        return Status(last, parts, [name for name in found if name not in names])

    def steps(self, declared: Declared | None, batch: int | None, *, moved: bool) -> Iterator[Step]:
        status = self.status()
        last = status.decision
        if moved and last is not None and last.checkpoint != place_of(self._sink.options.checkpoint):
            yield Step(f"record that the checkpoint of {self._sink.name} is at {self._place} now", self._move)
        if last is not None and (last.phase is Phase.DECIDED or status.open_ids):
            yield Step(self._settle_text(last, status), self._settle)
        if declared is not None:
            if last is not None and last.phase is Phase.DECIDED:
                raise ConnectorError("the last decision is not settled yet; recover without --declare first")
            number = self._declared_batch(last, batch)
            yield Step(self._declare_text(last, declared, number), lambda: self._declare(declared, number, last))

    @property
    def _place(self) -> str:
        return place_of(self._sink.options.checkpoint)

    def _settle_text(self, last: Decision, status: Status) -> str:
        decided = f"commit the {len(last.parts)} parts of batch {last.batch}" if last.phase is Phase.DECIDED else ""
        opened = f"abort {len(status.open_ids)} open transactions" if status.open_ids else ""
        return f"{' and '.join(filter(None, (decided, opened)))} of {self._sink.name}"

    def _declare_text(self, last: Decision | None, declared: Declared, batch: int) -> str:
        known = last is not None and last.batch == batch
        there = _rows(last, Fate.COMMITTED) if known else "an unknown number of"
        lost = _rows(last, Fate.ABORTED, Fate.UNKNOWN) if known else "an unknown number of"
        if declared is Declared.WRITTEN:
            return (
                f"declare batch {batch} of {self._sink.name} written: {there} rows are in {self._sink.topic}, {lost} "
                "are missing and stay missing; Spark's next attempt of the batch is dropped"
            )
        return (
            f"declare batch {batch} of {self._sink.name} missing: Spark's next attempt of it is written completely, "
            f"and {there} rows that are in {self._sink.topic} are duplicated"
        )

    def _declared_batch(self, last: Decision | None, batch: int | None) -> int:
        if batch is not None:
            return batch
        if last is None or last.batch == NO_BATCH:
            raise ConnectorError("the control topic names no batch: name it with --batch")
        return last.batch

    # -- actions

    def _settle(self) -> None:
        self._committer().recover()

    def _move(self) -> None:
        self._committer().move()

    def _declare(self, declared: Declared, batch: int, shown: Decision | None) -> None:
        self._committer().declare(batch, shown, written=declared is Declared.WRITTEN)

    def _committer(self) -> Committer:
        return cluster_committer(self._session, self._sink.options, self._sink.query_id, Owner("", self._run))


def _rows(last: Decision | None, *fates: Fate) -> str:
    parts = () if last is None else last.parts_that(*fates)
    if any(part.rows == UNKNOWN_ROWS for part in parts):
        return "an unknown number of"
    return str(sum(part.rows for part in parts))
