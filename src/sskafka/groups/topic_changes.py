"""The topics of the cluster as a shard last saw them, and what has changed since the time before.

A topic that is created, deleted or extended concerns few groups, but every group is checked for it. So the changes are
computed once, patterns are matched only against new names, and a group that was compared with the previous topics is
checked only for the few names that differ.

A pattern that takes longer than a turn of the event loop is matched in steps, in the background. One that takes much
CPU time is refused: a client could create topics with names for which its pattern is slow.
"""

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b

from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.pattern import InvalidPatternError, Pattern, SlowPatternError
from sskafka.model.pattern_matching import CpuClock, matching_names

PATTERNS_MAX = 10_000
"""Bound on cached patterns. After it is reached, the cache is cleared; patterns in use are soon cached again."""
NAMES_MAX = 200_000
"""Bound on the topics of cached patterns, which works in the same way."""
AT_ONCE_NS = 2_000_000
"""CPU time that a pattern may take in the turn of a heartbeat."""
AGAIN_NS = 10_000_000
"""CPU time that all known patterns may take for new topics in the turn of a heartbeat."""


class TopicChanges:
    __slots__ = (
        "_before",
        "_changed",
        "_changed_patterns",
        "_cpu_ns",
        "_found",
        "_names",
        "_refused",
        "_slow",
        "_topics",
    )

    def __init__(self, cpu_ns: CpuClock = lambda: 0) -> None:
        self._cpu_ns = cpu_ns
        self._slow: set[str] = set()
        """Patterns that take longer than a turn for the current topics."""
        self._refused: set[str] = set()
        self._topics: Topics = {}
        self._before: Topics = {}
        self._changed: set[str] = set()
        self._changed_patterns: set[str] = set()
        self._found: dict[str, frozenset[str]] = {}
        self._names = 0
        """The number of names in `_found`."""

    def update(self, topics: Topics) -> None:
        """Compare the current topics with the previous ones. The same mapping object means: nothing has changed."""
        if topics is self._topics:
            return
        before = self._before = self._topics
        self._topics = topics
        gone = before.keys() - topics.keys()
        self._changed = {name for name, topic in topics.items() if before.get(name) != topic} | gone
        added = [name for name in self._changed if name not in before]
        self._changed_patterns = set()
        self._refused.clear()
        self._slow.clear()
        if added or gone:
            self._match_again(added, gone)

    def _match_again(self, added: list[str], gone: AbstractSet[str]) -> None:
        """Match the known patterns against new names. Forget all patterns if that takes long: they may add up."""
        over_ns = self._cpu_ns() + AGAIN_NS
        for pattern, found in self._found.items():
            try:
                new = self._matched_until(over_ns, matching(pattern, added, self._cpu_ns))
            except SlowPatternError:
                new = None
            if new is None:
                self._forget()
                return
            if new or not found.isdisjoint(gone):
                self._found[pattern] = (found | new) - gone
                self._names += len(new)
                self._changed_patterns.add(pattern)

    def _matched_until(self, over_ns: int, steps: Computation[frozenset[str]]) -> frozenset[str] | None:
        """Return the result, or None if the time is over before that."""
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                found: frozenset[str] = stop.value
                return found if self._cpu_ns() <= over_ns else None
            if self._cpu_ns() > over_ns:
                return None

    def _forget(self) -> None:
        self._found.clear()
        self._names = 0

    def concerns(self, group: ConsumerGroup) -> bool:
        """Return whether the subscribed topics of the group may have changed since it was last compared."""
        if group.memory.seen_topics is not self._before:
            return True
        for pattern in patterns_of(group):
            if pattern in self._changed_patterns or pattern not in self._found:
                return True
        return not group.subscribed_topics.isdisjoint(self._changed)

    def resolved(self, pattern: str) -> frozenset[str] | None:
        """Return the topics that the pattern matches, or None if that takes longer than a turn: then `resolve` it.

        Raise KafkaError if it takes too much time."""
        found = self._found.get(pattern)
        if found is not None:
            return found
        if pattern not in self._slow and pattern not in self._refused:
            found = self._resolved_at_once(pattern)
        if pattern in self._refused:
            text = f"SubscribedTopicRegex `{pattern}` takes too much time to match the topics of this cluster."
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
        return found

    def _resolved_at_once(self, pattern: str) -> frozenset[str] | None:
        try:
            found = self._matched_until(self._cpu_ns() + AT_ONCE_NS, matching(pattern, self._topics, self._cpu_ns))
        except SlowPatternError:
            self._note(self._refused, pattern)
            return None
        if found is None:
            self._note(self._slow, pattern)
            return None
        return self._remember(pattern, found)

    def resolve(self, pattern: str) -> Computation[frozenset[str] | None]:
        """Return the topics that the pattern matches, and remember them; None if it takes too much time.

        If topics change meanwhile, only the new ones are matched, too."""
        known = self._found.get(pattern)
        if known is not None or pattern in self._refused:
            return known
        topics = self._topics
        try:
            found = yield from matching(pattern, topics, self._cpu_ns)
            while topics is not self._topics:
                before, topics = topics, self._topics
                added = [name for name in topics if name not in before]
                new = yield from matching(pattern, added, self._cpu_ns)
                found = frozenset(name for name in found | new if name in topics)
        except SlowPatternError:
            self._note(self._refused, pattern)
            return None
        return self._remember(pattern, found)

    def _remember(self, pattern: str, found: frozenset[str]) -> frozenset[str]:
        if len(self._found) >= PATTERNS_MAX or self._names + len(found) > NAMES_MAX:
            self._forget()
        self._names += len(found)
        self._found[pattern] = found
        return found

    def _note(self, patterns: set[str], pattern: str) -> None:
        if len(patterns) >= PATTERNS_MAX:
            patterns.clear()
        patterns.add(pattern)


def patterns_of(group: ConsumerGroup) -> set[str]:
    return {member.topic_regex for member in group.members.values() if member.topic_regex}


def topics_hash(topics: Topics, subscribed: Iterable[str]) -> int:
    """Return an int64 that changes when a subscribed topic is created, deleted, recreated or extended; 0: no topics."""
    found = [topics[name] for name in sorted([name for name in subscribed if name in topics])]
    if not found:
        return 0
    text = b"".join([b"%s:%d;" % topic for topic in found])
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def check_pattern(pattern: str) -> None:
    _compiled(pattern)


def matching(pattern: str, names: Collection[str], cpu_ns: CpuClock = lambda: 0) -> Computation[frozenset[str]]:
    """Return the names that the pattern matches as a whole. Internal topics match, too, as in Apache Kafka.

    Raise SlowPatternError if that takes too much CPU time, between two steps."""
    return matching_names(_compiled(pattern), names, cpu_ns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Pattern:
    try:
        return Pattern(pattern)
    except InvalidPatternError as error:
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
