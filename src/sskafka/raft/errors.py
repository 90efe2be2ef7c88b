"""Errors of the state machine itself; invalid requests of other nodes are answered with Kafka's error codes."""


class NotLeaderError(Exception):
    """Records were proposed on a node that does not lead the epoch in which they were decided."""

    def __init__(self, leader_id: int, epoch: int) -> None:
        super().__init__(f"the leader of epoch {epoch} is {leader_id}")
        self.leader_id = leader_id
        self.epoch = epoch


class CommittedRecordsLostError(Exception):
    """The elected leader lacks records that this node knows to be committed, so a majority has lost its disks or is
    faulty. This node must not follow it, because that would delete what may be the last copy."""
