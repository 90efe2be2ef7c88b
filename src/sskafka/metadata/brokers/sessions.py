"""Sessions of brokers: when the active controller last heard from each. Not part of the metadata log.

A broker must be heard from within `timeout_ms`. If it is silent for longer, or if its process has certainly ended
(`presence`), it is fenced; until then another process with its id cannot register. A new active controller has
not heard from any broker and gives each unfenced broker one full timeout, because silence towards another controller
proves nothing. What it knows about ended processes is valid from the start.

Times are milliseconds of a monotonic clock.
"""

from sskafka.metadata.brokers.presence import BrokerPresence
from sskafka.metadata.image import ClusterImage
from sskafka.model.values import structure

NO_CONTACT = -1


@structure
class BrokerSession:
    epoch: int
    last_contact_ms: int
    metadata_offset: int = NO_CONTACT
    """Offset of the last metadata record that the broker has reported as replayed."""
    shutdown_offset: int | None = None
    """During a controlled shutdown: offset of the last record that moved one of the broker's leaderships."""


class BrokerSessions:
    def __init__(self, timeout_ms: int, presence: BrokerPresence | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._presence = presence or BrokerPresence()
        self._sessions: dict[int, BrokerSession] = {}

    def take_over(self, image: ClusterImage, now_ms: int) -> None:
        """Handle that this controller became the active one."""
        self._presence.take_over(now_ms)
        self._sessions = {
            broker.id: BrokerSession(broker.epoch, now_ms) for broker in image.brokers.values() if not broker.fenced
        }
        for broker in image.brokers.values():
            if broker.in_controlled_shutdown and not broker.fenced:
                self._sessions[broker.id].shutdown_offset = image.next_offset - 1

    def touch(self, broker_id: int, epoch: int, now_ms: int, metadata_offset: int = NO_CONTACT) -> BrokerSession:
        """Record that the broker registered or sent a heartbeat."""
        self._presence.heard(broker_id, epoch, now_ms)
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = BrokerSession(epoch, now_ms)
        session.last_contact_ms = now_ms
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        return session

    def end(self, broker_id: int) -> None:
        """End the session of a broker that was told to stop or was unregistered; its successor need not wait."""
        self._sessions.pop(broker_id, None)

    def extend(self, pause_ms: int) -> None:
        """Extend all sessions by a time in which this controller did not run: silence in that time does not count."""
        for session in self._sessions.values():
            session.last_contact_ms += pause_ms

    def may_be_alive(self, broker_id: int, now_ms: int) -> bool:
        """Return whether a process with this id was heard from within the timeout and has not ended since."""
        session = self._sessions.get(broker_id)
        if session is None or now_ms >= self._deadline_ms(session):
            return False
        return not self._presence.is_gone(broker_id, session.epoch, now_ms)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        """Return whether there is a sign of life: a heartbeat to this controller within the timeout, or a probe that
        the registered process answered and that nothing has contradicted since.

        The grace period after a takeover does not count. Without the probe, a second process with the same id that
        registers before the first one has contacted the new controller would replace a broker that is well.
        """
        session = self._sessions.get(broker_id)
        if session is None:
            return False
        has_answered = self._presence.was_reached(broker_id, session.epoch)
        return (has_answered or session.metadata_offset != NO_CONTACT) and self.may_be_alive(broker_id, now_ms)

    def expired(self, image: ClusterImage, now_ms: int) -> list[int]:
        """Return the unfenced brokers that have been silent for too long or have ended."""
        unfenced = [broker for broker in image.brokers.values() if not broker.fenced]
        for broker in unfenced:
            if broker.id not in self._sessions:
                self._sessions[broker.id] = BrokerSession(broker.epoch, now_ms)
        return [broker.id for broker in unfenced if not self.may_be_alive(broker.id, now_ms)]

    def all_have_replayed(self, image: ClusterImage, offset: int) -> bool:
        """Return whether every active broker has reported the record at `offset` as replayed."""
        return all(self._replayed(broker.id) >= offset for broker in image.active_brokers())

    def _replayed(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return NO_CONTACT if session is None else session.metadata_offset

    def _deadline_ms(self, session: BrokerSession) -> int:
        return session.last_contact_ms + self._timeout_ms
