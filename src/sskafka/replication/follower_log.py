"""What a follower does to its log on the leader's word: append, cut, begin anew.

Offsets and epochs are the leader's. Only whole batches are taken: the leader may cut the last one of an answer.
"""

from sskafka.partition.truncation import EpochEnd, plan_truncation
from sskafka.records.batch import whole_batches
from sskafka.replication.partition import Partition
from sskafka.storage.errors import UnexpectedAppendOffsetError


def append_fetched(partition: Partition, records: memoryview, now_ms: int) -> int:
    """Bytes that were appended."""
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
    """The log is empty and begins inside the leader's first batch: records were deleted up to the middle of it."""
    end_offset = partition.log_end_offset
    return partition.log_start_offset == end_offset and error.first_offset < end_offset <= error.last_offset


def truncate_by(partition: Partition, diverging: EpochEnd, leader_log_start_offset: int) -> None:
    own = partition.end_offset_for_epoch(diverging.epoch)
    partition.truncate_to(plan_truncation(diverging, own, partition.log_end_offset))
    drop_what_leader_deleted(partition, leader_log_start_offset)


def drop_what_leader_deleted(partition: Partition, leader_log_start_offset: int) -> None:
    """Nothing of this log is left at the leader, so nobody can tell whether it is the same: begin anew."""
    if partition.log_start_offset < partition.log_end_offset <= leader_log_start_offset:
        partition.restart_at(leader_log_start_offset)
