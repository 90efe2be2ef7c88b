"""The topics that the patterns of a consumer group match: at once if that is quick, otherwise in the background.

    a heartbeat finds patterns to resolve ──► at once: records, and a new group epoch
                                         └──► ResolvePatterns ──► in steps ──► a decision of its own: the same

A pattern is matched with every topic, and the client's right to describe every topic that matches is looked up. Until
that is done, the group keeps the topics that the pattern matched before; a new pattern matches none. Apache Kafka
resolves patterns in the background, too.

Topics may change in the meantime, and members may subscribe to other patterns. So the decision at the end is the one
that a heartbeat makes, with what has been found; if something is missing, the next heartbeat asks again.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.groups import consumer_records as records
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.consumer_heartbeat import TopicRights
from sskafka.groups.log_records import GroupRecord
from sskafka.groups.topic_changes import TopicChanges, patterns_of
from sskafka.model.computation import Computation

RIGHTS_AT_ONCE = 200
"""Topics whose rights are looked up in the turn of a heartbeat."""
RIGHTS_PER_STEP = 100


class ResolvePatterns(NamedTuple):
    """An effect: resolve the patterns of a group in the background."""

    group_id: str
    rights: TopicRights | None
    """Those of the client that has sent the heartbeat. As in Apache Kafka, they decide for the whole group."""


class Allowed(NamedTuple):
    """The topics that a pattern matches, and those of them that a client may describe."""

    matched: frozenset[str]
    described: frozenset[str]


AllowedTopics = Mapping[str, Allowed]
"""By pattern."""
NOTHING_ALLOWED: AllowedTopics = {}


def resolved_records(
    group: ConsumerGroup, changes: TopicChanges, now_ms: int, rights: TopicRights | None, known: AllowedTopics
) -> list[GroupRecord] | None:
    """Return a record for every pattern that matches other topics than before, or None if that takes too long at once.

    `known`: rights that were looked up in the background. Raise KafkaError if a pattern takes too much time."""
    made: list[GroupRecord] = []
    for pattern in patterns_of(group):
        found = changes.resolved(pattern)
        if found is not None and rights is not None:
            found = _described(found, rights, known.get(pattern))
        if found is None:
            return None
        if group.regex_topics.get(pattern) != found:
            made.append(records.regex_record(group.group_id, pattern, found, now_ms))
    return made


def _described(found: frozenset[str], rights: TopicRights, known: Allowed | None) -> frozenset[str] | None:
    if known is not None and known.matched is found:
        return known.described
    if len(found) > RIGHTS_AT_ONCE:
        return None
    return frozenset(name for name in found if rights.may_describe(name))


def unused_patterns(group: ConsumerGroup) -> list[GroupRecord]:
    """Return tombstones for the patterns that no member subscribes to any more."""
    used = {member.topic_regex for member in group.members.values()}
    return [records.regex_tombstone(group.group_id, pattern) for pattern in group.regex_topics if pattern not in used]


def resolve_patterns(
    group: ConsumerGroup, changes: TopicChanges, rights: TopicRights | None
) -> Computation[AllowedTopics]:
    """Find the topics of the group's patterns, so that `resolved_records` has them at once."""
    allowed: dict[str, Allowed] = {}
    for pattern in sorted(patterns_of(group)):
        found = yield from changes.resolve(pattern)
        if found is not None and rights is not None:
            described: set[str] = set()
            for number, name in enumerate(found, 1):
                if rights.may_describe(name):
                    described.add(name)
                if not number % RIGHTS_PER_STEP:
                    yield
            allowed[pattern] = Allowed(found, frozenset(described))
    return allowed
