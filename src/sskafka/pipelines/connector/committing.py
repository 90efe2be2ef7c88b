"""The commit protocol on a cluster: `Committer` performs the effects that `commit_protocol` yields.

task      <prefix>-<epoch>-<process>-<number>    the transactional id of one task (`transactions`)
driver    <prefix>-driver                        writes decisions to the control topic
prefix    <name>-<query id>                      the query id is that of the checkpoint; no other query has it
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, assert_never

from sskafka.client.errors import ClientError, UnknownTopicError
from sskafka.client.transactions import Transaction, end
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import commit_effects as effects
from sskafka.pipelines.connector.checkpoint import place_of
from sskafka.pipelines.connector.commit_effects import Condition, Steps, Written
from sskafka.pipelines.connector.commit_log import DRIVER_TIMEOUT_MS, CommitLog
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover, Query
from sskafka.pipelines.connector.decision import Decision, Owner, Part, Place
from sskafka.pipelines.connector.errors import (
    CommitFailedError,
    ConnectorError,
    DataLossError,
    OptionError,
    ReadTimeoutError,
)
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import (
    COMMITTED,
    ENDED,
    begin,
    condition_of,
    fence,
    open_transaction_of,
    open_transactions,
)
from sskafka.runtime.clock import Clock, SystemClock

T = TypeVar("T")

RESERVE_MS_MAX = 30_000
"""Upper limit of the time that a transaction must have left when its batch is decided: a third of its timeout."""
LOOK_UP_TIMEOUT_MS = 30_000
PAUSE_S_MAX = 1.0
IN_FLIGHT_MAX = 32
"""Number of transactions of a batch that are inspected or committed at the same time."""

logger = logging.getLogger(__name__)


class Batch(NamedTuple):
    """One micro-batch of one run of a query."""

    query_id: str
    run: str
    number: int


class Coordinator(Protocol):
    """The transaction coordinators of a cluster, as drivers use them."""

    @property
    def unanswered(self) -> int: ...
    def begin(self, transactional_id: str) -> Transaction: ...
    def fence(self, transaction: Transaction) -> None: ...
    def end(self, transaction: Transaction, *, commit: bool) -> None: ...
    def end_all(self, transactions: Sequence[Transaction], *, commit: bool) -> list[KafkaError | None]: ...
    def conditions_of(self, transactions: Sequence[Transaction]) -> list[Condition]: ...
    def open_transactions(self, prefix: str) -> list[str]: ...
    def open_transaction_of(self, transactional_id: str) -> Transaction | None: ...
    def is_visible(self, place: Place) -> bool | None: ...


class DecisionLog(Protocol):
    """The storage of a query's decisions; only the process that initialized the driver's id last may write."""

    earlier_prefix: str

    @property
    def partition(self) -> TopicPartition: ...
    def next_sequence(self, driver: Transaction) -> int: ...
    def continue_at(self, driver: Transaction, sequence: int) -> None: ...
    def read(self) -> Decision | None: ...
    def peek(self) -> Decision | None: ...
    def write(self, decision: Decision, driver: Transaction, *, decides: bool = False) -> None: ...


class ClusterCoordinator:
    """Sends the requests to a cluster."""

    def __init__(self, session: ClusterSession, options: SinkOptions) -> None:
        self._session = session
        self._bootstrap = options.bootstrap
        self._timeout_ms = max(DRIVER_TIMEOUT_MS, options.transaction_timeout_ms)

    @property
    def unanswered(self) -> int:
        """Number of requests without a response so far. Brokers may carry them out later."""
        return self._session.cluster.unanswered

    def begin(self, transactional_id: str) -> Transaction:
        """Initialize the id of a driver, or fence a task.

        A task names the option if the brokers do not allow its timeout. With two-phase commits they ignore it."""
        try:
            return self._session.run(begin(self._session.cluster, transactional_id, self._timeout_ms))
        except OptionError:
            if self._timeout_ms <= DRIVER_TIMEOUT_MS:
                raise
        self._timeout_ms = DRIVER_TIMEOUT_MS
        return self.begin(transactional_id)

    def fence(self, transaction: Transaction) -> None:
        """Abort exactly this transaction, and refuse its producer from now on."""
        self._session.run(fence(self._session.cluster, transaction))

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        self._session.run(end(self._session.cluster, transaction, commit=commit))

    def end_all(self, transactions: Sequence[Transaction], *, commit: bool) -> list[KafkaError | None]:
        """End transactions at the same time; return the brokers' error for each that could not be ended."""
        cluster = self._session.cluster

        async def errors_of(transaction: Transaction) -> list[KafkaError]:
            try:
                await end(cluster, transaction, commit=commit)
            except KafkaError as error:
                return [error]
            return []

        found = self._session.run(_together([partial(errors_of, one) for one in transactions]))
        return [errors[0] if errors else None for errors in found]

    def conditions_of(self, transactions: Sequence[Transaction]) -> list[Condition]:
        cluster = self._session.cluster
        return self._session.run(_together([partial(condition_of, cluster, one) for one in transactions]))

    def open_transactions(self, prefix: str) -> list[str]:
        return self._session.run(open_transactions(self._session.cluster, prefix))

    def open_transaction_of(self, transactional_id: str) -> Transaction | None:
        return self._session.run(open_transaction_of(self._session.cluster, transactional_id))

    def is_visible(self, place: Place) -> bool | None:
        """Return whether the record is committed; None if it no longer exists, because of retention or compaction.

        Raises if that cannot be determined now: an answer is recorded, and must not depend on the moment."""
        try:
            if self._has_record(place, "read_committed"):
                return True
            return False if self._has_record(place, "read_uncommitted") else None
        except (DataLossError, UnknownTopicError) as error:
            logger.warning("offset %d of %s-%d no longer exists: %s", place.offset, *place[:2], error)
            return None
        except (ReadTimeoutError, ClientError, KafkaError) as error:
            raise ConnectorError(
                f"whether offset {place.offset} of {place.topic}-{place.partition} is committed cannot be determined "
                f"now: {error}. Nothing was changed; start the query again. If a transaction of another producer is "
                "open before this offset, that has to end first: `sskafka transaction list` shows it"
            ) from error

    def _has_record(self, place: Place, isolation: str) -> bool:
        partition = TopicPartition(place.topic, place.partition)
        options = source_options(
            {
                BOOTSTRAP: self._bootstrap,
                "subscribe": place.topic,
                "kafka.isolation.level": isolation,
                "kafkaConsumer.pollTimeoutMs": str(LOOK_UP_TIMEOUT_MS),
            },
            streaming=False,
        )
        return any(
            batch.num_rows
            for batch in read_ranges(options, [OffsetRange(partition, place.offset, place.offset + 1)], self._session)
        )


