"""The topics of the cluster as a shard last saw them, and what has changed since the time before.

A topic that is created, deleted or extended concerns few groups, but every group is checked for it. So the changes are
computed once, patterns are matched only against new names, and a group that was compared with the previous topics is
checked only for the few names that differ.

Patterns are matched by RE2, in time proportional to the names. With Python's own expressions, any client that may
subscribe could send a pattern that runs forever.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.model.errors import ErrorCode, KafkaError

PATTERNS_MAX = 10_000
"""Bound on cached patterns. After it is reached, the cache is cleared; patterns in use are soon cached again."""


class TopicChanges:
    __slots__ = ("_before", "_changed", "_changed_patterns", "_found", "_topics")

    def __init__(self) -> None:
        self._topics: Topics = {}
        self._before: Topics = {}
        self._changed: set[str] = set()
        self._changed_patterns: set[str] = set()
        self._found: dict[str, frozenset[str]] = {}

    def update(self, topics: Topics) -> None:
        """Compare the current topics with the previous ones. The same mapping object means: nothing has changed."""
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
        """Return whether the subscribed topics of the group may have changed since it was last compared."""
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
    """Return an int64 that changes when a subscribed topic is created, deleted, recreated or extended; 0: no topics."""
    found = [topics[name] for name in sorted(subscribed) if name in topics]
    if not found:
        return 0
    text = b"".join([b"%s:%d;" % topic for topic in found])
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def check_pattern(pattern: str) -> None:
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that the pattern matches as a whole. Internal topics match, too, as in Apache Kafka."""
    compiled = _compiled(pattern)
    return frozenset(name for name in names if compiled.fullmatch(name))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415  loaded by the first who needs it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
