"""Committing a micro-batch exactly once: the driver's part.

    tasks      begin <prefix>-<run>-<slot>, write, flush, hand their open transactions to the driver
    driver     1 take over or keep <prefix>-driver           fences the driver of an older run
               2 read the last decision                      what an older run left open is completed
               3 write the intent: these transactions        from here on the batch counts as committed
               4 commit each of them
               5 write that it is done

    killed before 3    the batch was not decided: the next run writes it anew, the old transactions are aborted
    killed after 3     the next run completes them at 2; when Spark runs the batch again, that attempt is aborted

Spark tells the batch, and the tasks tell run and query, because driver processes come and go between batches.
"""

import logging
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sskafka.client.errors import ClientError
from sskafka.client.transactions import Transaction, end
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.commit_log import CommitLog, Decision, past_runs
from sskafka.pipelines.connector.errors import CommitFailedError, ConnectorError, FencedError
from sskafka.pipelines.connector.options import SinkOptions
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import (
    ABORTED,
    FENCED,
    begin,
    open_transactions,
    state_of,
)

DRIVER_TIMEOUT_MS = 60_000
RUN_CHARACTERS = 8
"""Of the run's UUID, in transactional ids."""

logger = logging.getLogger(__name__)


class Batch(NamedTuple):
    """One micro-batch of one run of a query."""

    query_id: str
    run: str
    number: int


class Coordinator(Protocol):
    """The transaction coordinators of a cluster, as the driver uses them."""

    def begin(self, transactional_id: str, last: Transaction | None = None) -> Transaction: ...
    def end(self, transaction: Transaction, *, commit: bool) -> None: ...
    def state_of(self, transactional_id: str) -> str: ...
    def open_transactions(self, prefix: str) -> list[str]: ...


class DecisionLog(Protocol):
    """Where a query's decisions are kept; only the holder of the driver's id may write."""

    def read(self) -> Decision | None: ...
    def write(self, decision: Decision) -> None: ...


class ClusterCoordinator:
    """Asks a real cluster."""

    def __init__(self, session: ClusterSession) -> None:
        self._session = session

    def begin(self, transactional_id: str, last: Transaction | None = None) -> Transaction:
        return self._session.run(begin(self._session.cluster, transactional_id, DRIVER_TIMEOUT_MS, last))

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        self._session.run(end(self._session.cluster, transaction, commit=commit))

    def state_of(self, transactional_id: str) -> str:
        return self._session.run(state_of(self._session.cluster, transactional_id))

    def open_transactions(self, prefix: str) -> list[str]:
        return self._session.run(open_transactions(self._session.cluster, prefix))


