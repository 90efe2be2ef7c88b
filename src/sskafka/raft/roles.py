"""The roles of a node, and all transitions between them.

    Unattached   knows an epoch, has no leader; after voting in this epoch it is also called Voted
    Follower     fetches from the leader of its epoch
    Prospective  lost its leader and requests pre-votes, without leaving its epoch
    Candidate    started an election in a new epoch and voted for itself
    Leader       has the votes of a majority in its epoch
    Resigned     was the leader of its epoch and tells the others that it has resigned

    from         to           epoch   when
    ------------------------------------------------------------------------------------------------------------------
    Unattached   Unattached   >=      a later epoch is reported; a vote is granted
    Unattached   Follower     >=      a leader is reported
    Unattached   Prospective  =       the election timeout expires
    Follower     Follower     >       the leader of a later epoch is reported
    Follower     Unattached   >=      a later epoch is reported; the leader has resigned; an observer lost its leader
    Follower     Prospective  =       the fetch timeout expires, early if the leader is reported down
    Prospective  Candidate    +1      a majority granted the pre-vote
    Prospective  Follower     >=      a leader is reported; no majority, and the known leader is tried again
    Prospective  Unattached   >=      a later epoch is reported; a vote is granted; no majority, and no known leader
    Candidate    Leader       =       a majority voted for it
    Candidate    Prospective  =       the election timeout expires; too many reject or are down, and the backoff is over
    Candidate    Follower     >=      a leader is reported
    Candidate    Unattached   >       a later epoch is reported
    Leader       Resigned     =       shutdown; no majority has fetched for too long; the driver requests it
    Leader       Follower     >       the leader of a later epoch is reported
    Leader       Unattached   >       a later epoch is reported
    Resigned     Prospective  =       the election timeout expires
    Resigned     Follower     >       the leader of a later epoch is reported
    Resigned     Unattached   >       a later epoch is reported

Observers, and voters whose disk has lost a part of the log, are always Unattached or Follower. After a restart a node
is Follower if it knew another node as leader, else Unattached. A node that led an epoch, or was a candidate in it, is
neither again in the same epoch after a restart, because its log may have lost its end. `TRANSITIONS` is the table
above; `NodeState.transition` rejects all others.
"""

from collections.abc import Callable
from dataclasses import field
from operator import eq, ge, gt
from typing import TypeAlias

from sskafka.model.values import structure, value
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.messages import FetchRequest
from sskafka.raft.progress import Progress
from sskafka.raft.ready import ReplyTo


@structure
class Unattached:
    election_deadline_ms: int | None
    """None: the node does not campaign, because it is an observer, shuts down, or has lost a part of its log."""


@structure
class SnapshotDownload:
    snapshot_id: SnapshotId
    position: int = 0


@structure
class Follower:
    leader_id: int
    fetch_deadline_ms: int
    has_fetched: bool = False
    """Whether this leader has answered and was not reported down since. If so, pre-votes against it are rejected."""
    download: SnapshotDownload | None = None
    successor_deadline_ms: int | None = None
    """When to campaign if this leader confirms that it has resigned: an EndQuorumEpoch has announced that."""


@structure
class Tally:
    """Votes of the other voters, and the node's own."""

    granted: set[int]
    rejected: set[int] = field(default_factory=set)

    def count(self, voter_id: int, granted: bool) -> None:
        (self.granted if granted else self.rejected).add(voter_id)


@structure
class Prospective:
    election_deadline_ms: int
    tally: Tally


@structure
class Candidate:
    election_deadline_ms: int
    tally: Tally
    backoff_deadline_ms: int | None = None
    """Set when a majority rejected: waiting for the others is pointless, but all nodes must not retry at once."""


@value
class ParkedFetch:
    request: FetchRequest
    reply_to: ReplyTo
    deadline_ms: int


@structure
class Leader:
    epoch_start_offset: int
    progress: Progress
    parked: dict[ReplyTo, ParkedFetch] = field(default_factory=dict)
    """Fetches that wait for a record, a higher high watermark, or their deadline."""


@structure
class Resigned:
    election_deadline_ms: int
    unacknowledged: set[int]
    preferred_successors: tuple[int, ...]


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned


def _next(new_epoch: int, old_epoch: int) -> bool:
    return new_epoch == old_epoch + 1


TRANSITIONS: dict[tuple[type[Role], type[Role]], Callable[[int, int], bool]] = {
    (Unattached, Unattached): ge,
    (Unattached, Follower): ge,
    (Unattached, Prospective): eq,
    (Follower, Follower): gt,
    (Follower, Unattached): ge,
    (Follower, Prospective): eq,
    (Prospective, Candidate): _next,
    (Prospective, Follower): ge,
    (Prospective, Unattached): ge,
    (Candidate, Leader): eq,
    (Candidate, Prospective): eq,
    (Candidate, Follower): ge,
    (Candidate, Unattached): gt,
    (Leader, Resigned): eq,
    (Leader, Follower): gt,
    (Leader, Unattached): gt,
    (Resigned, Prospective): eq,
    (Resigned, Follower): gt,
    (Resigned, Unattached): gt,
}
"""The allowed transitions: how the new epoch must compare with the old one."""

OBSERVER_ROLES: tuple[type[Role], ...] = (Unattached, Follower)
