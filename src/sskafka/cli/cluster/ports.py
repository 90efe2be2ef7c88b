"""The doors that every broker of a local cluster opens, and the settings that name their ports.

Broker 1 has the first port of a door, the others count on from it. A door without a port stays shut.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.model.listeners import parse_address
from sskafka.model.settings import Settings

HOST = "localhost"
ANY_PORT = 0
LISTENERS = "listeners"


class Door(NamedTuple):
    name: str
    """What the bound socket is called for the broker that inherits it."""
    setting: str
    option: str
    default_first_port: int

    def port_in(self, properties: Mapping[str, str]) -> int | None:
        """Where a broker with these settings has the door; None when it is shut."""
        settings = Settings.resolve(properties)
        if self.setting == LISTENERS:
            return settings.listeners[0].port
        address = parse_address(self.setting, str(settings[self.setting]))
        return address[1] if address is not None else None

    def address(self, port: int | None) -> str:
        """The value of its setting."""
        address = f"{HOST}:{port}" if port is not None else ""
        return f"{self.name}://{address}" if self.setting == LISTENERS else address


KAFKA = Door("PLAINTEXT", LISTENERS, "--kafka-port", 9092)
HTTP = Door("http.listener", "http.listener", "--http-port", 8001)
ADR = Door("adr.listener", "adr.listener", "--adr-port", 9180)
DOORS = (KAFKA, HTTP, ADR)

Ports = Mapping[Door, int]
"""Of one broker: where it has the doors that are open."""


class Wish(NamedTuple):
    """What the options of the command say about a door."""

    first_port: int | None = None
    is_open: bool = True

    def port(self, door: Door, number: int) -> int:
        """For the broker of this number, counted from 0."""
        first_port = door.default_first_port if self.first_port is None else self.first_port
        return first_port + number if first_port else ANY_PORT
