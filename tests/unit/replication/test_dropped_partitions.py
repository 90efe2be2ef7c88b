"""A partition that was deleted while somebody still refers to it, as a coordinator with records to write does."""

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from sskafka.metadata.records import RemoveTopicRecord
from sskafka.records.builder import NewRecord, build_batch
from sskafka.replication.errors import NotLeaderOrFollowerError


def test_nothing_is_appended_to_a_deleted_partition_and_its_directory_stays_online() -> None:
    """The append once opened the files again, found none, and stopped the broker for a broken disk."""
    cluster = ReplicaCluster()
    cluster.controller.create_topic([[1]])
    cluster.time.run_for(300)
    partition = cluster.partition(1)
    batch = memoryview(bytearray(build_batch([NewRecord(None, b"late", (), 0)])))
    cluster.controller.commit(RemoveTopicRecord(TOPIC_ID))
    cluster.time.run_for(300)
    with pytest.raises(NotLeaderOrFollowerError):
        partition.append(batch, 1, 0, from_client=False)
    assert partition.log.log_directory.failure is None
