"""The control topic: what each query decided last, so that a driver that died can be completed or undone.

    key    the query's prefix
    value  {"query_id", "run", "past_runs", "batch", "is_committed",
            "driver": [id, producer id, epoch, version], "transactions": [[...]...]}

It is written in transactions of the id `<prefix>-driver`. Whoever holds that id is the query's driver: a newer run
takes it over and so fences the older one, which can decide nothing any more. Only committed records are read.

All queries share one partition, and readers of committed records see nothing behind an open transaction:

    decision of A | open: B | decision of A          B died while it wrote, or is about to end it
                  ^ readers stop here

Whoever took the older decision of A for its last one would write a batch again. So reading waits until everything is
settled that stood there when it began.
"""

import asyncio
import json
from dataclasses import dataclass, replace

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.errors import UnknownTopicError
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.client.transactions import Transaction, add_partitions, end
from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.records.compression import Compression

_TAIL_RECORDS = 64
_PAST_RUNS_MAX = 64
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_SETTLED_WITHIN_MS = 90_000
"""Longer than brokers need to abort what a dead driver had open: its timeout, and the pause between their looks."""
_SETTLED_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Decision:
    """What a query's driver decided last. `is_committed` False: the transactions below may be still open."""

    query_id: str
    run: str
    batch: int
    is_committed: bool
    driver: Transaction
    transactions: tuple[Transaction, ...] = ()
    past_runs: tuple[str, ...] = ()
    """Runs that this one has superseded; a process of theirs that is still alive must not take over again."""

    def to_json(self) -> bytes:
        return json.dumps(
            {
                "query_id": self.query_id,
                "run": self.run,
                "batch": self.batch,
                "is_committed": self.is_committed,
                "driver": list(self.driver),
                "transactions": [list(transaction) for transaction in self.transactions],
                "past_runs": list(self.past_runs),
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Decision":
        fields = json.loads(text)
        return cls(
            query_id=fields["query_id"],
            run=fields["run"],
            batch=fields["batch"],
            is_committed=fields["is_committed"],
            driver=Transaction(*fields["driver"]),
            transactions=tuple(Transaction(*one) for one in fields["transactions"]),
            past_runs=tuple(fields["past_runs"]),
        )

    def committed(self) -> "Decision":
        return replace(self, is_committed=True)

    def handed_to(self, run: str, driver: Transaction) -> "Decision":
        """The same decision, done with, in the hands of a newer run."""
        past = past_runs(self, run)
        return replace(self, run=run, driver=driver, is_committed=True, transactions=(), past_runs=past)


def past_runs(last: Decision | None, run: str) -> tuple[str, ...]:
    """What `run` has superseded when `last` was decided before it."""
    if last is None or last.run == run:
        return () if last is None else last.past_runs
    return (*last.past_runs, last.run)[-_PAST_RUNS_MAX:]


class CommitLog:
    """The decisions of one query, kept in partition 0 of the control topic."""

    def __init__(self, session: ClusterSession, options: SinkOptions, prefix: str) -> None:
        self._session = session
        self._options = options
        self._prefix = prefix
        self._partition = TopicPartition(options.control_topic, 0)
        self._sequence = 0
        """The log is used by one holder of the driver's id, whose epoch is new: its numbers begin at 0."""

    def read(self) -> Decision | None:
        """The query's last decision. The tail is looked at first, then ever more of the topic."""
        try:
            first, end_offset = self._bounds()
        except UnknownTopicError:
            self._create()
            return None
        tail = _TAIL_RECORDS
        while True:
            start = max(first, end_offset - tail)
            found = self._last_between(start, end_offset)
            if found is not None or start == first:
                return found
            tail *= 8

    def write(self, decision: Decision) -> None:
        """One transaction with one record; the caller holds the driver's id."""
        self._session.run(self._write(decision))

    async def _write(self, decision: Decision) -> None:
        cluster = self._session.cluster
        await add_partitions(cluster, decision.driver, [self._partition])
        await deliver(cluster, {self._partition: self._record(decision)}, decision.driver.transactional_id)
        self._sequence += 1
        await end(cluster, decision.driver, commit=True)

    def _record(self, decision: Decision) -> Buffer:
        (payload,) = payloads([Row(self._prefix.encode(), decision.to_json())])
        return framed(
            payload,
            timestamp=self._session.cluster.clock.now_ms(),
            producer_id=decision.driver.producer_id,
            producer_epoch=decision.driver.producer_epoch,
            base_sequence=self._sequence,
            codec=Compression.NONE,
            transactional=True,
        )

    def _bounds(self) -> tuple[int, int]:
        """Where the log begins, and its end; everything between is settled."""
        partition = self._partition
        first = self._session.run(list_offsets(self._session.cluster, {partition: EARLIEST}))[partition].offset
        return first, self._session.run(self._settled_end())

    async def _settled_end(self) -> int:
        cluster = self._session.cluster
        end_offset = await self._end(_READ_UNCOMMITTED)
        deadline_ms = cluster.deadline_ms(_SETTLED_WITHIN_MS)
        while (settled := await self._end(_READ_COMMITTED)) < end_offset:
            if cluster.clock.monotonic_ms() >= deadline_ms:
                raise ConnectorError(
                    f"{self._partition}: a transaction that began at offset {settled} is still open after "
                    f"{_SETTLED_WITHIN_MS // 1000} s and hides what was decided behind it. "
                    f"`sskafka transaction list` shows it"
                )
            await asyncio.sleep(_SETTLED_POLL_S)
        return end_offset

    async def _end(self, isolation: int) -> int:
        found = await list_offsets(self._session.cluster, {self._partition: LATEST}, isolation=isolation)
        return found[self._partition].offset

    def _last_between(self, start: int, end_offset: int) -> Decision | None:
        if start >= end_offset:
            return None
        reading = source_options(
            {
                BOOTSTRAP: self._options.bootstrap,
                "assign": json.dumps({self._partition.topic: [0]}),
                "kafka.isolation.level": "read_committed",
                "failOnDataLoss": "false",
            },
            streaming=False,
        )
        found = None
        for batch in read_ranges(reading, [OffsetRange(self._partition, start, end_offset)]):
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                if key == self._prefix.encode() and value is not None:
                    found = Decision.from_json(value)
        return found

    def _create(self) -> None:
        topic = NewTopic(self._partition.topic, partitions=1, configs={"cleanup.policy": "compact"})
        outcome = self._session.run(Admin(self._session.cluster).create_topics([topic]))[topic.name]
        if isinstance(outcome, KafkaError) and outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome
