"""Election state that must survive a restart: the content of Kafka's `quorum-state` file."""

from dataclasses import replace

from sskafka.model.values import value
from sskafka.raft.voters import NO_NODE


@value
class ElectionState:
    """The current epoch, its leader and this node's vote in it, if known.

    `last_leader_id` led, or was reported to lead, `last_leader_epoch`: the latest epoch whose leader this node
    accepted. Elections do not depend on it.
    """

    epoch: int = 0
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    last_leader_id: int = NO_NODE
    last_leader_epoch: int = 0

    @property
    def has_leader(self) -> bool:
        return self.leader_id != NO_NODE

    @property
    def has_voted(self) -> bool:
        return self.voted_id != NO_NODE

    def in_epoch(self, epoch: int) -> "ElectionState":
        """Return this state if `epoch` is its own, else an empty state for the later epoch."""
        if epoch == self.epoch:
            return self
        return replace(self, epoch=epoch, leader_id=NO_NODE, voted_id=NO_NODE)

    def with_vote(self, candidate_id: int) -> "ElectionState":
        return replace(self, voted_id=candidate_id)

    def with_leader(self, leader_id: int) -> "ElectionState":
        return replace(self, leader_id=leader_id, last_leader_id=leader_id, last_leader_epoch=self.epoch)

    def without_leader(self) -> "ElectionState":
        return replace(self, leader_id=NO_NODE)
