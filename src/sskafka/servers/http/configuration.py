"""What the broker tells its HTTP process about itself; it travels over the private socket."""

from typing import Any, NamedTuple

CONFIGURATION = "configuration"
OPENED = "opened"
"""The two questions that belong to the process itself rather than to the broker's answers."""


class Configuration(NamedTuple):
    node_id: int
    kafka_address: tuple[str, int] | None
    """Of the node itself; None when it is only a controller, which serves no clients."""
    allowed_hosts: tuple[str, ...]
    """Names that requests may be addressed to, beside localhost and plain IP addresses."""
    route_modules: dict[str, dict[str, Any]]
    """Modules with further routes, and the arguments of their function `routes` beside the server."""

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
