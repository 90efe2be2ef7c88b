"""Rules of `broker_presence` and its users, each broken alone: the simulation must notice every one of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sskafka.controller.broker_watch import BrokerWatch
from sskafka.metadata.brokers.presence import BrokerPresence, ProbeResult
from sskafka.metadata.brokers.sessions import BrokerSessions

_found, _heard, _is_gone, _take_over = (
    BrokerPresence.found,
    BrokerPresence.heard,
    BrokerPresence.is_gone,
    BrokerPresence.take_over,
)


def silence_counts(
    self: BrokerPresence, broker_id: int, epoch: int, result: ProbeResult, *rest: Any, **more: Any
) -> None:
    _found(self, broker_id, epoch, ProbeResult.REFUSED if result is ProbeResult.UNSURE else result, *rest, **more)


def any_address_counts(self: BrokerPresence, broker_id: int, epoch: int, *rest: Any, **more: Any) -> None:
    presence = self._presence_of(broker_id, epoch)
    if presence is not None:
        presence.was_reached = True
    _found(self, broker_id, epoch, *rest, **more)


def epochs_do_not_matter(self: BrokerPresence, broker_id: int, epoch: int, now_ms: int) -> bool:
    presence = self._by_id.get(broker_id)
    return _is_gone(self, broker_id, epoch if presence is None else presence.epoch, now_ms)


def first_epoch_stays(self: BrokerPresence, broker_id: int, epoch: int) -> Any:
    presence = self._by_id.get(broker_id)
    return presence if presence is not None else original_of(self, broker_id, epoch)


original_of = BrokerPresence._presence_of


def heartbeats_prove_nothing(self: BrokerPresence, broker_id: int, epoch: int, now_ms: int) -> None:
    pass


def contradictions_are_forgotten(self: BrokerPresence, broker_id: int, epoch: int, now_ms: int) -> None:
    _heard(self, broker_id, epoch, now_ms)
    presence = self._presence_of(broker_id, epoch)
    if presence is not None:
        presence.is_doubted = False


def new_controllers_know_nothing(self: BrokerPresence, now_ms: int) -> None:
    _take_over(self, now_ms)
    self._by_id.clear()


def nobody_is_alive(self: BrokerSessions, broker_id: int, now_ms: int) -> bool:
    return False


def nobody_is_watched(self: BrokerWatch, *rest: Any) -> None:
    pass


KNOWN_BUGS: dict[str, list[tuple[type, str, Callable[..., Any]]]] = {
    "no answer counts as an end": [(BrokerPresence, "found", silence_counts)],
    "any address that refuses counts": [(BrokerPresence, "found", any_address_counts)],
    "what was found holds for the next registration": [
        (BrokerPresence, "is_gone", epochs_do_not_matter),
        (BrokerPresence, "_presence_of", first_epoch_stays),
    ],
    "heartbeats prove nothing": [(BrokerPresence, "heard", heartbeats_prove_nothing)],
    "contradictions are forgotten": [(BrokerPresence, "heard", contradictions_are_forgotten)],
    "new controllers know nothing": [(BrokerPresence, "take_over", new_controllers_know_nothing)],
    "a second process replaces a live one": [(BrokerSessions, "is_alive", nobody_is_alive)],
    "nobody is watched": [(BrokerWatch, "metadata_changed", nobody_is_watched)],
}


@contextmanager
def bug(name: str) -> Iterator[None]:
    kept = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in KNOWN_BUGS[name]]
    for owner, attribute, replacement in KNOWN_BUGS[name]:
        setattr(owner, attribute, replacement)
    try:
        yield
    finally:
        for owner, attribute, original in kept:
            setattr(owner, attribute, original)
