"""The sockets of a node, which are bound before anything else starts, and their advertised addresses."""

import socket
from collections.abc import Iterable, Mapping

from sskafka.client.connection import Address
from sskafka.model.listeners import Endpoint, parse_address
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.sockets import bind, bind_server

HTTP_LISTENER, ADR_LISTENER = "http.listener", "adr.listener"
_EVERY_INTERFACE = {"", "0.0.0.0", "::"}


class NodeSockets:
    def __init__(self, settings: Settings, inherited: Mapping[str, socket.socket]) -> None:
        """`inherited`: sockets, by listener name, that the parent process has already bound."""
        self._settings = settings
        self._inherited = dict(inherited)
        self._bound: dict[str, socket.socket] = {}
        self.advertised: list[Endpoint] = []
        self.server_addresses: dict[str, str] = {}
        """host:port of the other servers, by their setting."""

    def __getitem__(self, name: str) -> socket.socket:
        """Return the socket of the listener with this name."""
        return self._bound[name]

    def server_socket(self, setting: str) -> socket.socket | None:
        """Return the socket of the HTTP or ADR server; None if that server is not configured."""
        return self._bound.get(setting)

    def bind_listeners(self) -> None:
        settings = self._settings
        for listener in (*settings.listeners, *settings.controller_listeners):
            inherited = self._inherited.pop(listener.name, None)
            self._bound[listener.name] = inherited or bind(listener)
        self.advertised = [
            self._reachable(listener, self._bound[listener.name])
            for listener in settings.advertised_listeners or settings.controller_listeners
        ]

    def bind_other_servers(self, is_broker: bool) -> None:
        for setting in (ADR_LISTENER, HTTP_LISTENER):
            text = str(self._settings[setting])
            address = parse_address(setting, text)
            if address is not None and setting == ADR_LISTENER and not is_broker:
                raise SettingError(setting, text, "a node that is only a controller has no records")
            if address is not None:
                self._bound[setting] = bound = self._inherited.pop(setting, None) or bind_server(setting, *address)
                self.server_addresses[setting] = self._server_address(Endpoint(setting, *address), bound)

    def close(self) -> None:
        for bound in self._bound.values():
            bound.close()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.advertised)

    @property
    def own_kafka_address(self) -> Address:
        """The address at which processes of this node reach it: the inter-broker listener, which always exists."""
        name = self._settings.inter_broker_listener
        kafka = next(listener for listener in self._settings.listeners if listener.name == name)
        host = "localhost" if kafka.host in _EVERY_INTERFACE else kafka.host
        return Address(host, _port(self._bound[kafka.name]))

    def advertised_with(self, added: Iterable[tuple[Endpoint, socket.socket]]) -> list[Endpoint]:
        """The advertised listeners: those of the start, and those that were added since."""
        return [*self.advertised, *(self._reachable(listener, bound) for listener, bound in added)]

    def _reachable(self, listener: Endpoint, bound: socket.socket) -> Endpoint:
        host = listener.host
        if host in _EVERY_INTERFACE:
            host = self._settings.host_name or "localhost"
        return listener._replace(host=host, port=listener.port or _port(bound))

    def _server_address(self, listener: Endpoint, bound: socket.socket) -> str:
        return str(Address(self._reachable(listener, bound).host, _port(bound)))


def _port(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port
