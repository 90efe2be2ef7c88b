"""Change a follower's log as the leader says: append, truncate, or start over.

Offsets and epochs are the leader's. Only whole batches are appended: the last batch of an answer may be cut.
"""

from collections.abc import Callable

from sskafka.client.broker_link import Link
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import EpochEnd
from sskafka.partition.truncation import plan_truncation
from sskafka.records.batch import whole_batches
from sskafka.replication.partition import Partition
from sskafka.storage.errors import UnexpectedAppendOffsetError
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, EARLIEST = -1, -2


def append_fetched(partition: Partition, records: memoryview, now_ms: int) -> int:
    """Append the batches. Return the number of bytes appended."""
    batches = whole_batches(records)
    if not batches:
        return 0
    try:
        partition.append_as_follower(batches, now_ms)
    except UnexpectedAppendOffsetError as error:
        if not _begins_inside(partition, error):
            raise
        partition.restart_at(error.first_offset)
        partition.append_as_follower(batches, now_ms)
    return len(batches)


def _begins_inside(partition: Partition, error: UnexpectedAppendOffsetError) -> bool:
    """Return whether the log is empty and starts inside the leader's first batch.

    Records up to the middle of that batch were deleted (DeleteRecords)."""
    end_offset = partition.log_end_offset
    return partition.log_start_offset == end_offset and error.first_offset < end_offset <= error.last_offset


def truncate_by(partition: Partition, diverging: EpochEnd, leader_log_start_offset: int) -> None:
    own = partition.end_offset_for_epoch(diverging.epoch)
    partition.truncate_to(plan_truncation(diverging, own, partition.log_end_offset))
    restart_after_leader_deletion(partition, leader_log_start_offset)


def restart_after_leader_deletion(partition: Partition, leader_log_start_offset: int) -> None:
    """Start over if the leader has deleted everything that this log holds: the logs cannot be compared any more."""
    if partition.log_start_offset < partition.log_end_offset <= leader_log_start_offset:
        partition.restart_at(leader_log_start_offset)


class OffsetReset:
    """Aligns a follower's log with the leader's after OFFSET_OUT_OF_RANGE: asks for the leader's start and end offsets.

    own end above the leader's end      truncate to the leader's end: it was elected without being in sync
    own end below the leader's start    the leader deleted the next records: start over at its log start offset"""

    def __init__(
        self, partition: Partition, broker_id: int, link: Link, done: Callable[[Exception | None], None]
    ) -> None:
        self._partition = partition
        self._broker_id = broker_id
        self._leader_epoch = partition.leadership.leader_epoch
        self._link = link
        self._done = done

    def start(self) -> None:
        self._ask(LATEST, self._know_end)

    def _know_end(self, leader_end_offset: int) -> None:
        if leader_end_offset < self._partition.log_end_offset:
            self._partition.truncate_to(leader_end_offset)
            self._done(None)
        else:
            self._ask(EARLIEST, self._know_start)

    def _know_start(self, leader_start_offset: int) -> None:
        if leader_start_offset > self._partition.log_end_offset:
            self._partition.restart_at(leader_start_offset)
        self._done(None)

    def _ask(self, timestamp: int, use: Callable[[int], None]) -> None:
        topic, index = self._partition.topic_partition
        asked = ListOffsetsPartition(index, self._leader_epoch, timestamp)
        request = ListOffsetsRequest(self._broker_id, topics=[ListOffsetsTopic(topic, [asked])])

        def answered(answer: ListOffsetsResponse | Exception) -> None:
            try:
                offset = _offset_in(answer)
                if self._partition.leadership.leader_epoch == self._leader_epoch:
                    use(offset)
                else:
                    self._done(None)  # the leader has changed
            except Exception as error:  # the fetcher pauses the partition
                self._done(error)

        self._link.ask(request, ListOffsetsResponse, answered)


def _offset_in(answer: ListOffsetsResponse | Exception) -> int:
    if isinstance(answer, Exception):
        raise answer
    result = answer.topics[0].partitions[0]
    if result.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(result.error_code), "the leader did not return its offsets")
    return result.offset
