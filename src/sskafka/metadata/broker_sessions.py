"""When each broker was last heard of. Known to the active controller alone and to no log.

A broker must be heard of every `timeout_ms`. A broker that is silent for longer, or whose process has ended for certain
(`broker_presence`), is fenced, if it is not fenced already; until then another process with its id is refused. A
controller that takes over has heard of nobody, so it gives every unfenced broker one timeout from then on: silence
towards another controller proves nothing. What it knows of ended processes holds from its first moment on.

Times are those of a monotonic clock, in ms.
"""

from dataclasses import dataclass

from sskafka.metadata.broker_presence import BrokerPresence
from sskafka.metadata.image import ClusterImage

NEVER_HEARD = -1


@dataclass(slots=True)
class BrokerSession:
    epoch: int
    last_contact_ms: int
    metadata_offset: int = NEVER_HEARD
    """Offset of the last metadata record that the broker says it has replayed."""
    shutdown_offset: int | None = None
    """Offset of the last record that took its leaderships away, once it is in controlled shutdown."""


class BrokerSessions:
    def __init__(self, timeout_ms: int, presence: BrokerPresence | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._presence = presence or BrokerPresence()
        self._sessions: dict[int, BrokerSession] = {}

    def take_over(self, image: ClusterImage, now_ms: int) -> None:
        """This controller has become the active one."""
        self._presence.take_over(now_ms)
        self._sessions = {
            broker.id: BrokerSession(broker.epoch, now_ms) for broker in image.brokers.values() if not broker.fenced
        }
        for broker in image.brokers.values():
            if broker.in_controlled_shutdown and not broker.fenced:
                self._sessions[broker.id].shutdown_offset = image.next_offset - 1

    def touch(self, broker_id: int, epoch: int, now_ms: int, metadata_offset: int = NEVER_HEARD) -> BrokerSession:
        """The broker registered or sent a heartbeat."""
        self._presence.heard(broker_id, epoch, now_ms)
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = BrokerSession(epoch, now_ms)
        session.last_contact_ms = now_ms
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        return session

    def end(self, broker_id: int) -> None:
        """The broker was told to stop, or was unregistered: its successor need not wait."""
        self._sessions.pop(broker_id, None)

    def excuse(self, pause_ms: int) -> None:
        """This controller itself did not run for so long; nobody's silence in that time counts."""
        for session in self._sessions.values():
            session.last_contact_ms += pause_ms

    def may_live(self, broker_id: int, now_ms: int) -> bool:
        """Whether a process with this id was heard of within the timeout, and has not ended since."""
        session = self._sessions.get(broker_id)
        if session is None or now_ms >= self._deadline_ms(session):
            return False
        return not self._presence.is_gone(broker_id, session.epoch, now_ms)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        """Whether this controller itself has had a heartbeat within the timeout, and does not just give it time."""
        return self._replayed(broker_id) != NEVER_HEARD and self.may_live(broker_id, now_ms)

    def expired(self, image: ClusterImage, now_ms: int) -> list[int]:
        """The unfenced brokers that have been silent for too long or have ended."""
        unfenced = [broker for broker in image.brokers.values() if not broker.fenced]
        for broker in unfenced:
            if broker.id not in self._sessions:
                self._sessions[broker.id] = BrokerSession(broker.epoch, now_ms)
        return [broker.id for broker in unfenced if not self.may_live(broker.id, now_ms)]

    def all_have_replayed(self, image: ClusterImage, offset: int) -> bool:
        """Whether every active broker has said that it knows the record at `offset`."""
        return all(self._replayed(broker.id) >= offset for broker in image.active_brokers())

    def _replayed(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return NEVER_HEARD if session is None else session.metadata_offset

    def _deadline_ms(self, session: BrokerSession) -> int:
        return session.last_contact_ms + self._timeout_ms
