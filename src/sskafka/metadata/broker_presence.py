"""What this node has found at the addresses of brokers, and when that proves that a broker's process has ended.

Every voter of the metadata quorum keeps a connection to each registered broker. While the broker lives, nothing
happens on it. When it breaks, the voter connects again at once and notes what it found:

    ANSWERED   the incarnation that is registered             it lives
    REPLACED   another incarnation of the same broker         the registered one has ended: its address is taken
    REFUSED    no process listens at the address              the registered one has ended, if this is its address
    UNSURE     anything else: no answer in time, a stranger   nothing is known; the session timeout decides

A process that was killed lets its host refuse connections within a millisecond. A paused process, a host that lost its
power and a cut network refuse nothing: they are UNSURE.

A refusal proves something only where the broker is known to be reachable: an advertised address may mean another host,
or none, to this node (`localhost` in a container). How soon a broker that ended counts as gone depends on that:

    the incarnation answered at this address before            gone at once
    it did not, but the node's address as a voter refuses      gone TAKEOVER_PATIENCE_MS after this one took over,
    too, where the other voters must be able to reach it       unless it has heard of the broker: brokers that live
                                                               report to a new controller at once
    a heartbeat came after the broker was found gone           gone after two heartbeat intervals of silence

An incarnation that has ended never comes back, so what was found holds until a heartbeat contradicts it, also when
another node becomes the active controller meanwhile. What was found is about one registration, known by its epoch: a
broker that has registered again since then is not concerned. If all this should be wrong, fencing a broker that lives
is safe: its leader epochs are superseded, and its next heartbeat unfences it.

Times are those of a monotonic clock, in ms.
"""

from dataclasses import dataclass
from enum import Enum

from sskafka.metadata.image import ClusterImage

HEARTBEAT_INTERVAL_DEFAULT_MS = 2000
TAKEOVER_PATIENCE_MS = 1000
DOUBTED_INTERVALS = 2


class Sighting(Enum):
    ANSWERED = "answered"
    REPLACED = "replaced by another incarnation"
    REFUSED = "refused"
    UNSURE = "unsure"


@dataclass(slots=True)
class _Presence:
    """Of one registration."""

    epoch: int
    was_reached: bool = False
    gone_since_ms: int | None = None
    heard_ms: int | None = None
    """When this controller heard of the broker last, since it is the active one."""
    is_doubted: bool = False
    """A heartbeat came after the broker was found gone."""


class BrokerPresence:
    def __init__(self, heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_DEFAULT_MS) -> None:
        self._doubt_ms = DOUBTED_INTERVALS * heartbeat_interval_ms
        self._active_since_ms = 0
        self._by_id: dict[int, _Presence] = {}

    def take_over(self, now_ms: int) -> None:
        """This node has become the active controller: brokers that live report to it from now on."""
        self._active_since_ms = now_ms
        for presence in self._by_id.values():
            presence.heard_ms = None

    def retain(self, image: ClusterImage) -> None:
        """Forget brokers that are not registered any more."""
        self._by_id = {broker_id: known for broker_id, known in self._by_id.items() if broker_id in image.brokers}

    def found(
        self, broker_id: int, epoch: int, sighting: Sighting, began_ms: int, *, at_voter_address: bool = False
    ) -> None:
        """Note what a connection attempt that began at `began_ms` has found.

        `at_voter_address`: the refusal came from the address at which the voters know this node.
        """
        presence = self._of(broker_id, epoch)
        if presence is None:
            return
        match sighting:
            case Sighting.ANSWERED:
                presence.was_reached, presence.gone_since_ms = True, None
            case Sighting.REPLACED:
                self._found_gone(presence, began_ms)
            case Sighting.REFUSED if presence.was_reached or at_voter_address:
                self._found_gone(presence, began_ms)
            case _:
                pass

    def heard(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """The broker registered or sent a heartbeat to this controller: it has not ended."""
        presence = self._of(broker_id, epoch)
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
        """Whether the process that registered with `epoch` has ended for certain."""
        presence = self._by_id.get(broker_id)
        if presence is None or presence.epoch != epoch or presence.gone_since_ms is None:
            return False
        if presence.is_doubted:
            silent_since_ms = self._active_since_ms if presence.heard_ms is None else presence.heard_ms
            return now_ms - silent_since_ms >= self._doubt_ms
        if presence.was_reached:
            return True
        return presence.heard_ms is None and now_ms - self._active_since_ms >= TAKEOVER_PATIENCE_MS

    def _found_gone(self, presence: _Presence, began_ms: int) -> None:
        is_older_than_heartbeat = presence.heard_ms is not None and began_ms <= presence.heard_ms
        if not is_older_than_heartbeat and presence.gone_since_ms is None:
            presence.gone_since_ms = began_ms

    def _of(self, broker_id: int, epoch: int) -> _Presence | None:
        """None when the broker has registered again since `epoch`."""
        presence = self._by_id.get(broker_id)
        if presence is None or presence.epoch < epoch:
            presence = self._by_id[broker_id] = _Presence(epoch)
        return presence if presence.epoch == epoch else None
