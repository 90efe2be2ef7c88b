"""The topics of the cluster as a shard last saw them, and what has changed since the time before.

A topic that is created, deleted or extended concerns few groups, but every group is checked for it. So the changes are
computed once, patterns are matched only against new names, and a group that was compared with the previous topics is
checked only for the few names that differ.

A pattern that takes much CPU time is refused: a client could create topics with names for which its pattern is slow,
and no other request is handled while a group waits for the topics of a pattern.
"""

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from hashlib import blake2b

from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.pattern import InvalidPatternError, Pattern

PATTERNS_MAX = 10_000
"""Bound on cached patterns. After it is reached, the cache is cleared; patterns in use are soon cached again."""
MATCHING_NS_MAX = 30_000_000
MATCHING_NS_PER_NAME = 5_000
"""CPU time that a pattern may take: a fixed part, and a part for every name. Ordinary patterns take 3 µs a name."""
NAMES_PER_LOOK = 8

CpuClock = Callable[[], int]
"""Returns the CPU time of the current thread in nanoseconds."""


class SlowPatternError(Exception):
    """The pattern took too much CPU time."""


class TopicChanges:
    __slots__ = ("_before", "_changed", "_changed_patterns", "_cpu_ns", "_found", "_refused", "_topics")

    def __init__(self, cpu_ns: CpuClock = lambda: 0) -> None:
        self._cpu_ns = cpu_ns
        self._refused: set[str] = set()
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
        self._refused.clear()
        if added or gone:
            self._match_again(added, gone)

    def _match_again(self, added: list[str], gone: set[str]) -> None:
        """Match the known patterns against new names. Forget all patterns if some are slow: they may add up."""
        over_ns = self._cpu_ns() + MATCHING_NS_MAX
        for pattern, found in self._found.items():
            try:
                new = matching(pattern, added, self._cpu_ns)
            except SlowPatternError:
                over_ns = 0
            if self._cpu_ns() > over_ns:
                self._found.clear()
                return
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
        """Return the topics that the pattern matches. Raise KafkaError if it takes too long."""
        found = self._found.get(pattern)
        if found is None:
            if len(self._found) >= PATTERNS_MAX:
                self._found.clear()
            found = self._found[pattern] = self._matched(pattern)
        return found

    def _matched(self, pattern: str) -> frozenset[str]:
        try:
            if pattern not in self._refused:
                return matching(pattern, self._topics, self._cpu_ns)
        except SlowPatternError:
            if len(self._refused) >= PATTERNS_MAX:
                self._refused.clear()
            self._refused.add(pattern)
        text = f"SubscribedTopicRegex `{pattern}` takes too much time to match the topics of this cluster."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)


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


def matching(pattern: str, names: Collection[str], cpu_ns: CpuClock = lambda: 0) -> frozenset[str]:
    """Return the names that the pattern matches as a whole. Internal topics match, too, as in Apache Kafka.

    Raise SlowPatternError if that takes too much CPU time."""
    matches = _compiled(pattern).matches
    over_ns = cpu_ns() + MATCHING_NS_MAX + MATCHING_NS_PER_NAME * len(names)
    found = set()
    for number, name in enumerate(names):
        if matches(name):
            found.add(name)
        if not number % NAMES_PER_LOOK and cpu_ns() > over_ns:
            raise SlowPatternError
    return frozenset(found)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Pattern:
    try:
        return Pattern(pattern)
    except InvalidPatternError as error:
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
