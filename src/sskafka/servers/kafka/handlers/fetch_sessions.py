"""Incremental fetch sessions (KIP-227): a client names its partitions once and afterwards only what changed.

    request (id, epoch)      meaning
    (0, -1) or (s, -1)       no session; s is closed
    (0, 0)  or (s, 0)        all partitions are named: open a new session; s is closed
    (s, n)  n > 0            changes to session s, whose next epoch must be n

In an incremental answer a partition stands only when it has data, an error, or offsets the client has not seen.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.fetch import FetchedPartition, FetchRequestView

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000

Topic = str | bytes
"""A topic's name, or from Fetch 13 on its id."""


class Target:
    """What one request asks of one partition, and what the client was last told about it."""

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
    __slots__ = ("is_followers", "last_used_ms", "next_epoch", "session_id", "targets", "uses_topic_ids")

    def __init__(
        self, session_id: int, targets: Iterable[Target], uses_topic_ids: bool, is_followers: bool, now_ms: float
    ) -> None:
        self.session_id = session_id
        self.is_followers = is_followers
        self.targets = {(target.topic, target.index): target for target in targets}
        self.uses_topic_ids = uses_topic_ids
        self.next_epoch = 1
        self.last_used_ms = now_ms

    def update(self, fetch: FetchRequestView) -> None:
        for topic, partitions in fetch.forgotten:
            for index in partitions:
                self.targets.pop((topic, index), None)
        for target in targets_of(fetch):
            known = self.targets.get((target.topic, target.index))
            if known is not None:
                target.seen = known.seen
            self.targets[target.topic, target.index] = target
        self.next_epoch = 1 if self.next_epoch == EPOCH_MAX else self.next_epoch + 1


class FetchContext:
    """The partitions that one request is about, and how its answer is to be cut down."""

    __slots__ = ("_incremental", "_session", "targets")

    def __init__(self, targets: list[Target], session: FetchSession | None, incremental: bool) -> None:
        self.targets = targets
        self._session = session
        self._incremental = incremental

    @property
    def session_id(self) -> int:
        return self._session.session_id if self._session else NO_SESSION

    def is_worth_telling(self, target: Target, fetched: FetchedPartition) -> bool:
        return (
            not self._incremental
            or fetched.records_size > 0
            or fetched.error_code != 0
            or fetched.tags is not None
            or fetched.preferred_read_replica >= 0
            or target.seen != (fetched.high_watermark, fetched.log_start_offset)
        )

    def told(self, target: Target, fetched: FetchedPartition) -> None:
        """Remember what the client now knows; partitions that gave data go last, so that all get their turn."""
        session = self._session
        if session is None:
            return
        target.seen = None if fetched.tags else (fetched.high_watermark, fetched.log_start_offset)
        if fetched.records_size and session.targets.get((target.topic, target.index)) is target:
            del session.targets[target.topic, target.index]
            session.targets[target.topic, target.index] = target


class FetchSessions:
    """All sessions of a broker, the least recently used first."""

    def __init__(self, limit: int, random_int: Callable[[int, int], int]) -> None:
        self._limit = limit
        self._random_int = random_int
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(self, fetch: FetchRequestView, uses_topic_ids: bool, now_ms: float) -> FetchContext:
        """Raises KafkaError when the named session does not exist or is not at that epoch."""
        if fetch.session_epoch in {FINAL_EPOCH, INITIAL_EPOCH}:
            self._sessions.pop(fetch.session_id, None)
            targets = list(targets_of(fetch))
            session = None
            if fetch.session_epoch == INITIAL_EPOCH and targets:
                session = self._maybe_open(targets, uses_topic_ids, fetch.replica_id >= 0, now_ms)
            return FetchContext(targets, session, incremental=False)
        session = self._resume(fetch, uses_topic_ids, now_ms)
        session.update(fetch)
        return FetchContext(list(session.targets.values()), session, incremental=True)

    def _resume(self, fetch: FetchRequestView, uses_topic_ids: bool, now_ms: float) -> FetchSession:
        session = self._sessions.get(fetch.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.next_epoch != fetch.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        return session

    def _maybe_open(
        self, targets: list[Target], uses_topic_ids: bool, is_followers: bool, now_ms: float
    ) -> FetchSession | None:
        """None when the cache is full of sessions in use: the client then goes on without one."""
        if len(self._sessions) >= self._limit and not self._evict(is_followers, now_ms):
            return None
        session_id = self._random_int(1, EPOCH_MAX)
        while session_id in self._sessions:
            session_id = self._random_int(1, EPOCH_MAX)
        session = FetchSession(session_id, targets, uses_topic_ids, is_followers, now_ms)
        self._sessions[session_id] = session
        return session

    def _evict(self, for_follower: bool, now_ms: float) -> bool:
        """The session that was not used for longest, if that is long enough; a follower takes any consumer's place."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
            oldest = None
            if for_follower:
                oldest = next((session for session in self._sessions.values() if not session.is_followers), None)
        if oldest is None:
            return False
        del self._sessions[oldest.session_id]
        return True


def targets_of(fetch: FetchRequestView) -> Iterable[Target]:
    for topic, partitions in fetch.topics:
        for partition in partitions:
            yield Target(topic, *partition)
