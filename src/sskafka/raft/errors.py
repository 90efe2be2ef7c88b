"""What can go wrong in the machine itself; what other nodes get wrong is answered with Kafka's error codes."""


class NotLeaderError(Exception):
    """A proposal came to a node that does not lead the epoch in which it was decided."""

    def __init__(self, leader_id: int, epoch: int) -> None:
        super().__init__(f"the leader of epoch {epoch} is {leader_id}")
        self.leader_id = leader_id
        self.epoch = epoch


class CommittedRecordsLostError(Exception):
    """The elected leader lacks records that this node knows to be committed. A majority has lost its disks, or lied:
    this node must not follow and throw away what may be the last copy."""
