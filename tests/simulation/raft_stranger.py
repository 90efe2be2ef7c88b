"""Somebody who reaches the port of every node and claims to be a voter, with epochs near and far.

It has a random sequence of its own, so that runs without it are the same as ever. It cannot answer in the name of a
voter: nodes connect to the addresses that they know.
"""

from collections.abc import Iterator
from random import Random

from raft_cluster import Cluster
from raft_invariants import require
from raft_member import Member

from sskafka.raft.log_view import OffsetAndEpoch
from sskafka.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, PeerRequest, VoteRequest
from sskafka.raft.node import RequestReceived
from sskafka.raft.roles import Follower, Leader

CLAIMS_MAX = 400
LAST_EPOCH = 2**31 - 1
_LEADS = (0, 1, 2, 1_000, 1_001, LAST_EPOCH)


class Stranger:
    def __init__(self, seed: int) -> None:
        self._random = Random(f"stranger of {seed}")

    def times(self, end_ms: int) -> Iterator[int]:
        return (self._random.randrange(end_ms) for _ in range(self._random.randrange(CLAIMS_MAX)))

    def claim(self, cluster: Cluster, listening: list[Member]) -> None:
        member = self._random.choice(listening)
        request = self._request(member)
        epoch, heard = member.node.epoch, _hears_leader(member)
        cluster.receive(member, RequestReceived(request, "stranger"))
        if heard and member.is_up:
            detail = f"{member.node_id} went from epoch {epoch} to {member.node.epoch} because of {request}"
            require(member.node.epoch == epoch, "a stranger does not depose a live leader", detail)

    def _request(self, member: Member) -> PeerRequest:
        random = self._random
        claimed_id = random.choice([*member.voters.ids, 99])
        epoch = min(LAST_EPOCH, member.node.epoch + random.choice(_LEADS))
        match random.randrange(4):
            case 0:
                return BeginQuorumEpochRequest(claimed_id, epoch)
            case 1:
                return EndQuorumEpochRequest(claimed_id, epoch, tuple(random.sample(member.voters.ids, 2)))
            case _:
                log_end = OffsetAndEpoch(random.choice((0, 10**9)), random.choice((0, epoch)))
                return VoteRequest(claimed_id, epoch, log_end, pre_vote=bool(random.randrange(2)))


def _hears_leader(member: Member) -> bool:
    role = member.node.role
    return isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
