"""The APIs that listeners of a broker serve before and after it has joined its cluster.

Before, other nodes are served what they ask so that the broker can join. Clients find their connection closed, as they
would find a port that is not open yet, and connect again.
"""

from sskafka.servers.kafka.registry import Registry, ServedApi
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import Listeners


class ServedApis:
    """The APIs of a registry as listeners see them."""

    def __init__(self) -> None:
        self.by_key: dict[int, ServedApi] = {}

    def open_to_nodes(self, registry: Registry) -> None:
        for key, served in registry.by_key.items():
            is_served = served.api.listeners & Listeners.STARTING
            self.by_key[key] = served if is_served else ServedApi(served.api, _turn_away, served.counters)

    def open_to_all(self, registry: Registry) -> None:
        self.by_key.update(registry.by_key)


def _turn_away(request: Request) -> Response | None:
    request.connection.close()
    return None
