"""Keeps a connection to every registered broker, on each voter of the quorum, to notice at once when a broker dies.

    probe -> the broker answers -> wait until the connection breaks -> probe again at once
          -> anything else      -> noted (`broker_presence` says what it proves) -> a growing pause -> probe again

All voters watch, not the active controller alone: whoever becomes the next one knows from its first moment on which
brokers died with its predecessor.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from sskafka.metadata.brokers.presence import BrokerPresence, ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.runtime.clock import Clock

_log = logging.getLogger(__name__)

FIRST_PAUSE_MS = 50
PAUSE_MAX_MS = 5000
LASTING_MS = 1000
"""A connection that broke sooner is made again after a pause, lest a broker that hangs up on everybody be kept busy."""


class HeldConnection(Protocol):
    async def lost(self) -> None:
        """Returns when the connection has ended."""
        ...

    def drop(self) -> None: ...


class Found(NamedTuple):
    result: ProbeResult
    connection: HeldConnection | None = None
    """With ANSWERED: the one over which the broker answered."""
    at_voter_address: bool = False
    """With REFUSED: the address at which voters know the node refuses too."""


class BrokerProber(Protocol):
    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> Found:
        """Connect to the broker once and find out who answers.

        Where the broker `was_reached` at this address before, a refusal there says all; the voters' address is not
        asked then."""
        ...


class BrokerWatch:
    def __init__(
        self,
        node_id: int,
        prober: BrokerProber,
        presence: BrokerPresence,
        clock: Clock,
        on_sighting: Callable[[], None],
    ) -> None:
        """On the running loop. `on_sighting` is called whenever something was found."""
        self._node_id = node_id
        self._prober = prober
        self._presence = presence
        self._clock = clock
        self._on_sighting = on_sighting
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, tuple[int, asyncio.Task[None]]] = {}
        """By broker id: the epoch of the registration, and the task that watches it."""

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        for broker_id in delta.brokers_changed:
            self._watch(broker_id, image.brokers.get(broker_id))
        if delta.brokers_changed:
            self._presence.retain(image)

    def stop(self) -> None:
        for _, task in self._watched.values():
            task.cancel()
        self._watched.clear()

    def _watch(self, broker_id: int, broker: BrokerRegistration | None) -> None:
        """This node's own broker is not watched: it ends when this node does."""
        epoch, task = self._watched.get(broker_id, (None, None))
        if broker is not None and broker.epoch == epoch:
            return
        if task is not None:
            task.cancel()
            del self._watched[broker_id]
        if broker is not None and broker_id != self._node_id:
            self._watched[broker_id] = broker.epoch, self._loop.create_task(self._keep_watching(broker))

    async def _keep_watching(self, broker: BrokerRegistration) -> None:
        failures = 0
        while True:
            found = await self._probe(broker)
            if found.connection is not None and await self._lasts(found.connection):
                failures = 0
            else:
                await asyncio.sleep(min(FIRST_PAUSE_MS << min(failures, 16), PAUSE_MAX_MS) / 1000)
                failures += 1

    async def _probe(self, broker: BrokerRegistration) -> Found:
        began_ms = int(self._clock.monotonic_ms())
        was_reached = self._presence.was_reached(broker.id, broker.epoch)
        try:
            found = await self._prober.probe(broker, was_reached=was_reached)
        except Exception:  # the boundary of a task: what cannot be found out is not known
            _log.exception("broker %d cannot be watched", broker.id)
            found = Found(ProbeResult.UNSURE)
        _log.debug("broker %d of epoch %d: %s", broker.id, broker.epoch, found.result.value)
        self._presence.found(broker.id, broker.epoch, found.result, began_ms, at_voter_address=found.at_voter_address)
        self._on_sighting()
        return found

    async def _lasts(self, connection: HeldConnection) -> bool:
        """Waits for the connection's end; whether it came late enough to connect again at once."""
        began_ms = self._clock.monotonic_ms()
        try:
            await connection.lost()
        finally:
            connection.drop()
        return self._clock.monotonic_ms() - began_ms >= LASTING_MS
