"""An incremental fetch session (KIP-227) on the leader: partitions, and the offsets that the client last received."""

from collections.abc import Iterable
from typing import Final

from sskafka.wire.fetch import FetchRequestView

EPOCH_MAX: Final = 2**31 - 1

Topic = str | bytes
"""Name of a topic, or its id from version 13 on."""
Key = tuple[Topic, int]


class Target:
    """A partition of a fetch: the fields of the request, and the offsets that the client last received."""

    __slots__ = (
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "seen",
        "topic",
    )

    def __init__(
        self,
        topic: Topic,
        index: int,
        leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
        max_bytes: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.max_bytes = max_bytes
        self.seen: tuple[int, int] | None = None  # high watermark and log start offset


class FetchSession:
    __slots__ = ("last_used_ms", "next_epoch", "session_id", "targets", "uses_topic_ids")

    is_followers = False

    def __init__(self, session_id: int, targets: Iterable[Target], uses_topic_ids: bool, now_ms: float) -> None:
        self.session_id = session_id
        self.targets: dict[Key, Target] = {(target.topic, target.index): target for target in targets}
        self.uses_topic_ids = uses_topic_ids
        self.next_epoch = 1
        self.last_used_ms = now_ms

    def due(self) -> list[Target]:
        """The partitions that a fetch has to read."""
        return list(self.targets.values())

    def close(self) -> None:
        """Called when the session is closed."""

    def response_sent(self, target: Target, gave_records: bool) -> None:
        """Move partitions that returned records to the end, so that all partitions get their turn."""
        key = (target.topic, target.index)
        if gave_records and self.targets.get(key) is target:
            del self.targets[key]
            self.targets[key] = target

    def forget(self, key: Key) -> None:
        self.targets.pop(key, None)

    def update(self, fetch: FetchRequestView, named: Iterable[Target]) -> None:
        """Apply the changes of a request. `named` are its partitions."""
        for topic, partitions in fetch.forgotten:
            for index in partitions:
                self.forget((topic, index))
        for target in named:
            known = self.targets.get((target.topic, target.index))
            if known is not None:
                target.seen = known.seen
            self.targets[target.topic, target.index] = target
        self.next_epoch = 1 if self.next_epoch == EPOCH_MAX else self.next_epoch + 1


def targets_of(fetch: FetchRequestView) -> Iterable[Target]:
    for topic, partitions in fetch.topics:
        for partition in partitions:
            yield Target(topic, *partition)
