"""What a node can be, and every way in which it may become something else.

    Unattached   knows an epoch, follows nobody; after giving its vote in that epoch it is called Voted
    Follower     fetches from the leader of its epoch
    Prospective  lost its leader and asks, without leaving its epoch, who would vote for it (pre-vote)
    Candidate    stands for election in a new epoch, having voted for itself
    Leader       has the votes of a majority in its epoch
    Resigned     was the leader of its epoch and tells the others that it no longer is

    from         to           epoch   when
    ------------------------------------------------------------------------------------------------------------------
    Unattached   Unattached   >=      a newer epoch is heard of; a vote is given
    Unattached   Follower     >=      a leader is heard of
    Unattached   Prospective  =       the election timeout passes
    Follower     Follower     >       the leader of a newer epoch is heard of
    Follower     Unattached   >=      a newer epoch is heard of; the leader says that it is none; an observer lost it
    Follower     Prospective  =       the fetch timeout passes, soon after the leader is reported down
    Prospective  Candidate    +1      a majority would vote for it
    Prospective  Follower     >=      a leader is heard of; no majority, and the known leader is tried again
    Prospective  Unattached   >=      a newer epoch is heard of; a vote is given; no majority, and no leader is known
    Candidate    Leader       =       a majority voted for it
    Candidate    Prospective  =       the election timeout passes; too many refuse or are down, and the backoff is over
    Candidate    Follower     >=      a leader is heard of
    Candidate    Unattached   >       a newer epoch is heard of
    Leader       Resigned     =       shutdown; no majority has fetched for too long; the driver asks for it
    Leader       Follower     >       the leader of a newer epoch is heard of
    Leader       Unattached   >       a newer epoch is heard of
    Resigned     Prospective  =       the election timeout passes
    Resigned     Follower     >       the leader of a newer epoch is heard of
    Resigned     Unattached   >       a newer epoch is heard of

Observers are only ever Unattached or Follower. After a restart a node is Follower where it knew another leader, else
Unattached: who led or stood for an epoch never does so again in it, because its log may have lost its end.
The lines above are `TRANSITIONS`; `NodeState.transition` lets nothing else pass.
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
    """None: never campaigns, being an observer or about to shut down."""


@structure
class SnapshotDownload:
    snapshot_id: SnapshotId
    position: int = 0


@structure
class Follower:
    leader_id: int
    fetch_deadline_ms: int
    has_fetched: bool = False
    """Whether this leader has answered and was not reported down since: then pre-votes against it are refused."""
    download: SnapshotDownload | None = None


@structure
class Tally:
    """Answers of the other voters, and the node's own yes."""

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
    """Set when a majority refused: not worth waiting for the rest, but everybody should not try again at once."""


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
    """Fetches that wait for news: a record, a higher high watermark, or their deadline."""


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
"""From a role to a role: how the new epoch has to compare with the old one."""

OBSERVER_ROLES: tuple[type[Role], ...] = (Unattached, Follower)
