"""Change a follower's log as the leader says: append, truncate, or start over.

Offsets and epochs are the leader's. Only whole batches are appended: the last batch of an answer may be cut.
"""

from sskafka.model.ids import EpochEnd
from sskafka.partition.truncation import plan_truncation
from sskafka.records.batch import whole_batches
from sskafka.replication.partition import Partition
from sskafka.storage.errors import UnexpectedAppendOffsetError


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
    drop_what_leader_deleted(partition, leader_log_start_offset)


def drop_what_leader_deleted(partition: Partition, leader_log_start_offset: int) -> None:
    """Start over if the leader has deleted everything that this log holds: the logs cannot be compared any more."""
    if partition.log_start_offset < partition.log_end_offset <= leader_log_start_offset:
        partition.restart_at(leader_log_start_offset)
