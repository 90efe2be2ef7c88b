"""Why a replica refuses to serve a request."""


class ReplicationError(Exception):
    pass


class NotLeaderError(ReplicationError):
    """This broker does not lead the partition."""


class FencedLeaderEpochError(ReplicationError):
    """The client knows an older leader epoch than this broker: it must refresh its metadata."""


class UnknownLeaderEpochError(ReplicationError):
    """The client knows a newer leader epoch than this broker: this broker is behind."""


class StaleBrokerEpochError(ReplicationError):
    """A follower fetches that has restarted since: what it says about its log may no longer be true."""


class NotEnoughReplicasError(ReplicationError):
    """Fewer replicas are in sync than min.insync.replicas asks for; nothing was written."""


class ReplicaOfflineError(ReplicationError):
    """The log directory of this replica has failed."""


class UnknownPartitionError(ReplicationError):
    """No such topic or partition on this broker."""


class UnknownTopicIdError(ReplicationError):
    """No topic with that id; it may have been deleted, or deleted and made again."""