class Committer:
    def __init__(self, coordinator: Coordinator, log: DecisionLog, prefix: str) -> None:
        self._coordinator = coordinator
        self._log = log
        self._prefix = prefix

    def commit(self, batch: Batch, transactions: Sequence[Transaction]) -> None:
        if not transactions and self._is_driving(batch.run):
            return  # nothing was written, so there is nothing to decide
        last, driver = self._become_driver(batch.run)
        if last is not None and last.query_id == batch.query_id and batch.number <= last.batch:
            self._drop_repeated(batch, last, driver, transactions)
            return
        past = past_runs(last, batch.run)
        intent = Decision(batch.query_id, batch.run, batch.number, False, driver, tuple(transactions), past)
        self._log.write(intent)
        self._commit_all(intent.transactions, f"batch {batch.number} of query {self._prefix!r}")
        self._log.write(intent.committed())

    def commit_job(self, transactions: Sequence[Transaction]) -> None:
        """A job is over when its transactions are: nobody will run it again by itself."""
        self._commit_all(transactions, f"the job {self._prefix!r}")

    def fence(self) -> None:
        """Takes the driver's id: what a driver of an older run was about to decide is aborted."""
        self._take_driver_id(None)

    def recover(self, run: str) -> Decision | None:
        """Completes what an earlier run left and aborts what it had not decided; returns the last decision."""
        last, driver = self._become_driver(run)
        if last is not None:
            self._log.write(last.handed_to(run, driver))
        return last

    def abort(self, transactions: Sequence[Transaction]) -> None:
        """Readers need not wait for the timeout of what nobody will commit; failing to say so does no harm."""
        for transaction in transactions:
            try:
                self._coordinator.end(transaction, commit=False)
            except KafkaError as error:
                logger.info("%s needs no abort: %s", transaction.transactional_id, error)
            except ClientError as error:
                logger.warning("the brokers are away, transactions stay open until they time out: %s", error)
                return

    def _is_driving(self, run: str) -> bool:
        """Whether this run made the last decision, and so has settled what was before it."""
        last = self._log.read()
        return last is not None and last.run == run and last.is_committed

    def _become_driver(self, run: str) -> tuple[Decision | None, Transaction]:
        """The last decision, read while nobody else can make one, and the driver's identity."""
        last = self._log.read()
        self._refuse_superseded(last, run)
        keeps = last.driver if last is not None and last.run == run else None
        driver = self._take_driver_id(keeps)
        last = self._log.read()
        self._refuse_superseded(last, run)
        if last is None or last.run != run:
            self._settle_older_runs(last, run)
        return last, driver

    def _take_driver_id(self, keeps: Transaction | None) -> Transaction:
        driver_id = f"{self._prefix}-driver"
        try:
            return self._coordinator.begin(driver_id, keeps)
        except KafkaError as error:
            if error.code in FENCED:
                raise self._superseded() from error
            raise

    def _refuse_superseded(self, last: Decision | None, run: str) -> None:
        if last is not None and run in last.past_runs:
            raise self._superseded()

    def _superseded(self) -> FencedError:
        return FencedError(f"a newer run of the query {self._prefix!r} has taken over; this one ends")

    def _settle_older_runs(self, last: Decision | None, run: str) -> None:
        if last is not None and not last.is_committed:
            self._commit_all(last.transactions, f"batch {last.batch} of query {self._prefix!r}")
        of_a_run = re.compile(re.escape(self._prefix) + r"-(\w+)-\d+")
        for name in self._coordinator.open_transactions(f"{self._prefix}-"):
            found = of_a_run.fullmatch(name)
            if found and found[1] != run[:RUN_CHARACTERS]:
                self._coordinator.begin(name)

    def _commit_all(self, transactions: Sequence[Transaction], what: str) -> None:
        for transaction in transactions:
            try:
                self._coordinator.end(transaction, commit=True)
            except KafkaError as error:
                if error.code in ABORTED:
                    raise self._failed(what, transaction, error) from error
                raise

    def _failed(self, what: str, transaction: Transaction, error: KafkaError) -> CommitFailedError:
        name = transaction.transactional_id
        state = self._coordinator.state_of(name)
        return CommitFailedError(
            f"{what} was decided, but its transaction {name} could not be committed ({error}; its state is {state}): "
            "records are missing in the topic. The time between a task's first record and the commit, restarts "
            "included, must stay below transactionTimeoutMs"
        )

    def _drop_repeated(
        self, batch: Batch, last: Decision, driver: Transaction, transactions: Sequence[Transaction]
    ) -> None:
        """Spark runs a batch again that is in the topic already."""
        self.abort(transactions)
        if batch.number < last.batch:
            raise ConnectorError(
                f"Spark writes batch {batch.number} of query {self._prefix!r}, but batch {last.batch} is in the topic "
                "already: the checkpoint is older than the output. Use the newest checkpoint, or start anew with "
                "another checkpointLocation and another transactionalIdPrefix"
            )
        logger.info("batch %d of %s is in the topic already", batch.number, self._prefix)
        self._log.write(last.handed_to(batch.run, driver))


def cluster_committer(session: ClusterSession, options: SinkOptions, prefix: str) -> Committer:
    return Committer(ClusterCoordinator(session), CommitLog(session, options, prefix), prefix)


def transactional_id(prefix: str, run: str, slot: int) -> str:
    return f"{prefix}-{run[:RUN_CHARACTERS]}-{slot}"
