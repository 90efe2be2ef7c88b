"""The lines of a trace: descriptions of messages and of the fields of a `Ready`."""

from collections.abc import Iterator

from sskafka.lab.votes import LabLeaderRequest, LabLeaderResponse, LabVoteRequest, LabVoteResponse
from sskafka.model.errors import ErrorCode
from sskafka.raft.log_view import OffsetAndEpoch, RaftBatch
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from sskafka.raft.ready import FollowerAppend, LeaderAppend, LeaderChange, Ready


def place(at: OffsetAndEpoch) -> str:
    return f"{at.offset}@{at.epoch}"


def describe_request(request: Request) -> str:
    match request:
        case VoteRequest(_, epoch, log_end, pre_vote):
            return f"{'pre-vote' if pre_vote else 'vote'} in epoch {epoch}, log ends at {place(log_end)}"
        case BeginQuorumEpochRequest(leader_id, leader_epoch):
            return f"begin epoch {leader_epoch} of leader {leader_id}"
        case EndQuorumEpochRequest(leader_id, leader_epoch, successors):
            return f"end epoch {leader_epoch} of leader {leader_id}, successors {list(successors)}"
        case FetchRequest():
            return (
                f"fetch in epoch {request.leader_epoch} from {place(request.log_end)}"
                f", high watermark {request.high_watermark}"
            )
        case FetchSnapshotRequest():
            return f"snapshot {place(request.snapshot_id)} in epoch {request.leader_epoch} at {request.position}"
        case LabVoteRequest(candidate_id, epoch, log_is_up_to_date):
            return f"vote for {candidate_id} in epoch {epoch}{'' if log_is_up_to_date else ', log behind'}"
        case LabLeaderRequest(leader_id, leader_epoch):
            return f"leader {leader_id} in epoch {leader_epoch}"


def describe_response(response: Response) -> str:
    match response:
        case LabVoteResponse(granted, leader_id, epoch):
            return "granted" if granted else f"refused, leader {leader_id} in epoch {epoch}"
        case LabLeaderResponse(accepted, leader_id, epoch):
            return "accepted" if accepted else f"refused, leader {leader_id} in epoch {epoch}"
    knows = f"(leader {response.leader_id} in epoch {response.leader_epoch})"
    if response.error is not ErrorCode.NONE:
        return f"{response.error.name} {knows}"
    match response:
        case VoteResponse(vote_granted=granted):
            return f"{'granted' if granted else 'refused'} {knows}"
        case FetchResponse(diverging=OffsetAndEpoch() as diverging):
            return f"diverging, {place(diverging)} {knows}"
        case FetchResponse(snapshot_id=OffsetAndEpoch() as snapshot_id):
            return f"take snapshot {place(snapshot_id)} {knows}"
        case FetchResponse(high_watermark=high_watermark, batches=batches):
            return f"{describe_batches(batches)}, high watermark {high_watermark} {knows}"
        case FetchSnapshotResponse(size=size, position=position, data=data):
            return f"bytes {position} to {position + len(data)} of {size} {knows}"
    return f"yes {knows}"


def describe_batches(batches: tuple[RaftBatch, ...]) -> str:
    if not batches:
        return "no records"
    return ", ".join(f"{batch.base_offset}@{batch.epoch} {bytes(batch.data).decode()}" for batch in batches)


def describe_append(append: LeaderAppend | FollowerAppend) -> str:
    if isinstance(append, FollowerAppend):
        return describe_batches(append.batches)
    match append.records:
        case LeaderChange(leader_id, _, granting_voters):
            text = f"leader change {leader_id}, voted for by {list(granting_voters)}"
        case data:
            text = bytes(data).decode()
    return f"{append.base_offset}@{append.epoch} {text}"


def describe_storage(ready: Ready) -> Iterator[str]:
    """Describe the fields of a `Ready` before its messages."""
    if ready.quorum_state is not None:
        state = ready.quorum_state
        yield f"stores epoch {state.epoch}, leader {state.leader_id}, vote {state.voted_id}"
    if ready.snapshot_chunk is not None:
        chunk = ready.snapshot_chunk
        yield f"writes {len(chunk.data)} bytes of snapshot {place(chunk.snapshot_id)} at {chunk.position}"
    if ready.installed_snapshot is not None:
        yield f"installs snapshot {place(ready.installed_snapshot)}"
    if ready.truncate_to is not None:
        yield f"truncates to {ready.truncate_to}"
    if ready.append is not None:
        yield f"appends {describe_append(ready.append)}"
    if ready.flush is not None:
        yield f"flushes to {ready.flush.end_offset}"


def describe_outcome(ready: Ready) -> Iterator[str]:
    """Describe the fields of a `Ready` after its messages."""
    if ready.high_watermark is not None:
        yield f"commits up to {ready.high_watermark}"
    if ready.leadership is not None:
        yield f"knows leader {ready.leadership.leader_id} in epoch {ready.leadership.epoch}"
