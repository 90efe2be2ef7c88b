"""DescribeQuorum: who leads, who votes, who only follows, and how far each has come. The leader alone can say."""

from collections.abc import Mapping

from sskafka.client.connection import Address
from sskafka.model.clock import Clock
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import METADATA_TOPIC
from sskafka.raft.node import RaftNode
from sskafka.raft.progress import NEVER, ReplicaProgress
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

PARTITION = 0


class QuorumDescriber:
    def __init__(self, node: RaftNode, clock: Clock, addresses: Mapping[int, Address], listener_name: str) -> None:
        self._node = node
        self._clock = clock
        self._addresses = addresses
        self._listener_name = listener_name

    def describe(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        topics = [
            ResponseTopicData(
                topic.topic_name, [self._partition(topic.topic_name, item.partition_index) for item in topic.partitions]
            )
            for topic in request.topics
        ]
        nodes = [
            Node(voter_id, [Listener(self._listener_name, *self._addresses[voter_id])])
            for voter_id in self._node.state.voters.ids
            if voter_id in self._addresses
        ]
        return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)

    def _partition(self, topic_name: str, index: int) -> ResponsePartitionData:
        progress = self._node.progress
        if topic_name != METADATA_TOPIC or index != PARTITION:
            return ResponsePartitionData(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        assert progress is not None, "only the leader is asked"
        node = self._node
        voters = {node.state.node_id: self._own_state()}
        voters |= {voter_id: self._state(voter_id, seen) for voter_id, seen in progress.replicas.items()}
        return ResponsePartitionData(
            partition_index=index,
            error_message=None,
            leader_id=node.state.node_id,
            leader_epoch=node.epoch,
            high_watermark=node.high_watermark,
            current_voters=[voters[voter_id] for voter_id in sorted(voters)],
            observers=[self._state(node_id, seen) for node_id, seen in sorted(progress.observers.items())],
        )

    def _own_state(self) -> ReplicaState:
        now_ms = self._clock.now_ms()
        end_offset = self._node.state.log_view.end.offset
        return ReplicaState(
            self._node.state.node_id,
            log_end_offset=end_offset,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )

    def _state(self, replica_id: int, seen: ReplicaProgress) -> ReplicaState:
        return ReplicaState(
            replica_id,
            log_end_offset=seen.log_end_offset,
            last_fetch_timestamp=self._wall_ms(seen.last_fetch_ms),
            last_caught_up_timestamp=self._wall_ms(seen.last_caught_up_ms),
        )

    def _wall_ms(self, monotonic_ms: int) -> int:
        """The core counts on a clock that starts anywhere; people read another one."""
        if monotonic_ms == NEVER:
            return NEVER
        return self._clock.now_ms() - int(self._clock.monotonic_ms()) + monotonic_ms
