"""The follower's side of an incremental fetch session (KIP-227), which sends only changes to the leader.

    full          session (0, 0): all partitions are listed, a session is opened
    incremental   session (s, n): new, changed and forgotten partitions

After a lost or rejected request the leader's state is unknown, so the next request is full again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sskafka.model.ids import Uuid
from sskafka.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION = 0
INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1

Key = tuple[Uuid, int]
"""Topic id and partition."""


class PartitionFetchData(NamedTuple):
    """The fetch parameters of one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchSessionHandler:
    def __init__(self, partition_max_bytes: int) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.known: dict[Key, PartitionFetchData] = {}
        """The parameters that the leader knows, including those of the pending request."""
        self._partition_max_bytes = partition_max_bytes

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH

    def build_request(
        self, wanted: dict[Key, PartitionFetchData], forgotten: Iterable[Key]
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return the partitions of the request. `wanted`: all for a full request, otherwise the changed ones."""
        if self.is_full:
            self.known.clear()
        dropped = [key for key in forgotten if self.known.pop(key, None) is not None]
        changed = {key: what for key, what in wanted.items() if self.known.get(key) != what}
        self.known.update(changed)
        return self._topics(changed), _forgotten_topics(dropped)

    def answered(self, session_id: int) -> None:
        """Note that the leader accepted the request. `session_id` is 0 if the leader keeps no session."""
        self.session_id = session_id
        if session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def lost(self) -> None:
        """Start over with a full request, which names the old session so that the leader can drop it."""
        self.epoch = INITIAL_EPOCH

    def _topics(self, wanted: dict[Key, PartitionFetchData]) -> list[FetchTopic]:
        topics: dict[Uuid, FetchTopic] = {}
        for (topic_id, index), what in wanted.items():
            topic = topics.get(topic_id)
            if topic is None:
                topics[topic_id] = topic = FetchTopic(topic_id=topic_id)
            topic.partitions.append(FetchPartition(index, *what, self._partition_max_bytes))
        return list(topics.values())


def _forgotten_topics(keys: list[Key]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())
