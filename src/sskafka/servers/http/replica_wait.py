"""The lab's `acks: all`: wait until every replica of a partition has a record, in sync or not, up or down.

The partition's leader knows how far each follower has fetched. Positions that followers report through the lab's
consume route count too, but only here.

    leader changed?  -> is the record still in the log?   no:  it was lost with the old leader and is stored again
                                                          yes: the wait continues at the new leader
"""

import asyncio
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnknownTopicError, is_retriable, raise_for
from sskafka.client.replica_positions import ReplicaPositions, replica_positions
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

PAUSE_MIN_S = 0.001
PAUSE_MAX_S = 0.2


class StoredRecords(NamedTuple):
    """Records that a leader has; the last one is at `last_offset`."""

    partition: TopicPartition
    topic_id: Uuid
    last_offset: int
    leader_epoch: int


class FollowerReports:
    """The last offsets that followers reported when they read here."""

    def __init__(self) -> None:
        self._last_offsets: dict[tuple[Uuid, int], dict[int, int]] = {}

    def note(self, topic_id: Uuid, partition: int, follower: int, last_offset: int) -> None:
        reports = self._last_offsets.setdefault((topic_id, partition), {})
        reports[follower] = max(last_offset, reports.get(follower, -1))

    def last_offset(self, topic_id: Uuid, partition: int, replica: int) -> int:
        return self._last_offsets.get((topic_id, partition), {}).get(replica, -1)

    def keep_only(self, topic_ids: set[Uuid]) -> None:
        """Forget deleted topics."""
        self._last_offsets = {key: offsets for key, offsets in self._last_offsets.items() if key[0] in topic_ids}


class ReplicaWait:
    def __init__(self, cluster: Cluster, reports: FollowerReports) -> None:
        self.cluster = cluster
        self._reports = reports

    async def until_all_have(self, stored: StoredRecords) -> bool:
        """Return True when all replicas have the records, False if the records were lost with a leader.

        Raise UnknownTopicError if the topic was deleted in the meantime."""
        checked_epoch = stored.leader_epoch
        pause_s = PAUSE_MIN_S
        while True:
            try:
                positions = await self._positions(stored)
                if positions.leader_epoch != checked_epoch and await self._are_lost(stored):
                    return False
                checked_epoch = positions.leader_epoch
                if self._have_all(positions, stored):
                    return True
            except Exception as error:
                if not is_retriable(error):
                    raise
                self.cluster.forget(stored.partition.topic)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    async def _positions(self, stored: StoredRecords) -> ReplicaPositions:
        positions = await replica_positions(self.cluster, stored.partition)
        if positions.topic_id != stored.topic_id:
            raise UnknownTopicError(f"topic {stored.partition.topic} was deleted")
        return positions

    def _have_all(self, positions: ReplicaPositions, stored: StoredRecords) -> bool:
        return all(
            end_offset > stored.last_offset
            or self._reports.last_offset(stored.topic_id, stored.partition.partition, replica) >= stored.last_offset
            for replica, end_offset in positions.log_end_offsets.items()
        )

    async def _are_lost(self, stored: StoredRecords) -> bool:
        """Return whether the leader's log diverged below the records from the log that they were written to."""
        topic, index = stored.partition
        leader = (await self.cluster.leader_of(stored.partition)).leader
        connection = await self.cluster.connection_to(leader)
        asked = OffsetForLeaderPartition(index, leader_epoch=stored.leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [asked])])
        response = await connection.request(request, OffsetForLeaderEpochResponse)
        answer = response.topics[0].partitions[0]
        raise_for(answer.error_code, f"epochs of {stored.partition}")
        return answer.end_offset <= stored.last_offset
