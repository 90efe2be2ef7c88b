"""The Kafka listeners of a broker. They are opened at startup, and changes of `listeners` open and close them.

    reserve      a client changes `listeners`: bind the ports of new listeners, or reject the change
    change_to    the metadata has other listeners: close those that were removed, then open the new ones
    release      close ports that were reserved but not opened

If a port cannot be bound when the metadata changes (because a controller was asked directly, or because another
program has the port), the broker logs an error and keeps its other listeners. A new listener is advertised only after
a restart of the broker, as in Apache Kafka: the broker registers its listeners at startup.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator

from sskafka.broker import on_demand
from sskafka.broker.sockets import NodeSockets
from sskafka.model.counters import Sample
from sskafka.model.listeners import PLAINTEXT, Endpoint
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.listener import Listener
from sskafka.servers.kafka.sockets import bind

_log = logging.getLogger(__name__)

Bound = dict[Endpoint, socket.socket]


class KafkaListeners:
    def __init__(
        self,
        settings: Settings,
        sockets: NodeSockets,
        make: Callable[[Endpoint], Listener],
        changes: "Callable[[], on_demand.SecurityChanges]",
    ) -> None:
        """`make` returns a listener that is not started yet; it raises SettingError if that cannot be protected."""
        self._changes = changes
        self._backlog = settings["socket.listen.backlog.size"]
        self._sockets = sockets
        self._make = make
        self._at_start = settings.listeners
        self._wanted = settings.listeners
        self._reserved: Bound = {}
        self._open: dict[str, tuple[Endpoint, Listener]] = {}
        self._is_started = False
        self._change: asyncio.Task[None] | None = None

    def samples(self) -> Iterator[Sample]:
        for _, listener in list(self._open.values()):
            yield from listener.acceptor_counters.samples()
            yield from listener.software_samples()

    async def start(self) -> None:
        """Open the listeners that are configured at this time."""
        self._is_started = True
        wanted = {listener.name for listener in self._wanted}
        for listener in self._at_start:
            if listener.name in wanted:
                await self._serve(listener, self._sockets[listener.name])
            else:
                self._sockets[listener.name].close()
        await self._follow()
        self.release([listener for listener in self._reserved if listener not in self._wanted])

    async def stop(self) -> None:
        await self.settled()
        for _, listener in self._open.values():
            await listener.stop()
        self._open.clear()
        for bound in self._reserved.values():
            bound.close()
        self._reserved.clear()

    def change_to(self, listeners: tuple[Endpoint, ...]) -> None:
        """Close and open listeners until exactly these listeners, by name, are open."""
        self._wanted = listeners
        if self._is_started and (self._change is None or self._change.done()):
            self._change = asyncio.get_running_loop().create_task(self._follow())

    async def settled(self) -> None:
        """Wait until all changes so far are complete."""
        while self._change is not None and not self._change.done():
            await self._change

    def reserve(self, listeners: Iterable[Endpoint]) -> list[Endpoint]:
        """Bind the ports of listeners that are not open, and return these listeners.

        Raises OSError, and releases all of them, if one port cannot be bound. The port of a listener that this change
        closes becomes free only when that listener is closed."""
        listeners = list(listeners)
        names = {listener.name for listener in listeners}
        closing = {(at.host, at.port) for name, (at, _) in self._open.items() if name not in names}
        reserved: list[Endpoint] = []
        for listener in self._new_of(listeners):
            if listener in self._reserved or (listener.host, listener.port) in closing:
                continue
            try:
                self._reserved[listener] = bind(listener)
            except OSError:
                self.release(reserved)
                raise
            reserved.append(listener)
        return reserved

    def release(self, reserved: Iterable[Endpoint]) -> None:
        for listener in reserved:
            bound = self._reserved.pop(listener, None)
            if bound is not None:
                bound.close()

    async def check_security(self, current: Settings, wanted: Settings) -> None:
        """Raise SettingError if this node cannot use the new certificates and logins."""
        listeners = (*wanted.listeners, *wanted.controller_listeners, wanted.http_endpoint)
        if any(listener is not None and listener.protocol != PLAINTEXT for listener in listeners):
            await self._changes().check(current, wanted)

    def advertised(self, settings: Settings) -> list[Endpoint]:
        """Return the listeners to register: of those that the metadata added, the ones whose ports could be bound."""
        try:
            names = {listener.name for listener in settings.advertised_listeners}
            added = [listener for listener in self._new_of(settings.listeners) if listener.name in names]
        except SettingError as error:
            _log.error("listeners from the metadata are not registered: %s", error)
            added = []
        return self._sockets.advertised_with(self._bound_of(added))

    def _bound_of(self, listeners: Iterable[Endpoint]) -> Iterator[tuple[Endpoint, socket.socket]]:
        for listener in listeners:
            try:
                self.reserve([*self._wanted, listener])
            except OSError as error:
                _log.error("%s", error)
                continue
            yield listener, self._reserved[listener]

    def _new_of(self, listeners: Iterable[Endpoint]) -> list[Endpoint]:
        known = set(self._open) if self._is_started else {listener.name for listener in self._at_start}
        return [listener for listener in listeners if listener.name not in known]

    async def _follow(self) -> None:
        wanted = None
        while wanted is not self._wanted:
            wanted = self._wanted
            names = {listener.name for listener in wanted}
            for name in [name for name in self._open if name not in names]:
                _, listener = self._open.pop(name)
                await listener.stop()
                _log.info("listener %s is closed", name)
            for address in self._new_of(wanted):
                await self._maybe_open(address)

    async def _maybe_open(self, address: Endpoint) -> None:
        try:
            bound = self._reserved.pop(address) if address in self._reserved else bind(address)
            await self._serve(address, bound)
        except (OSError, SettingError) as error:
            _log.error("listener %s cannot be opened: %s", address.name, error)
        else:
            _log.info("listener %s is open at %s:%d", address.name, address.host or "*", address.port)

    async def _serve(self, address: Endpoint, bound: socket.socket) -> None:
        try:
            listener = self._make(address)
            await listener.start(bound, self._backlog)
        except (OSError, SettingError):
            bound.close()
            raise
        self._open[address.name] = (address, listener)
