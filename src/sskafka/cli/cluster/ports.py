"""The servers of every broker of a local cluster (Kafka, HTTP, ADR-0011), and the settings that name their ports.

Broker 1 has the first port of a server, the next brokers have the ports after it. A server without a port is disabled.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.model.listeners import parse_address
from sskafka.model.settings import Settings

HOST = "localhost"
ANY_PORT = 0
LISTENERS = "listeners"


class Server(NamedTuple):
    name: str
    """Name of the bound socket for the broker that inherits it."""
    setting: str
    option: str
    default_first_port: int

    def port_in(self, properties: Mapping[str, str]) -> int | None:
        """Return the port of this server in a broker's settings; None if the server is disabled."""
        settings = Settings.resolve(properties)
        if self.setting == LISTENERS:
            return settings.listeners[0].port
        address = parse_address(self.setting, str(settings[self.setting]))
        return address[1] if address is not None else None

    def address(self, port: int | None) -> str:
        """Return the value of the setting for this port."""
        address = f"{HOST}:{port}" if port is not None else ""
        return f"{self.name}://{address}" if self.setting == LISTENERS else address


KAFKA = Server("PLAINTEXT", LISTENERS, "--kafka-port", 9092)
SECURE_KAFKA = Server("SASL_SSL", LISTENERS, "--kafka-port", 9092)
"""Replaces KAFKA in a cluster with TLS and SASL."""
HTTP = Server("http.listener", "http.listener", "--http-port", 8001)
ADR = Server("adr.listener", "adr.listener", "--adr-port", 9180)
OTHER_SERVERS = (HTTP, ADR)

Ports = Mapping[Server, int]
"""Ports of one broker's enabled servers."""


def kafka_server(ports: Ports) -> Server:
    """Return KAFKA or SECURE_KAFKA, whichever the broker has."""
    return SECURE_KAFKA if SECURE_KAFKA in ports else KAFKA


class PortOption(NamedTuple):
    """The command's options for a server."""

    first_port: int | None = None
    is_open: bool = True

    def port(self, server: Server, number: int) -> int:
        """Return the port of the broker with this number, counted from 0."""
        first_port = server.default_first_port if self.first_port is None else self.first_port
        return first_port + number if first_port else ANY_PORT
