"""Many offsets are deleted on a coordinator's context in later turns, whatever happens to the context meanwhile."""

import pytest
from group_lab import Asked
from test_group_computations import Lab

from sskafka.groups import offset_deletion
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.offset_requests import OffsetCommit
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.replication.errors import NotEnoughReplicasError

OFFSETS = 40


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(offset_deletion, "AT_ONCE_MAX", 10)
    monkeypatch.setattr(offset_deletion, "OFFSETS_PER_DECISION", 4)
    lab = Lab()
    commit(lab, *range(OFFSETS))
    return lab


def commit(lab: Lab, *partitions: int, topic: str = "t") -> None:
    commits = [OffsetCommit(TopicPartition(topic, partition), 5, 0, "") for partition in partitions]
    asked = Asked()
    lab.context.write(lambda shard, now_ms: shard.commit_offsets("g", OffsetCommitter(), commits, -1, now_ms), asked)
    lab.turn()
    assert asked.response == [ErrorCode.NONE] * len(partitions)


def delete_group(lab: Lab) -> Asked:
    asked = Asked()
    lab.context.write(lambda shard, now_ms: shard.delete_group("g", asked), asked)
    lab.turn()
    return asked


def fetched(lab: Lab) -> list[int]:
    found = lab.context.shard.offset_requests.fetch_all("g", require_stable=False)
    return sorted(partition.partition for partition in found.offsets)


def left(lab: Lab) -> int:
    return len(lab.context.shard.offsets.committed("g"))


def test_a_group_is_gone_at_once_and_the_request_is_answered_when_its_offsets_are(lab: Lab) -> None:
    asked = delete_group(lab)
    assert not fetched(lab)
    assert not lab.context.shard.groups
    assert 0 < left(lab) < OFFSETS + 1
    assert not asked.is_answered
    commit(lab, 3)
    lab.turn(500)
    assert asked.response is ErrorCode.NONE
    assert fetched(lab) == [3]
    lab.begin()
    assert fetched(lab) == [3], "the log has the tombstones"


def test_no_answer_before_the_last_tombstone_is_committed(lab: Lab) -> None:
    lab.log.is_replicated = False
    asked = delete_group(lab)
    lab.turn(500)
    assert not asked.is_answered
    lab.log.is_replicated = True
    lab.log.replicate()
    lab.turn(2_000)
    assert asked.response is ErrorCode.NONE


def test_a_deletion_that_is_asked_for_again_until_it_is_committed_is_finished_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_deletion, "ASK_AGAIN_MS", 10)
    asked = delete_group(lab)
    shard = lab.context.shard
    lab.log.is_replicated = False
    lab.turn(500)
    assert left(lab) == 0
    assert not asked.is_answered
    lab.log.is_replicated = True
    lab.log.replicate()
    lab.turn(500)
    assert asked.response is ErrorCode.NONE
    assert lab.context.shard is shard, "it was not loaded anew"


def test_a_coordinator_that_loses_the_partition_leaves_a_group_with_fewer_offsets(lab: Lab) -> None:
    asked = delete_group(lab)
    lab.turn(20)
    lab.context.stop()
    assert asked.error is ErrorCode.NOT_COORDINATOR
    lab.turn(500)
    lab.begin()
    assert 0 < len(fetched(lab)) < OFFSETS
    assert "g" in lab.context.shard.groups
    again = delete_group(lab)
    lab.turn(500)
    assert again.response is ErrorCode.NONE
    assert left(lab) == 0


def test_a_deletion_goes_on_when_enough_replicas_are_in_sync_again(lab: Lab) -> None:
    asked = delete_group(lab)
    lab.log.is_writable = False
    lab.turn(500)
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not fetched(lab)
    assert left(lab) > 0
    lab.log.is_writable = True
    lab.turn(3_000)
    assert left(lab) == 0


def test_an_append_that_fails_ends_the_deletion_with_an_error(lab: Lab) -> None:
    asked = delete_group(lab)
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    lab.turn(100)
    lab.log.append_error = None
    assert asked.error is not None
    lab.turn(100)
    assert 0 < len(fetched(lab)) < OFFSETS + 1
    assert not lab.context.shard.deletions._unfinished


def test_offsets_of_missing_topics_are_deleted_after_every_load(lab: Lab) -> None:
    commit(lab, 1, topic="kept")
    lab.context.after_load = lambda shard, _: shard.topics_missing({"kept"})
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    lab.context.write(lambda shard, now_ms: shard.delete_group("g"), Asked())
    lab.turn(20)
    lab.log.append_error = None
    lab.turn(500)
    assert list(lab.context.shard.offsets.committed("g")) == [TopicPartition("kept", 1)]
