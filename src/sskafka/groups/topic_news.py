"""The topics of the cluster as a shard saw them last, and what has changed since the time before.

A topic that comes, goes or grows concerns few groups, and every group is asked about it. So what changed is found out
once, patterns are matched against new names alone, and a group that saw the topics as they were before is let go by a
look at the few names that differ.
"""

from collections.abc import Iterable
from hashlib import blake2b

from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.topic_patterns import matching

PATTERNS_MAX = 10_000
"""Remembered at once; those in use are soon found again."""


class TopicNews:
    __slots__ = ("_before", "_changed", "_changed_patterns", "_found", "_topics")

    def __init__(self) -> None:
        self._topics: Topics = {}
        self._before: Topics = {}
        self._changed: set[str] = set()
        self._changed_patterns: set[str] = set()
        self._found: dict[str, frozenset[str]] = {}

    def look_at(self, topics: Topics) -> None:
        """As they are now. The same mapping stands for the same topics."""
        if topics is self._topics:
            return
        before = self._before = self._topics
        self._topics = topics
        names = topics.keys() | before.keys()
        self._changed = {name for name in names if topics.get(name) != before.get(name)}
        added = [name for name in self._changed if name not in before]
        gone = {name for name in self._changed if name not in topics}
        self._changed_patterns = set()
        for pattern, found in self._found.items():
            new = matching(pattern, added)
            if new or not found.isdisjoint(gone):
                self._found[pattern] = (found | new) - gone
                self._changed_patterns.add(pattern)

    def concerns(self, group: ConsumerGroup) -> bool:
        """Whether what the group is subscribed to may have changed since it was last compared."""
        if group.memory.seen_topics is not self._before:
            return True
        for pattern in patterns_of(group):
            if pattern in self._changed_patterns or pattern not in self._found:
                return True
        return not group.subscribed_topics.isdisjoint(self._changed)

    def matching(self, pattern: str) -> frozenset[str]:
        found = self._found.get(pattern)
        if found is None:
            if len(self._found) >= PATTERNS_MAX:
                self._found.clear()
            found = self._found[pattern] = matching(pattern, self._topics)
        return found


def patterns_of(group: ConsumerGroup) -> set[str]:
    return {member.topic_regex for member in group.members.values() if member.topic_regex}


def topics_hash(topics: Topics, subscribed: Iterable[str]) -> int:
    """Differs when a subscribed topic comes, goes, is made anew or grows; an int64, 0 where there are none."""
    found = [topics[name] for name in sorted(subscribed) if name in topics]
    if not found:
        return 0
    text = b"".join([b"%s:%d;" % topic for topic in found])
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)
