"""Messages between nodes: Kafka's quorum RPCs, for the single partition of the metadata log.

Fields have the meaning of Kafka's own, so that a driver translates each message one to one. The driver fills in and
checks topic, partition, cluster id, directory ids and endpoints.
Every response, also an error, names the leader and epoch that its sender knows.
"""

from typing import TYPE_CHECKING, TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.model.values import value
from sskafka.raft.log_view import OffsetAndEpoch, RaftBatch, SnapshotId

if TYPE_CHECKING:
    from sskafka.raft.elections import Elections


@value
class VoteRequest:
    """`epoch` is the epoch of the election; in a pre-vote, the candidate's current epoch, which it has not left yet."""

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
    """Requests records from `fetch_offset` on; everything before it is on the sender's disk."""

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
    """Contains records, or where the logs diverge (`diverging`), or the snapshot that replaced the start of the log."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    high_watermark: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    batches: tuple[RaftBatch, ...] = ()


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


class LocalRequest:
    """A request of this node's own software that reads or changes the election state.

    Like a vote for another node it is answered when the state that it leaves is on disk.
    """

    __slots__ = ()

    def answer(self, elections: "Elections", now_ms: int) -> "LocalResponse":
        raise NotImplementedError


class LocalResponse:
    """Base class of the answers to local requests."""

    __slots__ = ()


PeerRequest: TypeAlias = (
    VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest
)
PeerResponse: TypeAlias = (
    VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse | FetchSnapshotResponse
)
Request: TypeAlias = PeerRequest | LocalRequest
Response: TypeAlias = PeerResponse | LocalResponse