async def _together(requests: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """Return the results of all requests, of which only some are in flight at a time.

    Raises the first error when all have ended."""
    free = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def one(request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with free:
            return await request()

    results: list[T] = []
    for outcome in await asyncio.gather(*map(one, requests), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


class Committer:
    """The operations of the protocol for one query."""

    def __init__(
        self,
        coordinator: Coordinator,
        log: DecisionLog,
        prefix: str,
        query: Query,
        clock: Clock | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._clock = clock or SystemClock()
        self._log = log
        self._prefix = prefix
        self._protocol = CommitProtocol(query)
        self._task_id = re.compile(re.escape(prefix) + r"-(\d+)-[0-9a-f]+-\d+")
        self._handed: Handover | None = None
        """What a task has returned last: it knows the producer's sequence numbers in the topics of the sink."""
        self._resent_with: Transaction | None = None
        """The driver of which a late copy of a request may arrive, and fence or begin a transaction."""

    # -- operations

    def claim(self) -> int:
        """Return the epoch of this run. The first caller claims it; a superseded run receives a FencedError."""
        return self._done(self._protocol.claim())

    def commit(self, attempt: Attempt, epoch: int | None = None) -> Decision:
        """Commit a batch and record the outcome."""
        decision = self.commit_unrecorded(attempt, epoch)
        self.record()
        return decision

    def commit_unrecorded(self, attempt: Attempt, epoch: int | None = None) -> Decision:
        """Commit a batch. Its rows are visible; `record` must follow, and may run while Spark begins the next batch."""
        if attempt.handed is not None:
            self._continue_with(attempt.handed)
        return self._done(self._protocol.commit(attempt, epoch, self._clock.monotonic_ms()))

    @property
    def has_unrecorded(self) -> bool:
        """Whether the outcome of the last batch is still to be recorded."""
        return self._protocol.has_unrecorded

    def record(self) -> None:
        self._done(self._protocol.record())

    def abort(self, attempt: Attempt, epoch: int | None = None) -> Decision | None:
        return self._done(self._protocol.abort(attempt, epoch))

    def hand_over(self) -> Handover | None:
        """Return what a task needs to write the next batch in the driver's transaction; this object forgets it."""
        handover = self._protocol.hand_over()
        if handover is None or handover.driver == self._resent_with:
            return None
        handed = self._handed
        sequences = dict(handed.sequences) if handed is not None and handed.driver == handover.driver else {}
        sequences[self._log.partition] = self._log.next_sequence(handover.driver)
        return handover._replace(sequences=tuple(sequences.items()))

    def take_back(self, handover: Handover) -> None:
        """Use what no task has taken."""
        self._continue_with(handover)
        self._protocol.take_back(handover)

    def _continue_with(self, handover: Handover) -> None:
        self._handed = handover
        if handover.was_resent:
            self._resent_with = handover.driver
        self._log.continue_at(handover.driver, dict(handover.sequences).get(self._log.partition, 0))

    def recover(self) -> Decision:
        """Claim the query: commit what an earlier run has decided, and abort its other transactions."""
        return self._done(self._protocol.recover())

    def declare(self, batch: int, shown: Decision | None, *, written: bool) -> None:
        """Declare the batch written or missing, for a query that no run can complete, if `shown` still holds."""
        self._done(self._protocol.declare(batch, shown, written=written))

    def move(self) -> None:
        """Record the location of the checkpoint."""
        self._done(self._protocol.move())

    def commit_job(self, transactions: Sequence[Transaction], *, had_failures: bool = False) -> None:
        """Commit the transactions of a batch job. Nothing runs a job again by itself, so no decision is recorded."""
        causes = self._all_committed(transactions)
        lost = [one.transactional_id for one, cause in zip(transactions, causes, strict=True) if cause]
        if lost:
            raise CommitFailedError(
                f"{len(lost)} of the {len(transactions)} transactions of the job {self._prefix!r} could not be "
                f"committed ({', '.join(lost)}; {next(filter(None, causes))}): their records are missing in the topic, "
                f"and those of the other {len(transactions) - len(lost)} are visible. The time between a task's "
                "first record and the commit must stay below transactionTimeoutMs. If the job is run again, it writes "
                "all records again"
            )
        if had_failures:
            for name in self._coordinator.open_transactions(f"{self._prefix}-"):
                self._coordinator.begin(name)

    def complete_job(self, transactions: Sequence[Transaction]) -> bool:
        """End the transactions of a job whose commit failed; return whether they are committed.

        If part of the job is visible, the rest is committed, because running it again would write that part twice. If
        nothing is, all of it is aborted, and the job can be run again."""
        conditions = self._coordinator.conditions_of(transactions)
        if not any(one.state in COMMITTED for one in conditions):
            self.abort_job(transactions)
            return False
        self.commit_job(transactions)
        return True

    def abort_job(self, transactions: Sequence[Transaction]) -> None:
        for transaction in transactions:
            self._abort(transaction)

    # -- effects

    def _done(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as stop:
                result: T = stop.value
                return result
            answer = self._perform(effect)

    def _perform(self, effect: effects.Effect) -> Any:
        match effect:
            case effects.FenceDriver():
                return self._fenced_driver()
            case effects.ReadDecision():
                return self._log.read()
            case effects.PeekDecision():
                return self._log.peek()
            case effects.WriteDecision() | effects.CommitDriver():
                return self._outcome(effect)
            case effects.InspectParts(parts):
                return self._coordinator.conditions_of([part.transaction for part in parts])
            case effects.CommitParts(parts):
                return self._all_committed([part.transaction for part in parts])
            case effects.AbortPart(part):
                return self._abort(part.transaction)
            case effects.LookUp(part):
                return self._looked_up(part)
            case effects.AbortOlder(epoch):
                return self._abort_older(epoch)
            case effects.AbortLeftovers(epoch):
                return self._abort_leftovers(epoch)
            case effects.Pause(tries):
                return time.sleep(random.uniform(0, min(PAUSE_S_MAX, 0.02 * 2**tries)))
            case other:
                assert_never(other)

    def _fenced_driver(self) -> Transaction:
        before = self._coordinator.unanswered
        driver = self._coordinator.begin(f"{self._prefix}-driver")
        if self._coordinator.unanswered != before:
            self._resent_with = driver
        return driver

    def _outcome(self, effect: effects.WriteDecision | effects.CommitDriver) -> Written:
        before = self._coordinator.unanswered
        try:
            if isinstance(effect, effects.WriteDecision):
                self._log.write(effect.decision, effect.driver, decides=effect.decides)
            else:
                self._coordinator.end(effect.driver, commit=True)
        except KafkaError as error:
            if error.code not in ENDED:
                raise
            return Written.REFUSED
        return Written.ONCE if self._coordinator.unanswered == before else Written.RESENT

    def _all_committed(self, transactions: Sequence[Transaction]) -> list[str]:
        errors = self._coordinator.end_all(transactions, commit=True)
        causes = []
        for transaction, error in zip(transactions, errors, strict=True):
            if error is not None and error.code not in ENDED:
                raise error
            if error is not None:
                logger.error("%s could not be committed: %s", transaction.transactional_id, error)
            causes.append("" if error is None else str(error))
        return causes

    def _abort(self, transaction: Transaction) -> None:
        self._give_up(transaction, partial(self._coordinator.end, commit=False))

    def _give_up(self, transaction: Transaction, abort: Callable[[Transaction], None]) -> None:
        """Abort a transaction that nobody will commit; a failure does no harm."""
        try:
            abort(transaction)
        except KafkaError as error:
            logger.info("%s needs no abort: %s", transaction.transactional_id, error)
        except ClientError as error:
            logger.warning("%s stays open, because brokers are not available: %s", transaction.transactional_id, error)

    def _looked_up(self, part: Part) -> bool | None:
        return None if part.place is None else self._coordinator.is_visible(part.place)

    def _abort_older(self, epoch: int) -> None:
        self._fence_older(self._open_ids(), epoch)
        earlier = self._log.earlier_prefix
        if earlier:
            of_a_run = re.compile(re.escape(earlier) + r"-\w{8}-\d+")
            for name in filter(of_a_run.fullmatch, self._coordinator.open_transactions(f"{earlier}-")):
                self._coordinator.begin(name)

    def _open_ids(self) -> list[tuple[int, str]]:
        """Return the ids of tasks that have an open transaction, each with its epoch."""
        names = self._coordinator.open_transactions(f"{self._prefix}-")
        return [(int(found[1]), found[0]) for found in map(self._task_id.fullmatch, names) if found]

    def _fence_older(self, found: Sequence[tuple[int, str]], epoch: int) -> None:
        for its_epoch, name in found:
            if its_epoch < epoch:
                self._coordinator.begin(name)

    def _abort_leftovers(self, epoch: int) -> None:
        """Abort, of this epoch, exactly the transactions that are open now: their ids may be in use again a moment
        later. Their producers are fenced, because an attempt that still writes would begin a transaction of which the
        coordinator does not know."""
        found = self._open_ids()
        mine = [name for its_epoch, name in found if its_epoch == epoch]
        for transaction in [self._coordinator.open_transaction_of(name) for name in mine]:
            if transaction is not None:
                self._give_up(transaction, self._coordinator.fence)
        self._fence_older(found, epoch)


def prefix_of(name: str, query_id: str) -> str:
    """Return the prefix of a query's transactional ids. Two jobs may share a name, but not a checkpoint."""
    return f"{name or 'spark'}-{query_id}"


def cluster_committer(session: ClusterSession, options: SinkOptions, query_id: str, owner: Owner) -> Committer:
    prefix = prefix_of(options.transactional_id_prefix, query_id)
    log = CommitLog(session, options, prefix, query_id)
    coordinator = ClusterCoordinator(session, options)
    return Committer(coordinator, log, prefix, query_of(options, query_id, owner))


def query_of(options: SinkOptions, query_id: str, owner: Owner) -> Query:
    return Query(
        query_id,
        options.transactional_id_prefix or query_id,
        owner,
        place_of(options.checkpoint),
        reserve_ms=min(RESERVE_MS_MAX, options.transaction_timeout_ms // 3),
    )
