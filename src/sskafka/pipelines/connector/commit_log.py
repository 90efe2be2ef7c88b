"""The control topic: what each query decided last (`decision` describes a record), under the query's prefix as key.

It is written in transactions of the id `<prefix>-driver`. Whoever initialized that id last is the only one who can
write until somebody initializes it in turn. Only committed records are read.

All queries share one partition, and readers of committed records see nothing behind an open transaction:

    decision of A | open: B | decision of A          B died while it wrote, or is about to end it
                  ^ readers stop here

Whoever took the older decision of A for its last one would write a batch again. So reading waits until everything is
settled that stood there when it began.

Queries of earlier versions had a prefix without the checkpoint's id. A query that finds nothing under its prefix takes
over what it decided under the earlier one.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from sskafka.client.admin import NewTopic
from sskafka.client.errors import UnknownTopicError
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.client.transactions import Transaction, add_partitions, end
from sskafka.model.buffers import Buffer
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.decision import Decision
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.topics import create_topics
from sskafka.pipelines.connector.transactions import begin
from sskafka.records.compression import Compression

DRIVER_TIMEOUT_MS = 60_000

_TAIL_RECORDS = 64
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_SETTLED_WITHIN_MS = 90_000
"""Longer than brokers need to abort what a dead driver had open: its timeout, and the pause between their looks."""
_SETTLED_POLL_S = 0.02


class CommitLog:
    """The decisions of one query, kept in partition 0 of the control topic."""

    def __init__(self, session: ClusterSession, options: SinkOptions, prefix: str, query_id: str = "") -> None:
        self._session = session
        self._options = options
        self._prefix = prefix
        self._query_id = query_id
        self._partition = TopicPartition(options.control_topic, 0)
        self._sequences: dict[Transaction, int] = {}
        self.earlier_prefix = ""
        """Of the version before this one, once something was found under it."""

    def read(self) -> Decision | None:
        """The query's last decision. Waits for every write that is under way in the topic."""
        return self._found(self._settled_end, changes=True)

    def peek(self) -> Decision | None:
        """The last decision that is visible now; a newer one may be about to appear. Changes nothing."""
        return self._found(partial(self._end, _READ_COMMITTED), changes=False)

    def _found(self, end: Callable[[], Coroutine[Any, Any, int]], *, changes: bool) -> Decision | None:
        cluster = self._session.cluster
        deadline_ms = cluster.deadline_ms()
        while True:
            try:
                last = self._session.run(end())
                break
            except UnknownTopicError:
                if not changes or self._is_created_now():
                    return None
                if cluster.clock.monotonic_ms() >= deadline_ms:
                    raise
            self._session.run(asyncio.sleep(_SETTLED_POLL_S))
        return self._last_of(self._prefix, last) or self._of_an_earlier_version(last, changes=changes)

    def _is_created_now(self) -> bool:
        """False where it exists: the broker that was asked has not heard of it yet, and it may hold decisions."""
        topic = NewTopic(self._partition.topic, 1, configs={"cleanup.policy": "compact"})
        return bool(create_topics(self._session, [topic]))

    def _of_an_earlier_version(self, end_offset: int, *, changes: bool) -> Decision | None:
        name = self._options.transactional_id_prefix
        if not name or name == self._prefix:
            return None
        found = self._last_of(name, end_offset)
        if found is None or found.query_id != self._query_id:
            return None
        if changes and not self.earlier_prefix:  # a driver of that version must not decide under its prefix any more
            self.earlier_prefix = name
            self._session.run(begin(self._session.cluster, f"{name}-driver", DRIVER_TIMEOUT_MS))
            return self.read()
        return found

    def _last_of(self, prefix: str, end_offset: int) -> Decision | None:
        """The tail is looked at first, then ever more of the topic. Offsets before its start are skipped."""
        tail = _TAIL_RECORDS
        while True:
            start = max(0, end_offset - tail)
            found = self._last_between(prefix, start, end_offset)
            if found is not None or start == 0:
                return found
            tail *= 8

    def write(self, decision: Decision, driver: Transaction) -> None:
        """One transaction with one record; `driver` is the id's last initialization."""
        self._session.run(self._write(decision, driver))

    async def _write(self, decision: Decision, driver: Transaction) -> None:
        cluster = self._session.cluster
        await add_partitions(cluster, driver, [self._partition])
        await deliver(cluster, {self._partition: self.record(decision, driver)}, driver.transactional_id)
        self._sequences[driver] = self._sequences.get(driver, 0) + 1
        await end(cluster, driver, commit=True)

    def record(self, decision: Decision, driver: Transaction) -> Buffer:
        (payload,) = payloads([Row(self._prefix.encode(), decision.to_json())])
        return framed(
            payload,
            timestamp=self._session.cluster.clock.now_ms(),
            producer_id=driver.producer_id,
            producer_epoch=driver.producer_epoch,
            base_sequence=self._sequences.get(driver, 0),
            codec=Compression.NONE,
            transactional=True,
        )

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

    def _last_between(self, prefix: str, start: int, end_offset: int) -> Decision | None:
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
        for batch in read_ranges(reading, [OffsetRange(self._partition, start, end_offset)], self._session):
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                if key == prefix.encode() and value is not None:
                    found = value
        return None if found is None else Decision.from_json(found)
