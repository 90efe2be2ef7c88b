"""The bound on the memory that members of classic groups take in one shard.

What a member reports when it joins is kept until its session ends, even if its client is gone, and anybody may join any
number of groups. Bytes are added up as members join. Only when the sum exceeds the bound are the members counted that
are still there, and not more often than every RECOUNT_MS. So this costs nothing as long as groups are of normal size.
"""

from collections.abc import Iterable

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.group import Group
from sskafka.groups.members import Protocols

SHARD_BYTES_MAX = 16 * 1024 * 1024
MEMBER_BYTES = 1024
"""What a member takes besides its metadata."""
RECOUNT_MS = 1000


class MemberMemory:
    def __init__(self, bytes_max: int = SHARD_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._used_bytes = 0
        self._may_recount_ms = 0

    def take(self, protocols: Protocols, groups: Iterable[Group], now_ms: int) -> bool:
        """Return whether there is room for a member; if there is, count it."""
        size = size_bytes(protocols)
        if self._used_bytes + size > self._bytes_max:
            if now_ms >= self._may_recount_ms:
                self._used_bytes = sum(_group_bytes(group) for group in groups if isinstance(group, ClassicGroup))
                self._may_recount_ms = now_ms + RECOUNT_MS
            if self._used_bytes + size > self._bytes_max:
                return False
        self._used_bytes += size
        return True


def size_bytes(protocols: Protocols) -> int:
    return MEMBER_BYTES + sum(len(metadata) for _, metadata in protocols)


def _group_bytes(group: ClassicGroup) -> int:
    members = sum(size_bytes(member.protocols) + len(member.assignment) for member in group.members.values())
    return MEMBER_BYTES * (1 + len(group.pending_members)) + members
