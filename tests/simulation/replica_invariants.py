"""What must hold of replicated partitions whatever happens; checked after every event.

one history        what was once below a high watermark is the same on every replica below its own, for ever
watermarks         log start <= high watermark <= log end; a leader's never goes back within its epoch
in sync            every member of the in-sync set that lives has all that its leader calls committed
acknowledged       what a producer was told is written is in the history, at the offset it was told
"""

from replica_cluster import TOPIC_ID, ReplicaCluster

from sskafka.records.batch import iter_headers
from sskafka.records.record import decode_records
from sskafka.replication.partition import Partition

Place = tuple[int, int]
"""Partition and offset."""


class InvariantError(AssertionError):
    pass


def require(holds: bool, invariant: str, what: object) -> None:
    if not holds:
        raise InvariantError(f"{invariant}: {what}")


class History:
    def __init__(self, cluster: ReplicaCluster, partitions: int) -> None:
        self._cluster = cluster
        self._partitions = range(partitions)
        self.committed: dict[Place, bytes] = {}
        self.acknowledged: dict[Place, bytes] = {}
        self.starts = dict.fromkeys(self._partitions, 0)
        """Records before were deleted on purpose."""
        self._checked: dict[tuple[Partition, int], tuple[int, int]] = {}
        self._leader_marks: dict[tuple[int, int], int] = {}

    def check(self) -> None:
        for broker in self._cluster.brokers.values():
            for index in self._partitions:
                partition = broker.maybe_partition(TOPIC_ID, index)
                if partition is not None:
                    self._check_replica(broker.broker_id, index, partition)
        for index in self._partitions:
            self._check_in_sync(index)

    def _check_replica(self, broker_id: int, index: int, partition: Partition) -> None:
        log, high_watermark = partition.log, partition.high_watermark
        what = f"{log} on broker {broker_id} has high watermark {high_watermark}"
        require(log.log_start_offset <= high_watermark <= log.log_end_offset, "watermarks", what)
        if partition.leader is not None:
            key = (index, partition.leader.leader_epoch)
            require(high_watermark >= self._leader_marks.get(key, 0), "watermarks", f"{what}, it was higher")
            self._leader_marks[key] = high_watermark
        seen_from, seen_to = self._checked.get((partition, log._truncations), (0, 0))
        if seen_to < high_watermark or seen_from == seen_to:
            start = max(log.log_start_offset, seen_to)
            for offset, value in read_values(partition, start, high_watermark):
                known = self.committed.setdefault((index, offset), value)
                require(known == value, "one history", f"{what}; {value!r} at {offset}, where {known!r} was committed")
            self._checked[partition, log._truncations] = (start, high_watermark)

    def _check_in_sync(self, index: int) -> None:
        state = self._cluster.controller.state(index)
        leader = self._cluster.brokers.get(state.leader)
        if leader is None:
            return
        partition = leader.maybe_partition(TOPIC_ID, index)
        if partition is None or partition.leader is None or partition.leader.leader_epoch != state.leader_epoch:
            return
        for replica in state.isr:
            broker = self._cluster.brokers.get(replica)
            member = broker.maybe_partition(TOPIC_ID, index) if broker is not None else None
            if (
                broker is not None
                and member is not None
                and broker.broker_epoch == self._cluster.controller.image.brokers[replica].epoch
            ):
                end = member.log.log_end_offset
                what = f"broker {replica} is in sync at {end}, {state.leader} leads with {partition.high_watermark}"
                require(end >= partition.high_watermark, "in sync", what)

    def check_acknowledged(self) -> None:
        """At the end: everything is on every replica that is in sync."""
        for index in self._partitions:
            for replica in self._cluster.controller.state(index).isr:
                partition = self._cluster.partition(replica, index)
                found = dict(read_values(partition, partition.log.log_start_offset, partition.high_watermark))
                for (where, offset), value in self.acknowledged.items():
                    if where == index and offset >= max(self.starts[index], partition.log.log_start_offset):
                        what = f"{value!r} at {offset} of partition {index} is not on broker {replica}"
                        require(found.get(offset) == value, "acknowledged", what)


def read_values(partition: Partition, start: int, end: int) -> list[tuple[int, bytes]]:
    if start >= end:
        return []
    data = memoryview(b"".join(bytes(part.read()) for part in partition.log.read(start, 1 << 30, end)))
    return [
        (record.offset, record.value or b"")
        for position, header in iter_headers(data)
        for record in decode_records(data, header, position)
        if start <= record.offset < end
    ]
