"""DescribeQuorum: the leader, voters and observers of the quorum, and their progress. Only the leader can answer it."""

from collections.abc import Mapping

from sskafka.client.connection import Address
from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import METADATA_TOPIC, ZERO_UUID, Uuid
from sskafka.quorum.raft_messages import fetching_replica_id
from sskafka.raft.node import RaftNode
from sskafka.raft.progress import NEVER, OBSERVERS_MAX, ReplicaProgress
from sskafka.runtime.clock import Clock
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from sskafka.wire.messages.fetch import FetchRequest

PARTITION = 0


class QuorumDescriber:
    def __init__(self, node: RaftNode, clock: Clock, addresses: Mapping[int, Address], listener_name: str) -> None:
        self._node = node
        self._clock = clock
        self._addresses = addresses
        self._listener_name = listener_name
        self._directory_ids: dict[int, Uuid] = {}

    def note_directory(self, request: FetchRequest) -> None:
        """Remember the metadata directory of a node that fetches the metadata log."""
        if len(self._directory_ids) >= OBSERVERS_MAX:
            self._directory_ids.clear()  # nodes that still fetch are added again
        for topic in request.topics:
            for partition in topic.partitions:
                self._directory_ids[fetching_replica_id(request)] = partition.replica_directory_id

    def describe(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """Answer for the metadata log. As in Kafka, a request for anything else, or more, is invalid."""
        requested = [(topic.topic_name, item.partition_index) for topic in request.topics for item in topic.partitions]
        if requested != [(METADATA_TOPIC, PARTITION)]:
            return DescribeQuorumResponse(topics=[_unknown(topic) for topic in request.topics])
        topics = [ResponseTopicData(METADATA_TOPIC, [self._metadata_partition()])]
        nodes = [
            Node(voter_id, [Listener(self._listener_name, *self._addresses[voter_id])])
            for voter_id in self._node.state.voters.ids
            if voter_id in self._addresses
        ]
        return DescribeQuorumResponse(topics=topics, nodes=nodes)

    def _metadata_partition(self) -> ResponsePartitionData:
        progress = self._node.progress
        assert progress is not None, "only the leader answers"
        node = self._node
        voters = {node.state.node_id: self._own_state()}
        voters |= {voter_id: self._state(voter_id, seen) for voter_id, seen in progress.replicas.items()}
        return ResponsePartitionData(
            partition_index=PARTITION,
            leader_id=node.state.node_id,
            leader_epoch=node.epoch,
            high_watermark=node.high_watermark,
            current_voters=[voters[voter_id] for voter_id in sorted(voters)],
            observers=[self._observer(node_id, seen) for node_id, seen in sorted(progress.observers.items())],
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

    def _observer(self, replica_id: int, seen: ReplicaProgress) -> ReplicaState:
        """Return the directory id. Voters of a static quorum have none; observers report theirs."""
        state = self._state(replica_id, seen)
        state.replica_directory_id = self._directory_ids.get(replica_id, ZERO_UUID)
        return state

    def _state(self, replica_id: int, seen: ReplicaProgress) -> ReplicaState:
        return ReplicaState(
            replica_id,
            log_end_offset=seen.log_end_offset,
            last_fetch_timestamp=self._wall_ms(seen.last_fetch_ms),
            last_caught_up_timestamp=self._wall_ms(seen.last_caught_up_ms),
        )

    def _wall_ms(self, monotonic_ms: int) -> int:
        """Convert a time of the Raft core, which uses a monotonic clock, to wall-clock time."""
        if monotonic_ms == NEVER:
            return NEVER
        return self._clock.now_ms() - int(self._clock.monotonic_ms()) + monotonic_ms


def _unknown(topic: RequestTopicData) -> ResponseTopicData:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = [ResponsePartitionData(item.partition_index, code, error_text(code)) for item in topic.partitions]
    return ResponseTopicData(topic.topic_name, partitions)
