"""Read a partition for a fetch: up to the high watermark or last stable offset for consumers, to the end for followers.

An error in one partition does not affect the others. The error of a broker that is not the leader names the leader.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.replication.partition import DataWaiter, FollowerPosition, Partition
from sskafka.replication.readable_partition import PartitionRead
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.error_mapping import WRONG_BROKER, absence_error, error_code_of
from sskafka.servers.kafka.handlers.fetch.follower_session import FollowerSession
from sskafka.servers.kafka.handlers.fetch.session import Target
from sskafka.servers.kafka.request import Request
from sskafka.wire.fetch import FetchedPartition, FetchRequestView, PartitionTags
from sskafka.wire.leaders import CurrentLeader

NO_OFFSET: Final = -1
NO_REPLICA: Final = -1
READ_COMMITTED: Final = 1
READ_FROM_ANY_REPLICA_FROM: Final = 11
CURRENT_LEADER_FROM: Final = 16
NO_EPOCH: Final = -1
_new_tuple: Final = tuple.__new__  # a third of the cost of calling a NamedTuple

ReadResults = list[tuple[Target, FetchedPartition]]


class Reader(Protocol):
    def read(self, target: Target, room: int, min_one: bool) -> FetchedPartition: ...

    def must_respond(self, target: Target, fetched: FetchedPartition) -> bool:
        """Return whether the result is worth a response even without records."""
        ...

    def attempted(self, results: ReadResults) -> None:
        """Called when every partition was read, and the response is sent or the request waits."""
        ...

    def count(self, target: Target, fetched: FetchedPartition) -> None:
        """Count the result, which is being sent."""
        ...

    def waiters_of(self, partition: Partition) -> dict[DataWaiter, None]: ...


class ConsumerReader:
    """Reads for a consumer. Its position is recorded once per request, however often the request reads."""

    __slots__ = (
        "_fetched_ms",
        "_from_any_replica",
        "_rack_id",
        "_read_committed",
        "_reader_id",
        "_replicas",
        "_request",
    )

    def __init__(
        self, replicas: ReplicaManager, request: Request, fetch: FetchRequestView, chooses_replica: bool
    ) -> None:
        self._replicas = replicas
        self._request = request
        self._read_committed = fetch.isolation_level == READ_COMMITTED
        self._from_any_replica = request.version >= READ_FROM_ANY_REPLICA_FROM
        self._rack_id = fetch.rack_id if chooses_replica else ""
        self._reader_id = request.client_id
        self._fetched_ms = replicas.monotonic_ms()

    def read(self, target: Target, room: int, min_one: bool) -> FetchedPartition:
        try:
            partition = self._find(target)
            if self._rack_id:
                preferred = self._preferred_replica(partition, target)
                if preferred is not None:
                    return _read_elsewhere(partition, target, preferred)
            found = partition.read(
                target.fetch_offset,
                max(0, min(target.max_bytes, room)),
                read_committed=self._read_committed,
                min_one=min_one,
                current_leader_epoch=max(target.leader_epoch, NO_EPOCH),
                last_fetched_epoch=target.last_fetched_epoch,
                from_any_replica=self._from_any_replica,
            )
        except Exception as error:  # each partition fails for itself
            return failed(self._replicas, target, error, self._request.version)
        if self._reader_id:
            partition.readers.note(self._reader_id, target.fetch_offset, self._fetched_ms)
        return _fetched(target.index, found)

    def must_respond(self, target: Target, fetched: FetchedPartition) -> bool:
        return fetched.error_code != 0 or fetched.tags is not None or fetched.preferred_read_replica >= 0

    def attempted(self, results: ReadResults) -> None:
        self._reader_id = None

    def count(self, target: Target, fetched: FetchedPartition) -> None:
        counters = self._replicas.counters_of(target.topic)
        if counters is None:
            return
        counters.fetch_requests += 1
        counters.bytes_out += fetched.records_size
        if fetched.error_code:
            counters.failed_fetch_requests += 1

    def waiters_of(self, partition: Partition) -> dict[DataWaiter, None]:
        return partition.data_waiters

    def _find(self, target: Target) -> Partition:
        partition = self._replicas.maybe_find(target.topic, target.index)
        if partition is None:
            raise absence_error(self._replicas, self._request, AclOperation.READ, target.topic, target.index)
        if not self._request.may_on_topic(AclOperation.READ, partition.topic_partition.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return partition

    def _preferred_replica(self, partition: Partition, target: Target) -> int | None:
        """Return the preferred read replica. Only the leader sends consumers to another replica."""
        leader, replicas = partition.leader, self._replicas
        if leader is None:
            return None
        partition.check_leader_epoch(target.leader_epoch)
        own = ReadReplica(leader.broker_id, replicas.rack_of(leader.broker_id), partition.log_end_offset, 0)
        others = [
            ReadReplica(replica, replicas.rack_of(replica), progress.log_end_offset, progress.log_start_offset)
            for replica, progress in leader.followers.items()
            if replica in leader.isr.committed and replicas.registered_epoch(replica) is not None
        ]
        return nearest_replica(own, others, self._rack_id, target.fetch_offset)


class FollowerReader:
    """Reads for a follower. Its fetch offset says what it has, and counts once, however often the request reads."""

    __slots__ = (
        "_broker_epoch",
        "_is_new",
        "_last_fetch",
        "_may_replicate",
        "_replica_id",
        "_replicas",
        "_session",
        "_version",
    )

    def __init__(
        self,
        replicas: ReplicaManager,
        request: Request,
        fetch: FetchRequestView,
        session: FollowerSession | None,
        *,
        may_replicate: bool,
    ) -> None:
        self._session = session
        self._last_fetch = session.last_fetch if session is not None else None
        self._replicas = replicas
        self._replica_id = fetch.replica_id
        self._broker_epoch = fetch.replica_epoch
        self._may_replicate = may_replicate
        self._is_new = True
        self._version = request.version

    def read(self, target: Target, room: int, min_one: bool) -> FetchedPartition:
        try:
            if not self._may_replicate:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            partition = self._replicas.find(target.topic, target.index)
            if self._session is not None:
                self._session.watch(target, partition)
            position = FollowerPosition(
                self._replica_id,
                self._broker_epoch,
                target.fetch_offset,
                target.last_fetched_epoch,
                target.log_start_offset,
                max(target.leader_epoch, NO_EPOCH),
                self._last_fetch,
            )
            if self._is_held_back(partition):
                room, min_one = 0, False
            found = partition.read_as_follower(position, max(0, min(target.max_bytes, room)), min_one, self._is_new)
        except Exception as error:  # each partition fails for itself
            return failed(self._replicas, target, error, self._version)
        return _fetched(target.index, found)

    def must_respond(self, target: Target, fetched: FetchedPartition) -> bool:
        """Return True also for a new high watermark, but wait a little first, for records to send with it."""
        if fetched.error_code != 0 or fetched.tags is not None:
            return True
        if target.seen is None or target.seen[0] >= min(fetched.high_watermark, target.fetch_offset):
            return False
        if self._is_new:
            self._replicas.wake_followers_later(self._replicas.find(target.topic, target.index))
        return not self._is_new

    def attempted(self, results: ReadResults) -> None:
        if self._session is not None:
            for target, fetched in results:
                self._session.maybe_make_quiet(target, fetched, self._replica_id)
            if self._is_new:
                self._session.last_fetch.at_ms = self._replicas.monotonic_ms()
        self._is_new = False

    def count(self, target: Target, fetched: FetchedPartition) -> None:
        self._replicas.counters.bytes_out += fetched.records_size
        if fetched.records_size and self._is_throttled(self._replicas.find(target.topic, target.index)):
            self._replicas.sending.take(fetched.records_size)

    def _is_held_back(self, partition: Partition) -> bool:
        return self._is_throttled(partition) and self._replicas.sending.wait_ms() > 0

    def _is_throttled(self, partition: Partition) -> bool:
        """Return whether the follower is throttled. One that is in sync never is, because producers wait for it."""
        return partition.throttled.sending and not partition.has_follower_in_sync(self._replica_id)

    def waiters_of(self, partition: Partition) -> dict[DataWaiter, None]:
        return partition.follower_waiters


def _fetched(index: int, found: PartitionRead) -> FetchedPartition:
    diverging = found.diverging_epoch
    return _new_tuple(
        FetchedPartition,
        (
            index,
            0,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            found.aborted,
            NO_REPLICA,
            found.size_bytes,
            found.slices,
            None if diverging is None else PartitionTags(diverging_epoch=diverging),
        ),
    )


def _read_elsewhere(partition: Partition, target: Target, replica_id: int) -> FetchedPartition:
    high_watermark, last_stable = partition.high_watermark, partition.last_stable_offset
    log_start = partition.log_start_offset
    return FetchedPartition(target.index, 0, high_watermark, last_stable, log_start, None, replica_id, 0, ())


def failed(replicas: ReplicaManager, target: Target, error: Exception, version: int) -> FetchedPartition:
    """Return the result for a partition that cannot be read. Newer versions name the current leader."""
    code, _ = error_code_of(error)
    tags = None
    if code is ErrorCode.CORRUPT_MESSAGE:
        replicas.unreadable(target.topic, target.index, target.fetch_offset)
    if code in WRONG_BROKER and version >= CURRENT_LEADER_FROM:
        leadership = replicas.leadership_of(target.topic, target.index)
        if leadership is not None:
            tags = PartitionTags(current_leader=CurrentLeader(leadership.leader_id, leadership.leader_epoch))
    aborted = () if code in _UNREADABLE else None  # as in Kafka
    return FetchedPartition(target.index, code, NO_OFFSET, NO_OFFSET, NO_OFFSET, aborted, NO_REPLICA, 0, (), tags)


_UNREADABLE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}
"""Errors for which no log was read."""


class ReadReplica(NamedTuple):
    broker_id: int
    rack: str | None
    log_end_offset: int
    log_start_offset: int


def nearest_replica(
    leader: ReadReplica, in_sync: Iterable[ReadReplica], client_rack: str, fetch_offset: int
) -> int | None:
    """Return the preferred read replica (KIP-392), the most caught-up one in the consumer's rack, or None for the
    leader.

    `in_sync` holds the other live in-sync replicas."""
    if not client_rack or leader.rack == client_rack:
        return None
    near = [
        replica
        for replica in in_sync
        if replica.rack == client_rack and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
    ]
    if not near:
        return None
    return max(near, key=lambda replica: (replica.log_end_offset, -replica.broker_id)).broker_id
