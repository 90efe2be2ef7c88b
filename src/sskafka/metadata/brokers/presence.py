"""Probes of broker addresses, and when they prove that the process of a broker has ended.

Every voter of the metadata quorum keeps an idle connection to each registered broker. When the connection breaks, the
voter connects again at once and records the result:

    ANSWERED   the registered incarnation answers                  the broker is alive
    REPLACED   another incarnation of the same broker answers      the registered one has ended: its address is reused
    REFUSED    no process listens at the address                   the registered one has ended, if this is its address
    UNSURE     anything else: timeout, or some other process       unknown; the session timeout decides

When a process is killed, its host refuses connections within a millisecond. A paused process, a host without power and
a broken network refuse nothing: they are UNSURE.

A refusal proves something only if the address is known to reach the broker: an advertised address may resolve to
another host, or to none, on this node (`localhost` in a container). How soon an ended broker counts as gone therefore
depends on this:

    the incarnation has answered at this address before        gone at once
    it has not, but its address as a voter, which other        gone TAKEOVER_GRACE_MS after this controller became
    voters must be able to reach, refuses too                  active, unless it has heard from the broker: live
                                                               brokers contact a new controller at once
    a heartbeat arrived after the broker was found gone        gone after two heartbeat intervals of silence

An incarnation that has ended never returns, so a result stays valid until a heartbeat contradicts it, also if another
node becomes the active controller. A result belongs to one registration, identified by its broker epoch, and does not
affect a broker that has registered again. If a result is wrong, fencing a live broker is still safe: its leader epochs
are superseded, and its next heartbeat unfences it.

Times are milliseconds of a monotonic clock.
"""

from enum import Enum

from sskafka.metadata.image import ClusterImage
from sskafka.model.values import structure

HEARTBEAT_INTERVAL_DEFAULT_MS = 2000
TAKEOVER_GRACE_MS = 1000
DOUBTED_INTERVALS = 2


class ProbeResult(Enum):
    ANSWERED = "answered"
    REPLACED = "replaced by another incarnation"
    REFUSED = "refused"
    UNSURE = "unsure"


@structure
class _Presence:
    """Probe results for one registration."""

    epoch: int
    was_reached: bool = False
    gone_since_ms: int | None = None
    heard_ms: int | None = None
    """Last contact with the broker since this controller became active."""
    is_doubted: bool = False
    """A heartbeat arrived after the broker was found gone."""


class BrokerPresence:
    def __init__(self, heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_DEFAULT_MS) -> None:
        self._doubt_ms = DOUBTED_INTERVALS * heartbeat_interval_ms
        self._active_since_ms = 0
        self._by_id: dict[int, _Presence] = {}

    def take_over(self, now_ms: int) -> None:
        """Handle that this node became the active controller: live brokers contact it from now on."""
        self._active_since_ms = now_ms
        for presence in self._by_id.values():
            presence.heard_ms = None

    def retain(self, image: ClusterImage) -> None:
        """Drop brokers that are no longer registered."""
        self._by_id = {broker_id: known for broker_id, known in self._by_id.items() if broker_id in image.brokers}

    def found(
        self, broker_id: int, epoch: int, result: ProbeResult, began_ms: int, *, at_voter_address: bool = False
    ) -> None:
        """Record the result of a connection attempt that began at `began_ms`.

        `at_voter_address`: the connection was refused at the address under which the voters know the node.
        """
        presence = self._presence_of(broker_id, epoch)
        if presence is None:
            return
        match result:
            case ProbeResult.ANSWERED:
                presence.was_reached, presence.gone_since_ms = True, None
            case ProbeResult.REPLACED:
                self._note_gone(presence, began_ms)
            case ProbeResult.REFUSED if presence.was_reached or at_voter_address:
                self._note_gone(presence, began_ms)
            case _:
                pass

    def heard(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Record that the broker registered with this controller or sent it a heartbeat, so it is alive."""
        presence = self._presence_of(broker_id, epoch)
        if presence is None:
            return
        presence.heard_ms = now_ms
        if presence.gone_since_ms is not None:
            presence.gone_since_ms = None
            presence.is_doubted = True

    def was_reached(self, broker_id: int, epoch: int) -> bool:
        presence = self._by_id.get(broker_id)
        return presence is not None and presence.epoch == epoch and presence.was_reached

    def is_gone(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Return whether the process that registered with `epoch` has certainly ended."""
        presence = self._by_id.get(broker_id)
        if presence is None or presence.epoch != epoch or presence.gone_since_ms is None:
            return False
        if presence.is_doubted:
            silent_since_ms = self._active_since_ms if presence.heard_ms is None else presence.heard_ms
            return now_ms - silent_since_ms >= self._doubt_ms
        if presence.was_reached:
            return True
        return presence.heard_ms is None and now_ms - self._active_since_ms >= TAKEOVER_GRACE_MS

    def _note_gone(self, presence: _Presence, began_ms: int) -> None:
        is_older_than_heartbeat = presence.heard_ms is not None and began_ms <= presence.heard_ms
        if not is_older_than_heartbeat and presence.gone_since_ms is None:
            presence.gone_since_ms = began_ms

    def _presence_of(self, broker_id: int, epoch: int) -> _Presence | None:
        """Return the results for this registration, or None if the broker has registered again since."""
        presence = self._by_id.get(broker_id)
        if presence is None or presence.epoch < epoch:
            presence = self._by_id[broker_id] = _Presence(epoch)
        return presence if presence.epoch == epoch else None
