"""The configuration that the broker sends to its HTTP process over the private socket."""

from typing import Any, NamedTuple

CONFIGURATION = "configuration"
OPENED = "opened"
"""The two requests that concern the HTTP process itself, not the broker's answers."""


class Configuration(NamedTuple):
    node_id: int
    kafka_address: tuple[str, int] | None
    """The address of this node; None for a controller, which serves no clients."""
    allowed_hosts: tuple[str, ...]
    """Host names that requests may use, besides localhost and IP addresses."""
    route_modules: dict[str, dict[str, Any]]
    """Modules with further routes, and the extra arguments of their function `routes`."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Configuration":
        address = values["kafka_address"]
        return cls(
            **{
                **values,
                "allowed_hosts": tuple(values["allowed_hosts"]),
                "kafka_address": None if address is None else tuple(address),
            }
        )

    @property
    def is_broker(self) -> bool:
        return self.kafka_address is not None
