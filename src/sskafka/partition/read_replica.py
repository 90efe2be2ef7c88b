"""Choose the replica that a consumer should read from (KIP-392): the most caught-up one in the consumer's rack."""

from collections.abc import Iterable
from typing import NamedTuple


class ReadReplica(NamedTuple):
    broker_id: int
    rack: str | None
    log_end_offset: int
    log_start_offset: int


def nearest_replica(
    leader: ReadReplica, in_sync: Iterable[ReadReplica], client_rack: str, fetch_offset: int
) -> int | None:
    """Return the preferred read replica, or None for the leader. `in_sync` holds the other live in-sync replicas."""
    if not client_rack or leader.rack == client_rack:
        return None
    near = [
        replica
        for replica in in_sync
        if replica.rack == client_rack and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
    ]
    if not near:
        return None
    return max(near, key=lambda replica: (replica.log_end_offset, -replica.broker_id)).broker_id
