"""Reasons why a replica rejects a request."""


class ReplicationError(Exception):
    pass


class NotLeaderOrFollowerError(ReplicationError):
    """This broker does not lead the partition."""


class FencedLeaderEpochError(ReplicationError):
    """The client knows an older leader epoch than this broker: it must refresh its metadata."""


class UnknownLeaderEpochError(ReplicationError):
    """The client knows a newer leader epoch than this broker: this broker is behind."""


class StaleBrokerEpochError(ReplicationError):
    """The follower has restarted since it sent the fetch: its fetch offset may be wrong now."""


class NotEnoughReplicasError(ReplicationError):
    """Fewer replicas are in sync than min.insync.replicas requires; nothing was written."""


class ReplicaOfflineError(ReplicationError):
    """The log directory of this replica has failed."""


class UnknownTopicOrPartitionError(ReplicationError):
    """No such topic or partition on this broker."""


class UnknownTopicIdError(ReplicationError):
    """No topic has that id; it may have been deleted, or deleted and created again."""
