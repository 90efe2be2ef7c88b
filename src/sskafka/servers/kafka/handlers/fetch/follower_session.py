"""The fetch session of a follower. It has thousands of partitions, of which a fetch reads only those with news.

    due ----- read; the follower has everything now -----------------------> quiet
    quiet --- named in a request, or news in the partition (a watch fires) --> due

The follower of a quiet partition has all records, is in sync and knows the high watermark. From time to time all
partitions become due, because some changes fire no watch, such as a log start offset that retention has moved.
"""

from collections.abc import Iterable
from typing import Final

from sskafka.partition.follower_progress import LastFetch
from sskafka.replication.partition import DataWaiter, DelayedFetch, Partition
from sskafka.servers.kafka.handlers.fetch.session import FetchSession, Key, Target
from sskafka.wire.fetch import FetchedPartition, FetchRequestView

FULL_CHECK_INTERVAL_MS: Final = 5_000


class Watch:
    """Notifies a session of news in one partition."""

    __slots__ = ("_key", "_session", "partition")

    def __init__(self, session: "FollowerSession", key: Key, partition: Partition) -> None:
        self._session = session
        self._key = key
        self.partition = partition

    def note_data(self) -> DelayedFetch | None:
        return self._session.make_due(self._key)

    def partition_changed(self) -> None:
        parked = self._session.make_due(self._key)
        if parked is not None:
            parked.data_arrived()


class FollowerSession(FetchSession):
    __slots__ = ("_due", "_full_check_ms", "_watches", "follower", "last_fetch", "parked")

    is_followers = True

    def __init__(
        self,
        session_id: int,
        targets: Iterable[Target],
        uses_topic_ids: bool,
        now_ms: float,
        follower: tuple[int, int],
    ) -> None:
        super().__init__(session_id, targets, uses_topic_ids, now_ms)
        self.follower = follower
        """Id and epoch of the follower's broker."""
        self.last_fetch = LastFetch()
        self.parked: DelayedFetch | None = None
        self._due = dict(self.targets)
        self._watches: dict[Key, Watch] = {}
        self._full_check_ms = now_ms

    def update(self, fetch: FetchRequestView, named: Iterable[Target]) -> None:
        super().update(fetch, named)
        if self.last_used_ms - self._full_check_ms >= FULL_CHECK_INTERVAL_MS:
            self._full_check_ms = self.last_used_ms
            self._due = dict(self.targets)
        for target in named:
            self.make_due((target.topic, target.index))

    def due(self) -> list[Target]:
        return list(self._due.values())

    def make_due(self, key: Key) -> DelayedFetch | None:
        """Append the partition to those that are due. Return the parked fetch, if there is one."""
        target = self.targets.get(key)
        if target is None:
            return None
        self._due.pop(key, None)
        self._due[key] = target
        return self.parked

    def response_sent(self, target: Target, gave_records: bool) -> None:
        """Keep the order of due partitions. One that returned records is due again when the follower names it."""

    def maybe_make_quiet(self, target: Target, fetched: FetchedPartition, replica_id: int) -> None:
        """Make the partition quiet if the follower has everything."""
        key = (target.topic, target.index)
        watch = self._watches.get(key)
        if (
            watch is not None
            and fetched.error_code == 0
            and fetched.tags is None
            and target.seen == (fetched.high_watermark, fetched.log_start_offset)
            and target.fetch_offset == watch.partition.log_end_offset
            and watch.partition.has_follower_in_sync(replica_id)
        ):
            self._due.pop(key, None)

    def watch(self, target: Target, partition: Partition) -> None:
        key = (target.topic, target.index)
        watch = self._watches.get(key)
        if watch is not None and watch.partition is partition:
            return
        if watch is not None:
            watch.partition.follower_waiters.pop(watch, None)
        self._watches[key] = watch = Watch(self, key, partition)
        waiters: dict[DataWaiter, None] = partition.follower_waiters
        waiters[watch] = None

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._due.pop(key, None)
        watch = self._watches.pop(key, None)
        if watch is not None:
            watch.partition.follower_waiters.pop(watch, None)
            watch.partition.forgotten_by(self.follower[0], self.last_fetch)

    def close(self) -> None:
        for watch in self._watches.values():
            watch.partition.follower_waiters.pop(watch, None)
        self._watches.clear()
        self._due.clear()
        self.targets.clear()
