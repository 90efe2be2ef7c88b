"""The lab's `acks: all` against a cluster whose responses the test sets."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from sskafka.client.errors import ConnectionLostError, UnknownTopicError
from sskafka.client.metadata import MetadataSnapshot, PartitionView, TopicView
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.replica_wait import FollowerReports, ReplicaWait, StoredRecords
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from sskafka.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

PARTITION = TopicPartition("t", 0)
TOPIC_ID = b"t" * 16
STORED = StoredRecords(PARTITION, TOPIC_ID, last_offset=7, leader_epoch=3)
Ends = dict[int, int]


@dataclass
class FakeCluster:
    """Each look at the replicas' positions takes the next of `looks`; the last one stays."""

    looks: list[tuple[int, Ends] | Exception]
    epoch_end: int = 8
    topic_id: bytes = TOPIC_ID
    forgotten: list[str] = field(default_factory=list)
    asked: int = 0

    @property
    def view(self) -> MetadataSnapshot:
        return MetadataSnapshot(topics={"t": TopicView("t", self.topic_id, False, 0, {})})

    async def leader_of(self, partition: TopicPartition) -> PartitionView:
        return PartitionView(0, 1, 3, (1, 2), (1, 2), (), 0)

    async def connection_to(self, node_id: int) -> "FakeCluster":
        return self

    def forget(self, topic: str) -> None:
        self.forgotten.append(topic)

    async def request(self, message: Any, response_class: type[Any]) -> Any:
        if not isinstance(message, DescribeQuorumRequest):
            end = EpochEndOffset(0, 0, 3, self.epoch_end)
            return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", [end])])
        self.asked += 1
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        epoch, ends = look
        replicas = [ReplicaState(replica, log_end_offset=end) for replica, end in ends.items()]
        described = ResponsePartitionData(0, 0, None, 1, epoch, 0, replicas)
        return DescribeQuorumResponse(topics=[ResponseTopicData("t", [described])])


def wait(cluster: FakeCluster, reports: FollowerReports | None = None, timeout_s: float = 5) -> bool:
    waiting = ReplicaWait(cluster, reports or FollowerReports())  # type: ignore[arg-type]
    return asyncio.run(asyncio.wait_for(waiting.until_all_have(STORED), timeout_s))


def test_it_ends_when_every_replica_has_the_records() -> None:
    cluster = FakeCluster([(3, {1: 8, 2: -1}), (3, {1: 9, 2: 7}), (3, {1: 9, 2: 8})])
    assert wait(cluster)
    assert len(cluster.looks) == 1


def test_it_waits_for_ever_for_a_replica_that_is_away() -> None:
    with pytest.raises(TimeoutError):
        wait(FakeCluster([(3, {1: 8, 2: 7})]), timeout_s=0.05)


@pytest.mark.parametrize(("reported", "looks"), [(6, 3), (7, 1), (9, 1)])
def test_a_follower_may_speak_for_itself(reported: int, looks: int) -> None:
    reports = FollowerReports()
    reports.note(TOPIC_ID, 0, 2, reported)
    reports.note(TOPIC_ID, 0, 2, 3)  # what it said before still holds
    cluster = FakeCluster([(3, {1: 8, 2: 5}), (3, {1: 8, 2: 5}), (3, {1: 8, 2: 8})])
    assert wait(cluster, reports)
    assert cluster.asked == looks


def test_reports_of_deleted_topics_are_forgotten() -> None:
    reports = FollowerReports()
    reports.note(TOPIC_ID, 0, 2, 9)
    reports.keep_only({b"other".ljust(16)})
    assert reports.last_offset(TOPIC_ID, 0, 2) == -1


def test_trouble_that_may_pass_is_waited_out() -> None:
    cluster = FakeCluster([ConnectionLostError("gone"), (3, {1: 8, 2: 8})])
    assert wait(cluster)
    assert cluster.forgotten == ["t"]


@pytest.mark.parametrize(("epoch_end", "is_kept"), [(8, True), (20, True), (7, False), (-1, False)])
def test_a_new_leader_may_have_lost_the_records(epoch_end: int, is_kept: bool) -> None:
    assert wait(FakeCluster([(4, {1: 8, 2: 8})], epoch_end)) is is_kept


def test_a_topic_that_was_made_again_is_another_one() -> None:
    with pytest.raises(UnknownTopicError):
        wait(FakeCluster([(3, {1: 8, 2: 8})], topic_id=b"u" * 16))
