"""Ids and hashes of the topics that members subscribe to, remembered for long subscriptions.

Every heartbeat of a rebalance needs them, and members of a group nearly always have the same subscription.
"""

from collections.abc import Callable

from sskafka.groups.consumer_group import Topics
from sskafka.groups.topic_changes import topics_hash
from sskafka.model.ids import Uuid

LONG = 200
"""Subscriptions of so many topics are remembered."""
NAMES_MAX = 50_000
"""Bound on what is remembered. After it is reached, all is forgotten; what is in use is soon remembered again."""


class SubscribedTopics:
    def __init__(self, topics: Callable[[], Topics]) -> None:
        self._topics = topics
        self._known: Topics = {}
        self._ids: dict[frozenset[str], frozenset[Uuid]] = {}
        self._hashes: dict[frozenset[str], int] = {}
        self._names = 0

    def ids_of(self, names: frozenset[str]) -> frozenset[Uuid]:
        """Return the ids of the topics that exist."""
        if len(names) < LONG:
            return _ids_of(names, self._topics())
        self._forget_if_changed(len(names))
        found = self._ids.get(names)
        if found is None:
            self._names += len(names)
            found = self._ids[names] = _ids_of(names, self._known)
        return found

    def hash_of(self, names: frozenset[str]) -> int:
        """Return `topics_hash`."""
        if len(names) < LONG:
            return topics_hash(self._topics(), names)
        self._forget_if_changed(len(names))
        found = self._hashes.get(names)
        if found is None:
            self._names += len(names)
            found = self._hashes[names] = topics_hash(self._known, names)
        return found

    def _forget_if_changed(self, more: int) -> None:
        topics = self._topics()
        if topics is not self._known or self._names + more > NAMES_MAX:
            self._known = topics
            self._ids.clear()
            self._hashes.clear()
            self._names = 0


def _ids_of(names: frozenset[str], topics: Topics) -> frozenset[Uuid]:
    return frozenset([topics[name].topic_id for name in names if name in topics])
