"""An idempotent producer of one partition: it repeats a batch, with its sequence, until somebody acknowledges it.

    up to five batches in flight, to one broker that believes it leads
    a refusal, or no answer      wait for the other answers, then begin again with the first batch not acknowledged,
                                 at any broker that believes it leads, perhaps a deposed one
    an acknowledgement           also of every earlier batch, as librdkafka takes it: a broker that has a batch has all
                                 batches of smaller sequences

The first batch goes alone: a broker that does not know a producer accepts any sequence from it, in Apache Kafka too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replica_brokers import ReplicaBroker
from replica_cluster import TOPIC_ID
from replica_invariants import require
from virtual_time import VirtualTime

from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

IN_FLIGHT_MAX = 5
PRODUCE_TIMEOUT_MS = 400
GIVE_UP_S = 0.8
"""After which an answer is not waited for; the broker may have died with it."""


@dataclass(eq=False, slots=True)
class Batch:
    base_sequence: int
    count: int
    attempt: int = 0

    @property
    def values(self) -> list[bytes]:
        return [b"w%d" % (self.base_sequence + number) for number in range(self.count)]


class IdempotentWriter:
    def __init__(self, time: VirtualTime, index: int, producer_id: int, leaders: Callable[[], list[ReplicaBroker]]):
        self._time = time
        self._index = index
        self._producer_id = producer_id
        self._leaders = leaders
        self._broker: ReplicaBroker | None = None
        self._unacknowledged: list[Batch] = []
        self._in_flight: list[Batch] = []
        self._next_sequence = 0
        self._is_draining = False
        self.acknowledged: dict[int, bytes] = {}
        """By offset, where an answer named one."""
        self.acknowledged_before = 0
        """All smaller numbers were acknowledged."""

    @property
    def is_idle(self) -> bool:
        return not self._unacknowledged

    def write(self, count: int) -> None:
        """Another batch of so many records, unless many are waiting."""
        if len(self._unacknowledged) < 2 * IN_FLIGHT_MAX:
            self._unacknowledged.append(Batch(self._next_sequence, count))
            self._next_sequence += count

    def step(self, choose: Callable[[Sequence[ReplicaBroker]], ReplicaBroker]) -> None:
        """Send what may be sent now."""
        if self._is_draining:
            if self._in_flight:
                return
            self._is_draining, self._broker = False, None
        if self._broker is None or not self._broker.is_running:
            leaders = self._leaders()
            if not leaders or self._in_flight:
                return
            self._broker = choose(leaders)
        room = IN_FLIGHT_MAX if self.acknowledged_before else 1
        for batch in self._unacknowledged[:room]:
            if batch not in self._in_flight and not self._is_draining:
                self._send(batch, self._broker)

    def _send(self, batch: Batch, broker: ReplicaBroker) -> None:
        batch.attempt += 1
        attempt = batch.attempt
        self._in_flight.append(batch)

        def answered(response: ProduceResponse) -> None:
            result = response.responses[0].partition_responses[0]
            self._settle(batch, attempt, result.base_offset if result.error_code == 0 else None)

        records = build_batch(
            [NewRecord(None, value, (), 0) for value in batch.values],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=batch.base_sequence,
        )
        data = TopicProduceData(topic_id=TOPIC_ID, partition_data=[PartitionProduceData(self._index, records)])
        self._time.call_later(GIVE_UP_S, lambda: self._settle(batch, attempt, None))
        broker.produce(ProduceRequest(acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[data]), answered)

    def _settle(self, batch: Batch, attempt: int, base_offset: int | None) -> None:
        if batch not in self._in_flight or batch.attempt != attempt:
            return  # an answer that comes late is not listened to
        self._in_flight.remove(batch)
        if base_offset is None:
            self._is_draining = True
            return
        for number, value in enumerate(batch.values):
            self.acknowledged[base_offset + number] = value
        self.acknowledged_before = max(self.acknowledged_before, batch.base_sequence + batch.count)
        self._unacknowledged = [
            other for other in self._unacknowledged if other.base_sequence >= self.acknowledged_before
        ]
        self._in_flight = [other for other in self._in_flight if other in self._unacknowledged]

    def check(self, log: Sequence[tuple[int, bytes]]) -> None:
        """`log`: offset and value of every record of the partition, which has no other writer."""
        written = [value for _, value in log]
        expected = [b"w%d" % number for number in range(self.acknowledged_before)]
        require(written[: len(expected)] == expected, "once and in order", _first_difference(expected, written))
        rest = [b"w%d" % number for number in range(len(expected), len(written))]
        require(written[len(expected) :] == rest, "once and in order", "what was not acknowledged is out of order")
        places = dict(log)
        moved = {offset: value for offset, value in self.acknowledged.items() if places.get(offset) != value}
        require(not moved, "acknowledged", f"not where the answer said: {moved}")


def _first_difference(expected: list[bytes], written: list[bytes]) -> str:
    for offset, (one, other) in enumerate(zip(expected, written, strict=False)):
        if one != other:
            return f"{other!r} at offset {offset} instead of {one!r}"
    return f"{len(written)} records, {len(expected)} were acknowledged"
