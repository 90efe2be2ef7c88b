"""What the machine asks of its driver after an event, in the order in which the fields stand.

The driver carries a `Ready` out from top to bottom, completely, before it hands in the next event. Only the fsync that
`flush` asks for may go on in the background; it is reported with `RaftNode.flushed`.

    quorum_state -> snapshot_chunk -> installed_snapshot -> truncate_to -> append -> flush (starts) -> answers, requests
    |  fsync                          |  written, in this order                      |  leave        -> high_watermark
"""

from collections.abc import Hashable
from dataclasses import field
from typing import TypeAlias

from sskafka.model.buffers import Buffer
from sskafka.model.values import structure, value
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import Batch, SnapshotId
from sskafka.raft.messages import PeerRequest, Response

ReplyTo: TypeAlias = Hashable
"""The driver's own handle for a request that waits for its answer."""


@value
class LeaderChange:
    """The first record of an epoch, a control record. What older epochs left behind is committed through it alone."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


@value
class LeaderAppend:
    """Records this leader adds: the driver encodes them with this base offset and epoch."""

    base_offset: int
    epoch: int
    record_count: int
    records: Buffer | LeaderChange

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.record_count


@value
class FollowerAppend:
    """Batches of the leader, written as they are."""

    batches: tuple[Batch, ...]

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset


@value
class FlushPoint:
    """How much of the log an fsync has to cover. `generation` counts truncations: after one, old fsyncs say nothing."""

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
    """The response to the request known as `reply_to`; with `read`, the driver puts those bytes into it first."""

    reply_to: ReplyTo
    response: Response
    read: LogRead | SnapshotRead | None = None


@value
class Send:
    """A request to another node. Whatever comes of it returns as `Answered` or `Unanswered`, once, or never."""

    to: int
    request: PeerRequest


@value
class Leadership:
    leader_id: int
    epoch: int


@structure
class Ready:
    quorum_state: ElectionState | None = None
    """Replace the stored state atomically and fsync it, file and directory, before anything below happens:
    a vote or an epoch that somebody was told must survive a crash."""

    snapshot_chunk: SnapshotChunk | None = None
    """Write into the unfinished snapshot file of that id, at that position; position 0 starts the file anew."""

    installed_snapshot: SnapshotId | None = None
    """The unfinished file is complete, the chunk above included: fsync it, give it its name, fsync the directory, and
    only then drop the whole log and let it start at the snapshot's end. The state machine is loaded from it."""

    truncate_to: int | None = None
    """Cut the log to end here. Never below the high watermark."""

    append: LeaderAppend | FollowerAppend | None = None
    """Write behind the cut. A crash may lose what no flush has covered, from the end backwards only."""

    flush: FlushPoint | None = None
    """Start an fsync of all of the log up to here and report it with `flushed` once it is done. The last of several may
    be reported for all. An observer is counted by nobody and may report at once."""

    answers: list[Answer] = field(default_factory=list)
    """Responses, to be sent once `quorum_state` is on the disk; reads happen after `append`."""

    requests: list[Send] = field(default_factory=list)
    """Requests, to be sent once `quorum_state` is on the disk. A fetch comes only after the flush it vouches for."""

    high_watermark: int | None = None
    """Everything below it is committed: apply it, and let go who waits for it. Given when it grew; it never falls in a
    node's life and is never above what `append` has just made the log's end."""

    leadership: Leadership | None = None
    """Given when the leader or the epoch changed; leader -1 is nobody. Where it names this node, the node may propose;
    its own state is current once the `LeaderChange` record is below the high watermark."""
