"""What the state machine asks of its driver after an event. The order of the fields is the order of execution.

The driver executes a `Ready` from top to bottom, completely, before it delivers the next event. Only the fsync that
`flush` requests may continue in the background; its end is reported with `RaftNode.flushed`.

    quorum_state -> snapshot_chunk -> installed_snapshot -> truncate_to -> append -> flush (starts) -> answers, requests
    |  fsync                          |  written, in this order                      |  leave        -> high_watermark
"""

from collections.abc import Hashable
from dataclasses import field
from typing import TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.values import structure, value
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import RaftBatch, SnapshotId
from sskafka.raft.messages import PeerRequest, Response

ReplyTo: TypeAlias = Hashable
"""The driver's handle for a request that waits for its response."""


@value
class LeaderChange:
    """The first record of an epoch, a control record. Committing it commits the records of earlier epochs too."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


@value
class LeaderAppend:
    """Records of this leader; the driver encodes them with this base offset and epoch."""

    base_offset: int
    epoch: int
    record_count: int
    records: Buffer | LeaderChange

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.record_count


@value
class FollowerAppend:
    """Batches of the leader, to be written unchanged."""

    batches: tuple[RaftBatch, ...]

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset


@value
class FlushPoint:
    """The end of an fsync. `generation` counts truncations: after one, earlier fsyncs no longer count."""

    end_offset: int
    generation: int


@value
class SnapshotChunk:
    snapshot_id: SnapshotId
    position: int
    data: Buffer


@value
class LogRead:
    start_offset: int
    max_bytes: int


@value
class SnapshotRead:
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@value
class Answer:
    """The response to the request `reply_to`. If `read` is set, the driver first adds the bytes read to it."""

    reply_to: ReplyTo
    response: Response
    read: LogRead | SnapshotRead | None = None


@value
class Send:
    """A request to another node. Its outcome is reported as `ResponseReceived` or `RequestFailed`, once or never."""

    to: int
    request: PeerRequest


@value
class LeaderAndEpoch:
    leader_id: int
    epoch: int


@structure
class Ready:
    quorum_state: ElectionState | None = None
    """Replace the stored state atomically and fsync it, file and directory, before anything below happens:
    a vote or an epoch that another node has seen must survive a crash."""

    snapshot_chunk: SnapshotChunk | None = None
    """Write to the unfinished snapshot file of that id, at that position; position 0 starts a new file."""

    installed_snapshot: SnapshotId | None = None
    """The unfinished file is complete, including the chunk above: fsync it, rename it, fsync the directory, and only
    then delete the whole log and restart it at the end of the snapshot. Load the state machine from the snapshot."""

    truncate_to: int | None = None
    """Truncate the log to this end offset, which is never below the high watermark."""

    regained: bool = False
    """This node has lost nothing any more: from now on `synced_offset` follows the log, even if it is lower."""

    append: LeaderAppend | FollowerAppend | None = None
    """Append to the truncated log. A crash may lose records that no flush has covered, but only from the end."""

    flush: FlushPoint | None = None
    """Start an fsync of the log up to this offset and report it with `flushed` when it is done. The last of several
    fsyncs may be reported for all. An observer does not count in the majority and may report at once."""

    answers: list[Answer] = field(default_factory=list)
    """Responses, to be sent after `quorum_state` is on disk; their reads happen after `append`."""

    requests: list[Send] = field(default_factory=list)
    """Requests, to be sent after `quorum_state` is on disk. A fetch is requested only after the flush of its offset."""

    high_watermark: int | None = None
    """Everything below is committed: apply it, and complete the proposals that wait for it. Set if it has advanced. It
    never decreases during the life of a node, and never exceeds the log end offset after `append`."""

    leadership: LeaderAndEpoch | None = None
    """Set if leader or epoch have changed; -1 means no leader. If it names this node, the node may propose; its state
    machine is current once the `LeaderChange` record is below the high watermark."""
