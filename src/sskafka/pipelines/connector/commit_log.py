"""The control topic, which stores the last decision of each query (see `decision`) under the query's prefix as key.

Decisions are written in transactions of the id `<prefix>-driver`. Only the process that initialized this id last can
write. Readers use read_committed.

All queries share one partition, and a read_committed reader stops at the first open transaction:

    decision of A | open: B | decision of A          B has died while it wrote, or is about to commit
                  ^ readers stop here

A query that took the first decision of A for the last one would write a batch again. A query that waited for B would
stand still until the brokers abort B. Therefore `read` continues from there with read_uncommitted, and takes what the
markers say is committed (`last_committed`). It waits only for transactions of its own query, and a query that has
fenced its driver has none.

Queries of earlier versions had a prefix without the id of the checkpoint. A query that finds no decision under its own
prefix continues with the decision under the earlier one.
"""

import asyncio
import json

from sskafka.client.admin import NewTopic
from sskafka.client.configs import Resource, describe_configs
from sskafka.client.errors import UnknownTopicError, UnsupportedApiError
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.client.transactions import Transaction, add_partitions, end
from sskafka.model.buffers import Buffer
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.decision import Decision
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.errors import ConnectorError, NotDecidedError
from sskafka.pipelines.connector.fetching import Reading, read_ranges, received_batches
from sskafka.pipelines.connector.last_committed import LastCommitted
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, SourceOptions, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.topics import create_topics
from sskafka.pipelines.connector.transactions import begin
from sskafka.records.compression import Compression

