"""Followers and producers that wait for a sync of a log while the log is restarted or replaced."""

import errno

import pytest
from replica_cluster import ReplicaCluster
from replica_requests import produce, result, send

from sskafka.records.builder import NewRecord, build_batch


@pytest.fixture
def cluster() -> ReplicaCluster:
    made = ReplicaCluster()
    made.controller.create_topic([[1, 2, 3]])
    made.time.run_for(300)
    return made


def test_a_follower_that_begins_anew_behind_deleted_records_goes_on_fetching(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    for number in range(5):
        produce(cluster, b"%d" % number)
    for broker in (1, 2):
        cluster.partition(broker).log.increment_log_start_offset(5)
    cluster.start(3)
    cluster.time.run_until(lambda: cluster.partition(3).log.log_start_offset == 5)
    cluster.time.run_for(1000)  # answers without records
    assert produce(cluster, b"5").error_code == 0
    cluster.time.run_until(lambda: cluster.partition(3).log.log_end_offset == 6)
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)


def test_who_waits_for_a_sync_of_a_log_is_answered_when_a_moved_one_takes_its_place(cluster: ReplicaCluster) -> None:
    partition = cluster.partition(1)
    partition.log.ready_offset = -1
    partition.log._is_held = True  # a sync that never comes to its end
    answers = send(cluster.brokers[1], b"a", acks=1)
    assert not answers
    partition.log.ready_offset = partition.log.log_end_offset
    partition.replace_log(partition.log)
    assert result(answers).error_code == 0


def test_a_new_leader_is_not_told_of_what_its_follower_has_not_synced_yet(cluster: ReplicaCluster) -> None:
    produce(cluster, b"a")
    cluster.time.run_for(300)
    log = cluster.partition(3).log
    log._is_held = True  # as a sync does that is under way
    send(cluster.brokers[1], b"b")
    cluster.time.run_for(300)
    assert (log.ready_offset, log.log_end_offset) == (1, 2)
    cluster.controller.move_leader(0, 2)
    cluster.time.run_until(lambda: cluster.partition(2).is_leader)
    cluster.time.run_for(300)
    assert cluster.partition(2).high_watermark == 1
    log._is_held = False
    log.ready_offset = log.log_end_offset
    cluster.partition(3)._flushed()
    cluster.time.run_until(lambda: cluster.partition(2).high_watermark == 2)


def test_a_full_disk_keeps_a_follower_from_one_partition_and_from_no_other() -> None:
    cluster = ReplicaCluster()
    cluster.controller.create_topic([[1, 2, 3], [1, 2, 3]])
    cluster.time.run_for(300)

    def full(operation: str, path: str) -> None:
        if operation == "write" and "-1/leader-epoch" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    cluster.disks[3].fault = full
    batch = build_batch([NewRecord(None, b"a", (), 0)])
    cluster.partition(1, 1).append(memoryview(batch), -1, 0)
    log = cluster.partition(3, 1).log
    cluster.time.run_until(lambda: log.lacks_room)
    assert (log.ready_offset, log.log_end_offset) == (0, 1)
    assert produce(cluster, b"b").error_code == 0
    assert cluster.partition(3).log.log_end_offset == 1
    cluster.time.run_until(lambda: cluster.partition(1, 1).high_watermark == 1)
    assert [cluster.controller.state(index).isr for index in (0, 1)] == [(1, 2, 3), (1, 2)]
    cluster.disks[3].fault = None
    log.retry_pending_sync()
    cluster.time.run_until(lambda: len(cluster.controller.state(1).isr) == 3)
