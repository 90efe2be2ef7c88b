"""The bound on the memory that members of groups take in one shard.

What a member reports when it joins is kept until its session ends, even if its client is gone, and anybody may join any
number of groups. Bytes are added up as members join. Only when the sum exceeds the bound are the members counted that
are still there, and not more often than every RECOUNT_MS. So this costs nothing as long as groups are of normal size.
"""

from collections.abc import Collection, Iterable

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.group import Group
from sskafka.groups.members import Protocols

SHARD_BYTES_MAX = 16 * 1024 * 1024
MEMBER_BYTES = 1024
"""What a member takes besides its metadata."""
NAME_BYTES = 128
"""What a protocol or the name of a topic takes besides its text and metadata."""
MATCHED_BYTES = 48
"""What a topic takes that a pattern of a group matches."""
RECOUNT_MS = 1000


class MemberMemory:
    def __init__(self, bytes_max: int = SHARD_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._used_bytes = 0
        self._may_recount_ms = 0

    def take(self, size: int, groups: Iterable[Group], now_ms: int) -> bool:
        """Return whether there is room for a member of this size; if there is, count it."""
        if self._used_bytes + size > self._bytes_max:
            if now_ms >= self._may_recount_ms:
                self._used_bytes = sum(_group_bytes(group) for group in groups)
                self._may_recount_ms = now_ms + RECOUNT_MS
            if self._used_bytes + size > self._bytes_max:
                return False
        self._used_bytes += size
        return True


def classic_member_bytes(protocols: Protocols) -> int:
    return MEMBER_BYTES + sum(NAME_BYTES + len(name) + len(metadata) for name, metadata in protocols)


def consumer_member_bytes(topic_names: Collection[str], regex: str) -> int:
    return MEMBER_BYTES + NAME_BYTES * len(topic_names) + sum(map(len, topic_names)) + len(regex)


def _group_bytes(group: Group) -> int:
    size = MEMBER_BYTES + len(group.group_id)
    if isinstance(group, ClassicGroup):
        size += MEMBER_BYTES * len(group.pending_members)
        for member in group.members.values():
            size += classic_member_bytes(member.protocols) + len(member.assignment)
    elif isinstance(group, ConsumerGroup):
        for consumer in group.members.values():
            size += consumer_member_bytes(consumer.topic_names, consumer.topic_regex)
        size += MATCHED_BYTES * sum(map(len, group.regex_topics.values()))
    return size