DRIVER_TIMEOUT_MS = 60_000
"""Least timeout of the driver's transactions. If those of tasks have a longer one, they have that, too."""

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""`max.message.bytes` of the control topic: enough for the decision of a batch of 100,000 tasks."""
_MESSAGE_BYTES_DEFAULT = 1_048_588
_COMPRESSED_FROM_BYTES = 64 * 1024
_CHECKED_FROM_BYTES = 256 * 1024
"""Smaller decisions fit into every control topic, so that nobody asks for its limit."""
_ROOM_BYTES = 16 * 1024
_ROOM_BYTES_PER_PART = 2
"""How much larger than a decision its outcome, or a claim of it, may be: the fate of each part, and past owners."""

_TAIL_RECORDS = 64
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_ENDED_WITHIN_MS = 90_000
"""Longer than the brokers need to end the transaction of a driver that was fenced, or of one of an earlier version,
which has the timeout `DRIVER_TIMEOUT_MS`."""
_POLL_S = 0.02


class CommitLog:
    """The decisions of one query in partition 0 of the control topic."""

    def __init__(self, session: ClusterSession, options: SinkOptions, prefix: str, query_id: str = "") -> None:
        self._session = session
        self._options = options
        self._prefix = prefix
        self._query_id = query_id
        self._partition = TopicPartition(options.control_topic, 0)
        self._sequences: dict[Transaction, int] = {}
        self.earlier_prefix = ""
        """The prefix of the previous version, if a decision was found under it."""

    @property
    def partition(self) -> TopicPartition:
        return self._partition

    def next_sequence(self, driver: Transaction) -> int:
        """Return the producer's next sequence number in the control topic."""
        return self._sequences.get(driver, 0)

    def continue_at(self, driver: Transaction, sequence: int) -> None:
        """Set the producer's next sequence number: another process has written with it."""
        self._sequences[driver] = sequence

    def read(self) -> Decision | None:
        """Return the last decision of the query. Waits until the query has no open transaction in the topic."""
        return self._found(changes=True)

    def peek(self) -> Decision | None:
        """Return the last decision that is visible now; a newer one may be about to be committed. Changes nothing."""
        return self._found(changes=False)

    def _found(self, *, changes: bool) -> Decision | None:
        cluster = self._session.cluster
        deadline_ms = cluster.deadline_ms()
        while True:
            try:
                return self._last_of(self._prefix, waits=changes) or self._of_an_earlier_version(changes=changes)
            except UnknownTopicError:
                if not changes or self._is_created_now():
                    return None
                if cluster.clock.monotonic_ms() >= deadline_ms:
                    raise
            self._session.run(asyncio.sleep(_POLL_S))

    def _is_created_now(self) -> bool:
        """Create the topic, and return False if it exists after all.

        A broker may not know yet of a topic that exists and contains decisions."""
        configs = {"cleanup.policy": "compact", "max.message.bytes": str(MESSAGE_BYTES_MAX)}
        topic = NewTopic(self._partition.topic, 1, configs=configs)
        return bool(create_topics(self._session, [topic]))

    def _of_an_earlier_version(self, *, changes: bool) -> Decision | None:
        name = self._options.transactional_id_prefix
        if not name or name == self._prefix:
            return None
        found = self._last_of(name, waits=changes)
        if found is None or found.query_id != self._query_id:
            return None
        if (
            changes and not self.earlier_prefix
        ):  # a driver of that version must no longer be able to decide under its prefix
            self.earlier_prefix = name
            self._session.run(begin(self._session.cluster, f"{name}-driver", DRIVER_TIMEOUT_MS))
            return self.read()
        return found

    def _last_of(self, prefix: str, *, waits: bool) -> Decision | None:
        """Return the last decision under the prefix; `waits`: not before its open transactions have ended."""
        cluster = self._session.cluster
        deadline_ms = cluster.deadline_ms(_ENDED_WITHIN_MS)
        while True:
            stable, end_offset = self._session.run(self._ends())
            recent = self._last_above(prefix, stable, end_offset)
            if not (waits and recent.is_undecided):
                break
            if cluster.clock.monotonic_ms() >= deadline_ms:
                raise ConnectorError(
                    f"{self._partition}: a transaction of {prefix}-driver, which began at offset {stable} or later, is "
                    f"still open after {_ENDED_WITHIN_MS // 1000} s. `sskafka transaction list` shows it"
                )
            self._session.run(asyncio.sleep(_POLL_S))
        return self._last_below(prefix, stable) if recent.value is None else Decision.from_json(recent.value)

    def _last_above(self, prefix: str, stable: int, end_offset: int) -> LastCommitted:
        """Read what follows the first open transaction."""
        found = LastCommitted(prefix.encode())
        if stable < end_offset:
            wanted = OffsetRange(self._partition, stable, end_offset)
            options = self._source_options("read_uncommitted")
            reading = Reading(self._session.cluster, options, [wanted], include_markers=True)
            for left, batches in received_batches(self._session.run, reading):
                for batch in batches:
                    found.take(batch, left)
        return found

    def _last_below(self, prefix: str, stable: int) -> Decision | None:
        """Read what precedes the first open transaction: the end of it first, then more and more."""
        tail = _TAIL_RECORDS
        while True:
            start = max(0, stable - tail)
            found = self._last_between(prefix, start, stable)
            if found is not None or start == 0:
                return found
            tail *= 8

    def write(self, decision: Decision, driver: Transaction, *, decides: bool = False) -> None:
        """Write one record in one transaction; `driver` is the last initialization of the driver's id.

        `decides`: raise NotDecidedError, before anything is decided, unless the outcome will fit into the topic, too.
        """
        self._session.run(self._write(decision, driver, decides))

    async def _write(self, decision: Decision, driver: Transaction, decides: bool) -> None:
        cluster = self._session.cluster
        record = self.record(decision, driver)
        if decides:
            await self._refuse_if_too_large(decision, len(record))
        await add_partitions(cluster, driver, [self._partition])
        await deliver(cluster, {self._partition: record}, driver.transactional_id)
        self._sequences[driver] = self._sequences.get(driver, 0) + 1
        await end(cluster, driver, commit=True)

    async def _refuse_if_too_large(self, decision: Decision, size: int) -> None:
        needed = size + _ROOM_BYTES + _ROOM_BYTES_PER_PART * len(decision.parts)
        if needed <= _CHECKED_FROM_BYTES:
            return
        limit = await self._message_bytes_max()
        if needed > limit:
            raise NotDecidedError(
                f"batch {decision.batch} of query {self._options.transactional_id_prefix or self._query_id!r} was not "
                f"committed: {len(decision.parts)} tasks have written it, and the list of their transactions needs "
                f"{needed} bytes in {self._partition.topic}, where max.message.bytes is {limit}. No part of the batch "
                "is visible. Write the query with fewer tasks (coalesce before writeStream, or smaller batches with "
                f"maxOffsetsPerTrigger), or raise max.message.bytes of {self._partition.topic}"
            )

    async def _message_bytes_max(self) -> int:
        """Return the limit of the topic, or the default of brokers if this client may not ask."""
        topic = Resource.topic(self._partition.topic)
        try:
            found = await describe_configs(self._session.cluster, topic, ["max.message.bytes"])
        except (KafkaError, UnsupportedApiError):
            return _MESSAGE_BYTES_DEFAULT
        return next((int(one.value) for one in found if one.value), _MESSAGE_BYTES_DEFAULT)

    def record(self, decision: Decision, driver: Transaction) -> Buffer:
        text = decision.to_json()
        (payload,) = payloads([Row(self._prefix.encode(), text)])
        return framed(
            payload,
            timestamp=self._session.cluster.clock.now_ms(),
            producer_id=driver.producer_id,
            producer_epoch=driver.producer_epoch,
            base_sequence=self._sequences.get(driver, 0),
            codec=Compression.NONE if len(text) < _COMPRESSED_FROM_BYTES else Compression.ZSTD,
            transactional=True,
        )

    async def _ends(self) -> tuple[int, int]:
        """Return the last stable offset and the end of the log."""
        end_offset = await self._end(_READ_UNCOMMITTED)
        return min(await self._end(_READ_COMMITTED), end_offset), end_offset

    async def _end(self, isolation: int) -> int:
        found = await list_offsets(self._session.cluster, {self._partition: LATEST}, isolation=isolation)
        return found[self._partition].offset

    def _last_between(self, prefix: str, start: int, end_offset: int) -> Decision | None:
        if start >= end_offset:
            return None
        reading = self._source_options("read_committed")
        found = None
        for batch in read_ranges(reading, [OffsetRange(self._partition, start, end_offset)], self._session):
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                if key == prefix.encode() and value is not None:
                    found = value
        return None if found is None else Decision.from_json(found)

    def _source_options(self, isolation: str) -> SourceOptions:
        return source_options(
            {
                BOOTSTRAP: self._options.bootstrap,
                "assign": json.dumps({self._partition.topic: [0]}),
                "kafka.isolation.level": isolation,
                "failOnDataLoss": "false",
            },
            streaming=False,
        )
