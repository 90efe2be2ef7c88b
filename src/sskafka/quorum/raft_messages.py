"""Convert the messages of the Raft core to Kafka's RPCs and back.

This module adds and checks what the core does not know: the cluster id, the topic and partition of the metadata log,
the receiver of a vote request, and the metadata directory of a voter, if the log names it (KIP-853). A response with a
top-level error has no information about epochs or leaders.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid, uuid_text
from sskafka.raft import messages as raft
from sskafka.raft.log_view import OffsetAndEpoch, RaftBatch
from sskafka.records.batch import HEADER_BYTES, check_structure, read_header
from sskafka.wire.messages import begin_quorum_epoch, end_quorum_epoch, fetch, fetch_snapshot, vote
from sskafka.wire.schema import Message

PARTITION = 0
NOTHING = -1

WireRequest: TypeAlias = (
    vote.VoteRequest
    | begin_quorum_epoch.BeginQuorumEpochRequest
    | end_quorum_epoch.EndQuorumEpochRequest
    | fetch.FetchRequest
    | fetch_snapshot.FetchSnapshotRequest
)


def batches_in(records: Buffer) -> tuple[RaftBatch, ...]:
    """Return the complete batches in `records`: the last one may be truncated to fit into a response."""
    view = memoryview(records)
    batches: list[RaftBatch] = []
    position = 0
    while len(view) - position >= HEADER_BYTES:
        header = read_header(view, position)
        end = position + header.size_bytes
        if end > len(view):
            break
        check_structure(header, header.size_bytes)
        batches.append(
            RaftBatch(header.base_offset, header.next_offset, header.leader_epoch, bytes(view[position:end]))
        )
        position = end
    return tuple(batches)


# --- requests of this node ------------------------------------------------------------------------


def to_wire(request: raft.PeerRequest, cluster_id: str, to: int, directory_id: Uuid = ZERO_UUID) -> WireRequest:
    """`directory_id` is that of the metadata log of this node, by which the leader describes its observers."""
    match request:
        case raft.VoteRequest():
            return _vote_request(request, cluster_id, to, directory_id)
        case raft.BeginQuorumEpochRequest(leader_id, leader_epoch):
            begin = begin_quorum_epoch.RequestPartitionData(leader_id=leader_id, leader_epoch=leader_epoch)
            topic = begin_quorum_epoch.RequestTopicData(METADATA_TOPIC, [begin])
            return begin_quorum_epoch.BeginQuorumEpochRequest(cluster_id, to, [topic])
        case raft.EndQuorumEpochRequest():
            return _end_request(request, cluster_id)
        case raft.FetchRequest():
            return _fetch_request(request, cluster_id, directory_id)
        case raft.FetchSnapshotRequest():
            return _snapshot_request(request, cluster_id, directory_id)


def _vote_request(request: raft.VoteRequest, cluster_id: str, to: int, directory_id: Uuid) -> vote.VoteRequest:
    partition = vote.RequestPartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate_id,
        replica_directory_id=directory_id,
        last_offset_epoch=request.log_end.epoch,
        last_offset=request.log_end.offset,
        pre_vote=request.pre_vote,
    )
    return vote.VoteRequest(cluster_id, to, [vote.RequestTopicData(METADATA_TOPIC, [partition])])


def _end_request(request: raft.EndQuorumEpochRequest, cluster_id: str) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.RequestPartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.leader_epoch,
        preferred_successors=list(request.preferred_successors),
        preferred_candidates=[end_quorum_epoch.ReplicaInfo(node) for node in request.preferred_successors],
    )
    topic = end_quorum_epoch.RequestTopicData(METADATA_TOPIC, [partition])
    return end_quorum_epoch.EndQuorumEpochRequest(cluster_id, [topic])


def _fetch_request(request: raft.FetchRequest, cluster_id: str, directory_id: Uuid) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=request.leader_epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_fetched_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=directory_id,
        high_watermark=request.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(request.replica_id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[fetch.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def _snapshot_request(
    request: raft.FetchSnapshotRequest, cluster_id: str, directory_id: Uuid
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        current_leader_epoch=request.leader_epoch,
        snapshot_id=fetch_snapshot.SnapshotId(request.snapshot_id.offset, request.snapshot_id.epoch),
        position=request.position,
        replica_directory_id=directory_id,
    )
    topic = fetch_snapshot.RequestTopicSnapshot(METADATA_TOPIC, [partition])
    return fetch_snapshot.FetchSnapshotRequest(cluster_id, request.replica_id, request.max_bytes, [topic])


# --- responses to this node -----------------------------------------------------------------------


def response_from_wire(response: Message) -> raft.PeerResponse:
    """Convert a response. Raises KafkaError if it has a top-level error or no partition."""
    match response:
        case vote.VoteResponse(error_code=error_code, topics=topics):
            voted = _only_partition(topics, error_code)
            error = ErrorCode(voted.error_code)
            return raft.VoteResponse(error, voted.leader_id, voted.leader_epoch, voted.vote_granted)
        case begin_quorum_epoch.BeginQuorumEpochResponse(error_code=error_code, topics=topics):
            begun = _only_partition(topics, error_code)
            return raft.BeginQuorumEpochResponse(ErrorCode(begun.error_code), begun.leader_id, begun.leader_epoch)
        case end_quorum_epoch.EndQuorumEpochResponse(error_code=error_code, topics=topics):
            ended = _only_partition(topics, error_code)
            return raft.EndQuorumEpochResponse(ErrorCode(ended.error_code), ended.leader_id, ended.leader_epoch)
        case fetch.FetchResponse(error_code=error_code, responses=topics):
            return _fetched(_only_partition(topics, error_code))
        case fetch_snapshot.FetchSnapshotResponse(error_code=error_code, topics=topics):
            return _snapshot_fetched(_only_partition(topics, error_code))
        case _:
            raise TypeError(f"{type(response).__name__} is not a response of the quorum")


def _only_partition(topics: list[Any], error_code: int = ErrorCode.NONE) -> Any:
    """Return the only partition of a message."""
    if error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(error_code))
    partitions = [partition for topic in topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the quorum has one partition, not {len(partitions)}")
    return partitions[0]


def _fetched(partition: fetch.PartitionData) -> raft.FetchResponse:
    diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
    return raft.FetchResponse(
        error=ErrorCode(partition.error_code),
        leader_id=partition.current_leader.leader_id,
        leader_epoch=partition.current_leader.leader_epoch,
        high_watermark=partition.high_watermark,
        diverging=OffsetAndEpoch(diverging.end_offset, diverging.epoch) if diverging.epoch != NOTHING else None,
        snapshot_id=OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch) if snapshot_id.epoch != NOTHING else None,
        batches=batches_in(partition.records or b""),
    )


def _snapshot_fetched(partition: fetch_snapshot.ResponsePartitionSnapshot) -> raft.FetchSnapshotResponse:
    return raft.FetchSnapshotResponse(
        error=ErrorCode(partition.error_code),
        leader_id=partition.current_leader.leader_id,
        leader_epoch=partition.current_leader.leader_epoch,
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        size=partition.size,
        position=partition.position,
        data=bytes(partition.unaligned_records),
    )


# --- requests to this node ------------------------------------------------------------------------


def request_from_wire(
    request: WireRequest, cluster_id: str, node_id: int, directories: Mapping[int, Uuid] | None = None
) -> raft.PeerRequest:
    """Convert a request. Raises KafkaError if it is for another cluster, node or partition, or if its sender claims to
    be a voter that is known to have another metadata directory (`directories`)."""
    _check_cluster(request.cluster_id, cluster_id)
    directories = directories or {}
    match request:
        case vote.VoteRequest(voter_id=voter_id, topics=topics):
            _check_voter(voter_id, node_id)
            requested = _only_partition(topics)
            _check_directory(requested.voter_directory_id, directories.get(node_id), is_optional=True)
            _check_directory(requested.replica_directory_id, directories.get(requested.replica_id))
            return _vote_from_wire(requested)
        case begin_quorum_epoch.BeginQuorumEpochRequest(voter_id=voter_id, topics=topics):
            _check_voter(voter_id, node_id)
            begun = _only_partition(topics)
            _check_directory(begun.voter_directory_id, directories.get(node_id), is_optional=True)
            return raft.BeginQuorumEpochRequest(begun.leader_id, begun.leader_epoch)
        case end_quorum_epoch.EndQuorumEpochRequest(topics=topics):
            ended = _only_partition(topics)
            candidates = [candidate.candidate_id for candidate in ended.preferred_candidates]
            successors = tuple(candidates or ended.preferred_successors)
            return raft.EndQuorumEpochRequest(ended.leader_id, ended.leader_epoch, successors)
        case fetch.FetchRequest():
            fetched = _only_partition(request.topics)
            _check_directory(fetched.replica_directory_id, directories.get(fetching_replica_id(request)))
            return _fetch_from_wire(request, fetched)
        case fetch_snapshot.FetchSnapshotRequest():
            part = _only_partition(request.topics)
            _check_directory(part.replica_directory_id, directories.get(request.replica_id))
            return _snapshot_from_wire(request, part)


def _check_cluster(requested: str | None, cluster_id: str) -> None:
    if requested is not None and requested != cluster_id:
        text = f"this node belongs to cluster {cluster_id}, not to {requested}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)


def _check_voter(voter_id: int, node_id: int) -> None:
    if voter_id not in {NOTHING, node_id}:
        raise KafkaError(ErrorCode.INVALID_VOTER_KEY, f"this is node {node_id}, not {voter_id}")


def _check_directory(claimed: Uuid, known: Uuid | None, *, is_optional: bool = False) -> None:
    if known is not None and claimed != known and not (is_optional and claimed == ZERO_UUID):
        text = f"the voter's metadata directory is {uuid_text(known)}, not {uuid_text(claimed)}"
        raise KafkaError(ErrorCode.INCONSISTENT_VOTER_SET, text)


def _vote_from_wire(partition: vote.RequestPartitionData) -> raft.VoteRequest:
    log_end = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
    return raft.VoteRequest(partition.replica_id, partition.replica_epoch, log_end, partition.pre_vote)


def fetching_replica_id(request: fetch.FetchRequest) -> int:
    """Return the id of the node that fetches; newer versions have a separate field for it."""
    return request.replica_id if request.replica_id != NOTHING else request.replica_state.replica_id


def _fetch_from_wire(request: fetch.FetchRequest, partition: fetch.FetchPartition) -> raft.FetchRequest:
    replica_id = fetching_replica_id(request)
    if replica_id == NOTHING:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "only nodes of the cluster may fetch the metadata log")
    return raft.FetchRequest(
        replica_id=replica_id,
        leader_epoch=partition.current_leader_epoch,
        fetch_offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        high_watermark=partition.high_watermark,
        max_wait_ms=request.max_wait_ms,
        max_bytes=partition.partition_max_bytes or request.max_bytes,
    )


def _snapshot_from_wire(
    request: fetch_snapshot.FetchSnapshotRequest, partition: fetch_snapshot.RequestPartitionSnapshot
) -> raft.FetchSnapshotRequest:
    return raft.FetchSnapshotRequest(
        replica_id=request.replica_id,
        leader_epoch=partition.current_leader_epoch,
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=partition.position,
        max_bytes=request.max_bytes,
    )


# --- responses of this node -----------------------------------------------------------------------


def response_to_wire(response: raft.Response) -> Message:
    match response:
        case raft.VoteResponse(error, leader_id, leader_epoch, granted):
            voted = vote.ResponsePartitionData(PARTITION, error, leader_id, leader_epoch, granted)
            return vote.VoteResponse(topics=[vote.ResponseTopicData(METADATA_TOPIC, [voted])])
        case raft.BeginQuorumEpochResponse(error, leader_id, leader_epoch):
            begun = begin_quorum_epoch.ResponsePartitionData(PARTITION, error, leader_id, leader_epoch)
            topics = [begin_quorum_epoch.ResponseTopicData(METADATA_TOPIC, [begun])]
            return begin_quorum_epoch.BeginQuorumEpochResponse(topics=topics)
        case raft.EndQuorumEpochResponse(error, leader_id, leader_epoch):
            ended = end_quorum_epoch.ResponsePartitionData(PARTITION, error, leader_id, leader_epoch)
            return end_quorum_epoch.EndQuorumEpochResponse(
                topics=[end_quorum_epoch.ResponseTopicData(METADATA_TOPIC, [ended])]
            )
        case raft.FetchResponse():
            topic = fetch.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [_fetch_answer(response)])
            return fetch.FetchResponse(responses=[topic])
        case raft.FetchSnapshotResponse():
            part = fetch_snapshot.ResponseTopicSnapshot(METADATA_TOPIC, [_snapshot_answer(response)])
            return fetch_snapshot.FetchSnapshotResponse(topics=[part])
        case _:
            raise TypeError(f"{type(response).__name__} is not sent between nodes")


def _fetch_answer(response: raft.FetchResponse) -> fetch.PartitionData:
    answer = fetch.PartitionData(
        partition_index=PARTITION,
        error_code=response.error,
        high_watermark=response.high_watermark,
        last_stable_offset=response.high_watermark,
        current_leader=fetch.LeaderIdAndEpoch(response.leader_id, response.leader_epoch),
        records=b"".join(batch.data for batch in response.batches),
    )
    if response.diverging is not None:
        answer.diverging_epoch = fetch.EpochEndOffset(response.diverging.epoch, response.diverging.offset)
    if response.snapshot_id is not None:
        answer.snapshot_id = fetch.SnapshotId(response.snapshot_id.offset, response.snapshot_id.epoch)
    return answer


def _snapshot_answer(response: raft.FetchSnapshotResponse) -> fetch_snapshot.ResponsePartitionSnapshot:
    snapshot_id = response.snapshot_id or OffsetAndEpoch(0, 0)
    return fetch_snapshot.ResponsePartitionSnapshot(
        index=PARTITION,
        error_code=response.error,
        snapshot_id=fetch_snapshot.SnapshotId(snapshot_id.offset, snapshot_id.epoch),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(response.leader_id, response.leader_epoch),
        size=response.size,
        position=response.position,
        unaligned_records=response.data,
    )
