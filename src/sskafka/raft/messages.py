"""What nodes say to each other: Kafka's quorum RPCs, for the one partition of the metadata log.

Fields keep the meaning of Kafka's own, so that a driver translates each message one to one. Topic, partition, cluster
id, directory ids and endpoints are the driver's: it fills them in and checks them.
Every response names the leader and epoch that its sender knows, whatever it says otherwise.
"""

from typing import TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.model.values import value
from sskafka.raft.log_view import Batch, OffsetAndEpoch, SnapshotId
from sskafka.raft.voters import NO_NODE


@value
class VoteRequest:
    """`epoch` is the one the candidate stands for; in a pre-vote the one it is in, because it has not left it yet."""

    candidate_id: int
    epoch: int
    log_end: OffsetAndEpoch
    pre_vote: bool


@value
class VoteResponse:
    error: ErrorCode
    leader_id: int
    leader_epoch: int
    vote_granted: bool = False


@value
class BeginQuorumEpochRequest:
    leader_id: int
    leader_epoch: int


@value
class BeginQuorumEpochResponse:
    error: ErrorCode
    leader_id: int
    leader_epoch: int


@value
class EndQuorumEpochRequest:
    leader_id: int
    leader_epoch: int
    preferred_successors: tuple[int, ...]


@value
class EndQuorumEpochResponse:
    error: ErrorCode
    leader_id: int
    leader_epoch: int


@value
class FetchRequest:
    """Asks for records from `fetch_offset` on, which says that everything before it is on the sender's disk."""

    replica_id: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int

    @property
    def log_end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.fetch_offset, self.last_fetched_epoch)


@value
class FetchResponse:
    """Records, or the place where the logs part (`diverging`), or the snapshot that replaced the log's beginning."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    high_watermark: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    batches: tuple[Batch, ...] = ()


@value
class FetchSnapshotRequest:
    replica_id: int
    leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@value
class FetchSnapshotResponse:
    error: ErrorCode
    leader_id: int
    leader_epoch: int
    snapshot_id: SnapshotId | None = None
    size: int = 0
    position: int = 0
    data: Buffer = b""


@value
class DoorVoteRequest:
    """A vote asked for at the lab's HTTP door: real and kept, but without pre-vote and without loyalty to a leader.

    That door compares logs in its own numbering, so it says itself whether the candidate's log is behind.
    """

    candidate_id: int
    epoch: int
    log_is_up_to_date: bool


@value
class DoorVoteResponse:
    granted: bool
    leader_id: int = NO_NODE
    leader_epoch: int = 0


@value
class DoorLeaderRequest:
    """Somebody at the lab's HTTP door says who leads. Perhaps nobody elected that node: the next election heals it."""

    leader_id: int
    leader_epoch: int


@value
class DoorLeaderResponse:
    accepted: bool
    leader_id: int = NO_NODE
    leader_epoch: int = 0


PeerRequest: TypeAlias = (
    VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest
)
PeerResponse: TypeAlias = (
    VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse | FetchSnapshotResponse
)
Request: TypeAlias = PeerRequest | DoorVoteRequest | DoorLeaderRequest
Response: TypeAlias = PeerResponse | DoorVoteResponse | DoorLeaderResponse
