"""Incremental fetch sessions (KIP-227): a client names its partitions once, and later only what has changed.

    request (id, epoch)      meaning
    (0, -1) or (s, -1)       no session; s is closed
    (0, 0)  or (s, 0)        all partitions are named: open a new session; s is closed
    (s, n)  n > 0            changes to session s, whose next epoch must be n

An incremental response contains a partition only if it has data, an error, or offsets that are new to the client.
The session of a consumer without partitions is closed. The partitions of all sessions are bounded, too, because a
session may name thousands.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.kafka.handlers.fetch.follower_session import FollowerSession
from sskafka.servers.kafka.handlers.fetch.session import EPOCH_MAX, FetchSession, Target
from sskafka.wire.fetch import FetchedPartition, FetchRequestView

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTABLE_AFTER_MS: Final = 120_000
MANY_PARTITIONS: Final = 500
SESSION_PARTITIONS_MAX: Final = 200_000
"""Partitions of the sessions of all consumers together, and of all followers; above that, a client has no session."""


class FetchContext:
    """The partitions of one request, and which of them its response leaves out."""

    __slots__ = ("_incremental", "_targets", "session")

    def __init__(self, targets: list[Target], session: FetchSession | None, incremental: bool) -> None:
        self._targets = targets
        self.session = session
        self._incremental = incremental

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session else NO_SESSION

    @property
    def is_long(self) -> bool:
        """Whether there are too many partitions to read all of them in one turn of the event loop."""
        return len(self._targets) > MANY_PARTITIONS

    @property
    def is_incremental(self) -> bool:
        return self._incremental

    @property
    def follower_session(self) -> FollowerSession | None:
        return self.session if isinstance(self.session, FollowerSession) else None

    @property
    def is_empty(self) -> bool:
        return not (self.session.targets if self.session else self._targets)

    def due(self) -> list[Target]:
        """The partitions to read now. In a follower's session, more may become due while its fetch is parked."""
        return self.session.due() if isinstance(self.session, FollowerSession) else self._targets

    def is_worth_telling(self, target: Target, fetched: FetchedPartition) -> bool:
        return (
            not self._incremental
            or fetched.records_size > 0
            or fetched.error_code != 0
            or fetched.tags is not None
            or fetched.preferred_read_replica >= 0
            or target.seen != (fetched.high_watermark, fetched.log_start_offset)
        )

    def response_sent(self, target: Target, fetched: FetchedPartition) -> None:
        """Note the offsets that the client receives with this response."""
        if self.session is not None:
            target.seen = None if fetched.tags else (fetched.high_watermark, fetched.log_start_offset)
            self.session.response_sent(target, fetched.records_size > 0)


class FetchSessions:
    """All sessions of a broker, the least recently used first."""

    def __init__(self, limit: int, random_int: Callable[[int, int], int]) -> None:
        self._limit = limit
        self._random_int = random_int
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._consumer_partitions = self._follower_partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(
        self, fetch: FetchRequestView, named: list[Target], uses_topic_ids: bool, now_ms: float
    ) -> FetchContext:
        """Return the session of a request, which names some partitions.

        Raise KafkaError if the session does not exist or has another epoch."""
        if fetch.session_epoch in {FINAL_EPOCH, INITIAL_EPOCH}:
            self._close(fetch.session_id)
            session = None
            if fetch.session_epoch == INITIAL_EPOCH:
                session = self._maybe_open(fetch, named, uses_topic_ids, now_ms)
            return FetchContext(named, session, incremental=False)
        session = self._resume(fetch, uses_topic_ids, now_ms)
        before = len(session.targets)
        session.update(fetch, named)
        added = len(session.targets) - before
        if self._count(session, added) > SESSION_PARTITIONS_MAX and added > 0:
            self._close(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)  # the client continues with all its partitions
        if not session.targets and not session.is_followers:
            self._close(session.session_id)
            return FetchContext([], None, incremental=False)
        targets = [] if session.is_followers else session.due()
        return FetchContext(targets, session, incremental=True)

    def abandon(self, context: FetchContext) -> None:
        """Close the session of a request that is refused after the session was opened."""
        if not context.is_incremental:
            self._close(context.session_id)

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
        self, fetch: FetchRequestView, targets: list[Target], uses_topic_ids: bool, now_ms: float
    ) -> FetchSession | None:
        """Return a new session, or None if all sessions of the cache are in use: the client continues without one."""
        is_follower = fetch.replica_id >= 0
        if is_follower:
            self._close_before(fetch.replica_id, fetch.replica_epoch)
        known = self._follower_partitions if is_follower else self._consumer_partitions
        if known + len(targets) > SESSION_PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self._limit and not self._evict(is_follower, now_ms):
            return None
        session_id = self._random_int(1, EPOCH_MAX)
        while session_id in self._sessions:
            session_id = self._random_int(1, EPOCH_MAX)
        session: FetchSession
        if is_follower:
            follower = (fetch.replica_id, fetch.replica_epoch)
            session = FollowerSession(session_id, targets, uses_topic_ids, now_ms, follower)
        else:
            session = FetchSession(session_id, targets, uses_topic_ids, now_ms)
        self._count(session, len(session.targets))
        self._sessions[session_id] = session
        return session

    def _close_before(self, replica_id: int, broker_epoch: int) -> None:
        """Close the sessions of a broker's earlier incarnation: they are unused, and their watches cost time."""
        for session_id, session in list(self._sessions.items()):
            if isinstance(session, FollowerSession):
                of_replica, of_epoch = session.follower
                if of_replica == replica_id and of_epoch < broker_epoch:
                    self._close(session_id)

    def _evict(self, for_follower: bool, now_ms: float) -> bool:
        """Close the least recently used session if it is idle, or any session of a consumer if a follower needs room.

        Return whether a session was closed."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
            oldest = None
            if for_follower:
                oldest = next((session for session in self._sessions.values() if not session.is_followers), None)
        if oldest is None:
            return False
        self._close(oldest.session_id)
        return True

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._count(session, -len(session.targets))
            session.close()

    def _count(self, session: FetchSession, added: int) -> int:
        """Return how many partitions all sessions of this kind have, with those that were added to this one."""
        if session.is_followers:
            self._follower_partitions += added
            return self._follower_partitions
        self._consumer_partitions += added
        return self._consumer_partitions
